// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_hypervisor.hpp"

#include "base/log.hpp"
#include "hypervisor/libvirt_domain.hpp"
#include "hypervisor/libvirt_error.hpp"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace bulkhead::hypervisor {
namespace {

using Clock = std::chrono::steady_clock;

struct StreamCloser {
    void operator()(virStream* stream) const { virStreamFree(stream); }
};
using StreamHandle = std::unique_ptr<virStream, StreamCloser>;

/// A picture of the largest screen is smaller, even without compression.
constexpr off_t kLargestPicture = off_t{256} * 1024 * 1024;

/// For virStreamRecvAll: appends to the UniqueFd behind `opaque`.
int keepBytes(virStreamPtr /*stream*/, const char* data, std::size_t size, void* opaque) {
    const int fd = static_cast<const UniqueFd*>(opaque)->get();
    if (::lseek(fd, 0, SEEK_CUR) + static_cast<off_t>(size) > kLargestPicture) {
        errno = EFBIG;
        return -1;
    }
    return static_cast<int>(::write(fd, data, size));
}

/// Success when libvirt does not know the instance (any more), which says little about the process.
Status destroyNow(virConnect* connection, const InstanceId& id) {
    auto domain = lookUp(connection, id, "end");
    if (!domain) {
        return domain.error().code == ErrorCode::NotFound ? Status{} : Status(fail(domain.error()));
    }
    if (virDomainDestroyFlags(domain->get(), VIR_DOMAIN_DESTROY_DEFAULT) == 0 || lastErrorIsNoDomain()) {
        return {};
    }
    Error error = lastLibvirtError(aboutInstance("end", id));
    // "domain is not running": it ended by itself just now.
    return error.code == ErrorCode::WrongState ? Status{} : Status(fail(std::move(error)));
}

} // namespace

/// One destroy in a thread of its own, and two ways to learn that it is over: the emulator's pidfd and libvirt's
/// answer.
class LibvirtHypervisor::Ending {
public:
    using Find = std::function<std::optional<EmulatorProcess>()>;

    Ending(LibvirtConnection& connection, const InstanceId& id, Find find)
        : m_find(std::move(find))
        , m_process(m_find())
        , m_done(::eventfd(0, EFD_CLOEXEC)) {
        m_thread = std::thread([this, &connection, id] {
            auto status = connection.repeatable([&id](virConnect* connected) { return destroyNow(connected, id); });
            if (!status && processHasEnded()) {
                log::warning("the emulator has ended, but libvirt could not be told",
                             {{"INSTANCE", id.text()}, {"REASON", status.error().message}});
            }
            if (status) {
                status = killWhatIsLeft(id);
            }
            {
                const std::lock_guard lock(m_mutex);
                m_status = std::move(status);
            }
            eventfd_write(m_done.get(), 1);
        });
    }
    ~Ending() { m_thread.join(); }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

    Status wait(const InstanceId& id, std::chrono::milliseconds timeout) {
        const auto deadline = Clock::now() + timeout;
        while (true) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
            if (processHasEnded()) {
                return {}; // whatever libvirt says
            }
            const auto status = statusNow();
            if (status && !*status) {
                return *status;
            }
            const int process = processDescriptor();
            if (status && process < 0) {
                return {};
            }
            // libvirt's word is not enough: the files and the user of a living emulator must not be given to another.
            std::array<pollfd, 2> entries{{{status ? -1 : m_done.get(), POLLIN, 0}, {process, POLLIN, 0}}};
            const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(left > 0 ? left : 0));
            if (ready < 0 && errno != EINTR) {
                return failErrno(aboutInstance("wait for the end of", id), errno);
            }
            if (ready > 0) {
                continue;
            }
            if (left <= 0) {
                return fail(ErrorCode::TimedOut,
                            fmt::format("the emulator of instance {} did not end within {} ms; {}", id.text(),
                                        timeout.count(),
                                        status ? "it was killed, but the kernel keeps it: see what its disk waits for"
                                               : "libvirt goes on trying"));
            }
        }
    }
    bool isFinished() {
        const std::lock_guard lock(m_mutex);
        return m_status.has_value();
    }
    bool processHasEnded() {
        const std::lock_guard lock(m_mutex);
        return m_process && hasEnded(m_process->pidfd);
    }

