// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_connection.hpp"

#include "base/log.hpp"
#include "hypervisor/libvirt_error.hpp"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

namespace bulkhead::hypervisor {
namespace {

/// A libvirtd that says nothing for 15 s is taken for dead. It answers keepalive from its main thread, however long
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

} // namespace

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
    const std::lock_guard lock(m_mutex);
    if (m_current && m_current != known) {
        return share(m_current.get()); // another thread has just opened it
    }
    m_current.reset(virConnectOpen(m_uri.c_str()));
    if (!m_current) {
        Error error = lastLibvirtError("cannot reach libvirt at " + m_uri);
        if (error.code == ErrorCode::HostFailure) {
            error.code = ErrorCode::Unavailable;
            error.message += "; is libvirtd running?";
        }
        return fail(std::move(error));
    }
    if (known) {
        log::notice("the connection to libvirt was lost and is back", {{"URI", m_uri}});
    }
    // 1: the other side knows no keepalive (libvirt's test driver), which is no harm.
    if (virConnectSetKeepAlive(m_current.get(), kKeepAliveSeconds, kKeepAliveCount) < 0) {
        virResetLastError();
    }
    return share(m_current.get());
}

} // namespace bulkhead::hypervisor
