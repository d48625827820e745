// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "build/apt_sources.hpp"
#include "build/options.hpp"
#include "build/progress.hpp"
#include "process/run.hpp"

#include <filesystem>
#include <initializer_list>
#include <stop_token>
#include <string>
#include <vector>

namespace bulkhead::imaging::build {

/// Builds one template's files: root.img, vmlinuz, initrd.img, packages.txt and build.log in the output folder. All
/// that is not one of them lies in a folder of its own under TMPDIR (or /var/tmp) and is gone afterwards.
class Builder {
public:
    Builder(BuildOptions options, Progress progress, std::stop_token cancel);
    ~Builder();
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

    /// Once. After a failure the output folder is empty again.
    Status build();
    /// What the tools said.
    [[nodiscard]] const std::string& log() const { return m_log; }

private:
    Status prepare();
    Status bootstrap();
    Status unpack();
    Status takeOut();
    Status makeFileSystem();
    [[nodiscard]] std::vector<std::string> bootstrapArguments() const;
    Status writeOverlay() const;
    /// What apt says in a domain of where changes belong.
    Status writeNotice() const;
    /// The template's own files and our programs.
    Status addFiles() const;
    Status runTool(const std::string& program, std::vector<std::string> arguments,
                   std::vector<std::string> environment = {});
    /// As root of a user namespace that maps all our subordinate ids.
    Status runMapped(std::vector<std::string> command);
    void removeWork();
    void removeOutput() const;

    BuildOptions m_options;
    Progress m_progress;
    std::stop_token m_cancel;
    std::filesystem::path m_work;
    std::string m_kernelVersion;
    std::string m_log;
    AptOptions m_aptOptions;
    std::string m_aptAuth; ///< for the time of the build only
};

} // namespace bulkhead::imaging::build