private:
    /// After libvirt has said that there is nothing (any more).
    Status killWhatIsLeft(const InstanceId& id) {
        std::unique_lock lock(m_mutex);
        if (!m_process) {
            // Begun while we asked: a start that libvirt did not finish.
            lock.unlock();
            auto found = m_find();
            lock.lock();
            m_process = std::move(found);
        }
        if (!m_process || hasEnded(m_process->pidfd)) {
            return {};
        }
        log::warning("an emulator lives that libvirt says is gone; it is killed",
                     {{"INSTANCE", id.text()}, {"PID", std::to_string(m_process->pid)}});
        if (auto killed = killProcess(m_process->pidfd); !killed) {
            return fail(killed.error().in(aboutInstance("end", id)));
        }
        return {};
    }
    std::optional<Status> statusNow() {
        const std::lock_guard lock(m_mutex);
        return m_status;
    }
    /// -1: no process. Stays open: a process that was found is not forgotten.
    int processDescriptor() {
        const std::lock_guard lock(m_mutex);
        return m_process ? m_process->pidfd.get() : -1;
    }

    Find m_find;
    std::optional<EmulatorProcess> m_process;
    UniqueFd m_done;
    std::mutex m_mutex;
    std::optional<Status> m_status;
    std::thread m_thread;
};

LibvirtHypervisor::LibvirtHypervisor(LibvirtConnection& connection, LibvirtHypervisorOptions options)
    : m_connection(connection)
    , m_options(std::move(options)) {}

LibvirtHypervisor::~LibvirtHypervisor() = default;

Result<pid_t> LibvirtHypervisor::start(const core::InstanceSpec& spec) {
    DomainXmlOptions xmlOptions;
    if (m_options.consoleLogDirectory) {
        xmlOptions.consoleLog = *m_options.consoleLogDirectory / (spec.id.text() + ".log");
    }
    xmlOptions.readonlyPreload = m_options.readonlyPreload;
    const auto xml = domainXml(spec, xmlOptions);
    if (!xml) {
        return fail(xml.error().in("cannot start an emulator"));
    }
    auto connection = m_connection.acquire();
    if (!connection) {
        return fail(connection.error());
    }
    // No AUTODESTROY: guests outlive the daemon.
    const DomainHandle domain(virDomainCreateXML(connection->get(), xml->c_str(),
                                                 spec.memoryImage ? VIR_DOMAIN_START_PAUSED : VIR_DOMAIN_NONE));
    if (!domain) {
        return fail(lastLibvirtError(aboutInstance("start the emulator of", spec.id)));
    }
    auto pid = checkStarted(spec);
    if (!pid) {
        if (auto destroyed = destroy(spec.id); !destroyed) {
            log::warning("an emulator that must not run could not be ended",
                         {{"INSTANCE", spec.id.text()}, {"REASON", destroyed.error().message}});
        }
    }
    return pid;
}

Result<pid_t> LibvirtHypervisor::checkStarted(const core::InstanceSpec& spec) {
    const auto process = findEmulator(m_options.pidDirectory, spec.id);
    if (!process) {
        return fail(ErrorCode::HostFailure,
                    fmt::format("the emulator of instance {} ended at once, or libvirt left no pid file in {}",
                                spec.id.text(), m_options.pidDirectory.string()));
    }
    if (process->uid != spec.emulatorUid) {
        return fail(ErrorCode::HostFailure,
                    fmt::format("the emulator of instance {} runs as user {} instead of {}: libvirt's DAC security "
                                "driver is off (security_driver in /etc/libvirt/qemu.conf)",
                                spec.id.text(), process->uid, spec.emulatorUid));
    }
    return process->pid;
}

Status LibvirtHypervisor::destroy(const InstanceId& id) {
    forgetFinished();
    return beginDestroy(id)->wait(id, m_options.destroyTimeout);
}

std::shared_ptr<LibvirtHypervisor::Ending> LibvirtHypervisor::beginDestroy(const InstanceId& id) {
    const std::lock_guard lock(m_mutex);
    auto& ending = m_endings[id];
    if (!ending || ending->isFinished()) {
        ending = std::make_shared<Ending>(m_connection, id, [this, id] { return findProcess(id); });
    }
    return ending;
}

std::optional<EmulatorProcess> LibvirtHypervisor::findProcess(const InstanceId& id) const {
    auto process = findEmulator(m_options.pidDirectory, id);
    return process ? std::move(process) : searchEmulator(m_options.emulatorUsers, id);
}

void LibvirtHypervisor::forgetFinished() {
    // Joined outside the lock, though a finished thread is joined at once.
    std::vector<std::shared_ptr<Ending>> finished;
    const std::lock_guard lock(m_mutex);
    for (auto entry = m_endings.begin(); entry != m_endings.end();) {
        if (entry->second->isFinished()) {
            finished.push_back(std::move(entry->second));
            entry = m_endings.erase(entry);
        } else {
            ++entry;
        }
    }
}

bool LibvirtHypervisor::isEnding(const InstanceId& id) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_endings.find(id);
    return found != m_endings.end() && found->second->processHasEnded();
}

