// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <chrono>
#include <filesystem>
#include <string>

namespace bulkhead {

/// Where things are. Everything has its place after installation; the options are for private hosts (tests) and for
/// people who build their own.
struct Settings {
    std::filesystem::path stateDirectory = "/var/lib/bulkhead";
    std::filesystem::path runtimeDirectory = "/run/bulkhead";
    std::filesystem::path cacheDirectory = "/var/cache/bulkhead";
    std::filesystem::path configDirectory = "/etc/bulkhead";
    std::filesystem::path dataDirectory;    ///< templates.d lies in it
    std::filesystem::path libexecDirectory; ///< bulkhead-channel, bulkhead-build, bulkhead-agent, bulkhead-session
    std::filesystem::path libraryDirectory; ///< libraries that emulators load
    std::string libvirtUri = "qemu:///system";
    std::string imageGroup = "kvm"; ///< may read templates; emulators run with it
    /// How the daemon reaches guests: auto takes vsock where the host has it.
    std::string transport = "auto";
    /// When warm images are made: auto (after a template was built, and after a domain had to boot), or on-request.
    std::string warmImages = "auto";
    /// Emulators that wait for the next start, so that it need not wait for libvirt; 0: none.
    unsigned waitingShells = 1;
    /// For how long removed domains can be restored; 0: not at all.
    std::chrono::seconds keepDeleted = std::chrono::hours(7 * 24);
    std::string buildUser = "bulkhead-build";
    bool showHelp = false;
    bool showVersion = false;
};

/// InvalidArgument names the option.
Result<Settings> readCommandLine(int argc, char** argv);
std::string usageText();

} // namespace bulkhead
