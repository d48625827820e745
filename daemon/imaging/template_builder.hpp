// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "imaging/digest.hpp"
#include "imaging/disk_space.hpp"
#include "process/process_spec.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::imaging {

/// core::TemplateBuilder that runs the program bulkhead-build as an unprivileged user in a folder of its own.
class ProcessTemplateBuilder final : public core::TemplateBuilder {
public:
    struct Options {
        std::filesystem::path program;       ///< bulkhead-build
        std::filesystem::path agent;         ///< the guest agent's binary
        std::filesystem::path workDirectory; ///< /var/cache/bulkhead/build
        std::string user = "bulkhead-build"; ///< whom builds run as
        /// Further files that a build depends on.
        std::vector<std::filesystem::path> inputs = {};
        std::chrono::milliseconds timeout{std::chrono::minutes(45)};
        std::filesystem::path session = {}; ///< bulkhead-session; only templates with heads need it
    };
    explicit ProcessTemplateBuilder(Options options, SpaceProbe space = fileSystemSpace)
        : m_options(std::move(options))
        , m_space(std::move(space)) {}

    /// Depends on name, suite, kernel, packages (in any order), system size, first process, heads, files, the agent,
    /// the session program where there are heads, the builder and its inputs, and not on what a build does not see
    /// (sizes, description).
    Result<std::string> definitionHash(const core::TemplateDefinition& definition) override;
    /// Unavailable when there is no build user; NoSpace, Cancelled, TimedOut.
    Result<core::BuiltTemplate> build(const core::TemplateDefinition& definition, const core::ProgressSink& progress,
                                      std::stop_token cancel) override;
    void discard(const core::BuiltTemplate& built) override;
    void removeLeftovers() override;

private:
    /// The digest of a file, read again only when it has changed: `template ls` asks for it each time.
    Result<std::string> digestOf(const std::filesystem::path& file);
    Status addFiles(Digest& digest, const core::TemplateDefinition& definition);
    Result<process::Identity> buildIdentity() const;
    process::ProcessSpec specFor(const core::TemplateDefinition& definition, const std::filesystem::path& folder,
                                 const process::Identity& identity) const;

    struct KnownDigest {
        std::vector<std::int64_t> stamp;
        std::string digest;
    };
    Options m_options;
    SpaceProbe m_space;
    std::mutex m_mutex;
    std::map<std::filesystem::path, KnownDigest> m_digests;
};

/// One line of bulkhead-build's progress: `PHASE <word> <fraction> <text>`.
struct BuildProgress {
    std::string phase; ///< the text, escaped; the word when there is none
    double fraction = 0;
};
/// None for anything else: the line comes from an unprivileged program.
std::optional<BuildProgress> parseBuildProgress(std::string_view line);

} // namespace bulkhead::imaging
