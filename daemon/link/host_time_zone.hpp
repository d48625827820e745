// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace bulkhead::process {
class Poller;
} // namespace bulkhead::process

namespace bulkhead::link {

/// The name of the host's time zone, as timedatectl and Debian's installer set it (`etc`/localtime is a link to it, or
/// `etc`/timezone names it). Empty: not known, so a guest keeps the one it has.
std::string hostTimeZone(const std::filesystem::path& etc = "/etc");

/// Tells when the host's time zone may have changed, so that running guests follow.
class HostTimeZoneWatch {
public:
    /// `changed` is called on the poller's thread. Where the kernel gives no watch, guests follow at their next start.
    /// `poller` must outlive this.
    HostTimeZoneWatch(process::Poller& poller, std::function<void()> changed,
                      const std::filesystem::path& etc = "/etc");
    ~HostTimeZoneWatch();
    HostTimeZoneWatch(const HostTimeZoneWatch&) = delete;
    HostTimeZoneWatch& operator=(const HostTimeZoneWatch&) = delete;

private:
    void onReadable();

    process::Poller& m_poller;
    std::function<void()> m_changed;
    std::filesystem::path m_etc;
    UniqueFd m_watch;
    std::string m_zone; ///< as it was last told; poller's thread only
};

} // namespace bulkhead::link
