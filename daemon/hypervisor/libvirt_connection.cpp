// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_connection.hpp"

#include "base/log.hpp"
#include "hypervisor/libvirt_error.hpp"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <chrono>
#include <condition_variable>
#include <thread>

namespace bulkhead::hypervisor {
namespace {

/// A libvirtd that says nothing for 20 s is taken for dead. It answers keepalive from its main thread, however long
/// its workers take.
constexpr int kKeepAliveSeconds = 5;
constexpr unsigned kKeepAliveCount = 3;

bool answers(virConnect* connection) {
    unsigned long version = 0;
    return virConnectIsAlive(connection) == 1 && virConnectGetLibVersion(connection, &version) == 0;
}

LibvirtConnection::Handle share(virConnect* connection) {
    virConnectRef(connection);
    return LibvirtConnection::Handle(connection);
}

/// Of virConnectOpen() alone, which has no time limit of its own.
constexpr std::chrono::seconds kOpenLimit{10};

} // namespace

/// virConnectOpen() in a thread of its own: a libvirtd that is stopped still accepts on its socket and never answers,
/// and keepalive starts only when the connection is open. Nobody can take such a call back, so the thread is on its
/// own: it shares this value with those who wait, and ends whenever libvirtd ends or answers.
struct LibvirtConnection::Opening {
    std::mutex mutex;
    std::condition_variable changed;
    bool isDone = false;
    Handle connection; ///< taken by the first who sees it
    Error error;

    static std::shared_ptr<Opening> begin(const std::string& uri) {
        auto opening = std::make_shared<Opening>();
        std::thread([opening, uri] { opening->open(uri); }).detach();
        return opening;
    }

    void open(const std::string& uri) {
        Handle opened(virConnectOpen(uri.c_str()));
        Error why;
        if (!opened) {
            why = lastLibvirtError("cannot reach libvirt at " + uri);
            if (why.code == ErrorCode::HostFailure) {
                why.code = ErrorCode::Unavailable;
                why.message += "; is libvirtd running?";
            }
        } else if (virConnectSetKeepAlive(opened.get(), kKeepAliveSeconds, kKeepAliveCount) < 0) {
            virResetLastError(); // libvirt's test driver has no keepalive and needs none
        }
        const std::lock_guard lock(mutex);
        connection = std::move(opened);
        error = std::move(why);
        isDone = true;
        changed.notify_all();
    }
};

void LibvirtConnection::Closer::operator()(virConnect* connection) const {
    virConnectClose(connection);
}

LibvirtConnection::LibvirtConnection(LibvirtRuntime&, std::string uri)
    : m_uri(std::move(uri)) {}

LibvirtConnection::~LibvirtConnection() = default;

Result<LibvirtConnection::Handle> LibvirtConnection::acquire() {
    Handle known;
    {
        const std::lock_guard lock(m_mutex);
        if (m_current) {
            known = share(m_current.get());
        }
    }
    // Asked without the lock: a libvirtd that hangs holds up only those who ask it.
    if (known && answers(known.get())) {
        return known;
    }
    std::shared_ptr<Opening> opening;
    {
        const std::lock_guard lock(m_mutex);
        if (m_current && m_current.get() != known.get()) {
            return share(m_current.get()); // another thread has just opened it
        }
        m_current.reset();
        if (!m_opening) {
            m_opening = Opening::begin(m_uri);
        }
        opening = m_opening;
    }
    {
        std::unique_lock lock(opening->mutex);
        if (!opening->changed.wait_for(lock, kOpenLimit, [&opening] { return opening->isDone; })) {
            return fail(ErrorCode::Unavailable,
                        "libvirt at " + m_uri + " accepts the connection but does not answer; restart libvirtd");
        }
    }
    const std::lock_guard lock(m_mutex);
    if (m_opening == opening) {
        m_opening.reset();
        m_current = std::move(opening->connection);
        if (m_current && known) {
            log::notice("the connection to libvirt was lost and is back", {{"URI", m_uri}});
        }
    }
    if (!m_current) {
        return fail(opening->error.message.empty() ? Error{ErrorCode::Unavailable, "the connection to libvirt was lost"}
                                                   : opening->error);
    }
    return share(m_current.get());
}

} // namespace bulkhead::hypervisor
