// SPDX-License-Identifier: Apache-2.0
#include "link/host_time_zone.hpp"

#include "base/log.hpp"
#include "process/poller.hpp"
#include "protocol/time_zone.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace bulkhead::link {

std::string hostTimeZone(const std::filesystem::path& etc) {
    constexpr std::string_view kFolder = "/zoneinfo/";
    std::error_code error; // a file in the link's place is as good as none: it has no name
    const std::string target = std::filesystem::read_symlink(etc / "localtime", error).string();
    const std::size_t at = target.rfind(kFolder);
    std::string name = at == std::string::npos ? std::string() : target.substr(at + kFolder.size());
    if (name.empty()) {
        std::ifstream file(etc / "timezone");
        std::getline(file, name);
    }
    return protocol::isTimeZoneName(name) ? name : std::string();
}

HostTimeZoneWatch::HostTimeZoneWatch(process::Poller& poller, std::function<void()> changed,
                                     const std::filesystem::path& etc)
    : m_poller(poller)
    , m_changed(std::move(changed))
    , m_etc(etc)
    , m_watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
    , m_zone(hostTimeZone(etc)) {
    // The folder, not the files: they are replaced, never written.
    if (!m_watch || ::inotify_add_watch(m_watch.get(), etc.c_str(), IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE) < 0) {
        log::notice("changes of the host's time zone are not noticed", {{"ERROR", std::strerror(errno)}});
        m_watch.reset();
        return;
    }
    if (auto added = m_poller.add(m_watch.get(), EPOLLIN, [this](std::uint32_t) { onReadable(); }); !added) {
        log::notice("changes of the host's time zone are not noticed", {{"ERROR", added.error().message}});
        m_watch.reset();
    }
}

HostTimeZoneWatch::~HostTimeZoneWatch() {
    if (m_watch) {
        m_poller.remove(m_watch.get());
    }
}

void HostTimeZoneWatch::onReadable() {
    // What they say does not matter: some file of the folder came, and looking costs nothing.
    std::array<char, 4096> events{};
    while (::read(m_watch.get(), events.data(), events.size()) > 0) {
    }
    std::string zone = hostTimeZone(m_etc);
    if (zone != m_zone) {
        m_zone = std::move(zone);
        m_changed();
    }
}

} // namespace bulkhead::link