Result<std::vector<core::ObservedInstance>> LibvirtHypervisor::list() {
    return m_connection.repeatable([this](virConnect* connection) -> Result<std::vector<core::ObservedInstance>> {
        virDomainPtr* domains = nullptr;
        const int count = virConnectListAllDomains(connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
        if (count < 0) {
            return fail(lastLibvirtError("cannot list the running emulators"));
        }
        std::vector<DomainHandle> owned(domains, domains + count);
        std::free(domains);
        std::vector<core::ObservedInstance> seen;
        for (const DomainHandle& domain : owned) {
            const auto id = idOf(domain.get());
            if (!id || isEnding(*id)) {
                continue;
            }
            int state = VIR_DOMAIN_NOSTATE;
            int reason = 0;
            if (virDomainGetState(domain.get(), &state, &reason, 0) < 0) {
                if (lastErrorIsNoDomain()) {
                    continue; // it ended while we looked
                }
                return fail(lastLibvirtError(aboutInstance("look at", *id)));
            }
            if (state == VIR_DOMAIN_SHUTOFF || state == VIR_DOMAIN_CRASHED) {
                continue;
            }
            const auto process = findEmulator(m_options.pidDirectory, *id);
            seen.push_back({*id, process ? process->pid : 0,
                            state == VIR_DOMAIN_PAUSED || state == VIR_DOMAIN_PMSUSPENDED,
                            state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_IOERROR});
        }
        return seen;
    });
}

Status LibvirtHypervisor::pause(const InstanceId& id) {
    return m_connection.repeatable([&id](virConnect* connection) -> Status {
        auto domain = lookUp(connection, id, "pause");
        if (!domain) {
            return fail(domain.error());
        }
        int state = VIR_DOMAIN_NOSTATE;
        if (virDomainGetState(domain->get(), &state, nullptr, 0) == 0 && state == VIR_DOMAIN_PAUSED) {
            return {};
        }
        if (virDomainSuspend(domain->get()) < 0) {
            return fail(lastLibvirtError(aboutInstance("pause", id)));
        }
        return {};
    });
}

Status LibvirtHypervisor::resume(const InstanceId& id) {
    return m_connection.repeatable([&id](virConnect* connection) -> Status {
        auto domain = lookUp(connection, id, "resume");
        if (!domain) {
            return fail(domain.error());
        }
        int state = VIR_DOMAIN_NOSTATE;
        if (virDomainGetState(domain->get(), &state, nullptr, 0) == 0 && state == VIR_DOMAIN_RUNNING) {
            return {};
        }
        if (virDomainResume(domain->get()) < 0) {
            return fail(lastLibvirtError(aboutInstance("resume", id)));
        }
        return {};
    });
}

Result<core::Displays::Picture> LibvirtHypervisor::screenshot(const InstanceId& instance, unsigned head) {
    return m_connection.repeatable([&](virConnect* connection) -> Result<Picture> {
        const auto domain = lookUp(connection, instance, "take a picture of");
        if (!domain) {
            return fail(domain.error());
        }
        const StreamHandle stream(virStreamNew(connection, 0));
        UniqueFd file(::memfd_create("screenshot", MFD_CLOEXEC));
        if (!stream || !file) {
            return fail(ErrorCode::HostFailure, aboutInstance("take a picture of", instance));
        }
        const std::unique_ptr<char, void (*)(void*)> type(virDomainScreenshot(domain->get(), stream.get(), head, 0),
                                                          std::free);
        if (!type) {
            return fail(lastLibvirtError(aboutInstance("take a picture of", instance)));
        }
        if (virStreamRecvAll(stream.get(), keepBytes, &file) < 0 || virStreamFinish(stream.get()) < 0) {
            return fail(lastLibvirtError(aboutInstance("take a picture of", instance)));
        }
        ::lseek(file.get(), 0, SEEK_SET);
        return Picture{std::move(file), type.get()};
    });
}

Result<UniqueFd> LibvirtHypervisor::openDisplay(const InstanceId& instance) {
    return m_connection.repeatable([&instance](virConnect* connection) -> Result<UniqueFd> {
        const auto domain = lookUp(connection, instance, "open the display of");
        if (!domain) {
            return fail(domain.error());
        }
        const int fd = virDomainOpenGraphicsFD(domain->get(), 0, 0);
        if (fd >= 0) {
            return UniqueFd(fd);
        }
        // libvirt's word for "this machine has no graphics device".
        const virError* const error = virGetLastError();
        if (error != nullptr && (error->code == VIR_ERR_INTERNAL_ERROR || error->code == VIR_ERR_CONFIG_UNSUPPORTED ||
                                 error->code == VIR_ERR_INVALID_ARG)) {
            return fail(ErrorCode::WrongState,
                        fmt::format("it has no display ({})", error->message != nullptr ? error->message : "?"));
        }
        return fail(lastLibvirtError(aboutInstance("open the display of", instance)));
    });
}

} // namespace bulkhead::hypervisor
