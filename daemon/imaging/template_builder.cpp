// SPDX-License-Identifier: Apache-2.0
#include "imaging/template_builder.hpp"

#include "base/escaping.hpp"
#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "imaging/file_tree.hpp"
#include "process/run.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

/// Raised when a build of the same definition by the same program must be done again.
constexpr std::uint64_t kBuilderRevision = 2;
constexpr int kProgressDescriptor = 3;
/// What a template takes while it is built: packages, the tree, the archive and the disk at once.
constexpr Bytes kBuildNeeds = 3 * kGiB;
constexpr Bytes kDesktopBuildNeeds = 7 * kGiB;

/// A template's files are a handful of settings.
constexpr std::size_t kMostFiles = 2000;

/// All below the folder, by relative path. Anything but folders, files and links is refused: a build would hang on it.
Result<std::vector<std::filesystem::directory_entry>> filesBelow(const std::filesystem::path& folder) {
    std::vector<std::filesystem::directory_entry> found;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(folder, error); at != std::filesystem::end(at);
         at.increment(error)) {
        const auto type = at->symlink_status().type();
        if (type != std::filesystem::file_type::directory && type != std::filesystem::file_type::regular &&
            type != std::filesystem::file_type::symlink) {
            return fail(ErrorCode::InvalidArgument, at->path().string() + " is no file, folder or link; take it out");
        }
        found.push_back(*at);
        if (found.size() > kMostFiles) {
            return fail(ErrorCode::LimitExceeded, folder.string() + " holds more than " + std::to_string(kMostFiles) +
                                                      " files; put them into a package instead");
        }
    }
    if (error) {
        return failErrno("read the template's files in " + folder.string(), error.value());
    }
    std::sort(found.begin(), found.end());
    return found;
}

} // namespace

std::optional<BuildProgress> parseBuildProgress(std::string_view line) {
    const auto nextWord = [&line] {
        const std::size_t end = std::min(line.find(' '), line.size());
        const std::string_view word = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
        return word;
    };
    if (nextWord() != "PHASE") {
        return std::nullopt;
    }
    const std::string_view word = nextWord();
    const std::string_view number = nextWord();
    double fraction = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fraction);
    if (word.empty() || error != std::errc{} || end != number.data() + number.size() ||
        !(fraction >= 0 && fraction <= 1)) {
        return std::nullopt;
    }
    return BuildProgress{escapeUntrusted(line.empty() ? word : line, 200), fraction};
}

Result<std::string> ProcessTemplateBuilder::digestOf(const std::filesystem::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        return failErrno("cannot read " + file.string(), errno);
    }
    const std::vector<std::int64_t> stamp{static_cast<std::int64_t>(status.st_dev),
                                          static_cast<std::int64_t>(status.st_ino),
                                          status.st_size,
                                          status.st_mtim.tv_sec,
                                          status.st_mtim.tv_nsec,
                                          status.st_ctim.tv_sec,
                                          status.st_ctim.tv_nsec};
    const std::lock_guard lock(m_mutex);
    if (const auto known = m_digests.find(file); known != m_digests.end() && known->second.stamp == stamp) {
        return known->second.digest;
    }
    auto digest = digestOfFile(file);
    if (digest) {
        m_digests[file] = {stamp, *digest};
    }
    return digest;
}

Status ProcessTemplateBuilder::addFiles(Digest& digest, const core::TemplateDefinition& definition) {
    if (!definition.files) {
        return {};
    }
    const auto files = filesBelow(*definition.files);
    if (!files) {
        return fail(files.error());
    }
    digest.addNumber(files->size());
    for (const auto& file : *files) {
        const auto status = file.symlink_status();
        digest.addText(file.path().lexically_relative(*definition.files).native());
        const auto run = status.permissions() & std::filesystem::perms::owner_exec;
        digest.addNumber(run == std::filesystem::perms::none ? 0 : 1); // all that a build takes over
        if (file.is_symlink()) {
            digest.addText("link");
            std::error_code error;
            digest.addText(std::filesystem::read_symlink(file.path(), error).native());
        } else if (file.is_directory()) {
            digest.addText("folder");
        } else if (const auto content = digestOf(file.path())) {
            digest.addText(*content);
        } else {
            return fail(content.error());
        }
    }
    return {};
}

Result<std::string> ProcessTemplateBuilder::definitionHash(const core::TemplateDefinition& definition) {
    Digest digest;
    digest.addNumber(kBuilderRevision);
    digest.addText(definition.name);
    digest.addText(definition.suite);
    digest.addText(definition.kernel);
    std::vector<std::string> packages = definition.packages;
    std::sort(packages.begin(), packages.end());
    digest.addNumber(packages.size());
    for (const std::string& package : packages) {
        digest.addText(package);
    }
    digest.addNumber(definition.systemSize);
    digest.addText(nameOf(definition.init));
    digest.addNumber(definition.heads);
    if (auto added = addFiles(digest, definition); !added) {
        return fail(added.error().in("template \"" + definition.name + "\""));
    }
    std::vector<std::filesystem::path> files{m_options.program, m_options.agent};
    files.insert(files.end(), m_options.inputs.begin(), m_options.inputs.end());
    // Its absence is no reason not to list templates; a build says what is missing.
    if (definition.heads > 0 && isThere(m_options.session)) {
        files.push_back(m_options.session);
    }
    for (const std::filesystem::path& file : files) {
        const auto content = digestOf(file);
        if (!content) {
            return fail(content.error().in("template \"" + definition.name + "\""));
        }
        digest.addText(*content);
    }
    return digest.finish();
}

Result<process::Identity> ProcessTemplateBuilder::buildIdentity() const {
    const long hint = ::sysconf(_SC_GETPW_R_SIZE_MAX);
    std::vector<char> buffer(hint > 0 ? static_cast<std::size_t>(hint) : 16384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwnam_r(m_options.user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
        return fail(ErrorCode::Unavailable,
                    "there is no user \"" + m_options.user +
                        "\" to build templates as; make it: systemd-sysusers, or: adduser --system "
                        "--group --no-create-home " +
                        m_options.user + " (it needs ranges in /etc/subuid and /etc/subgid)");
    }
    if (found->pw_uid == 0) {
        return fail(ErrorCode::Unavailable,
                    "templates are never built as root, but \"" + m_options.user + "\" has uid 0");
    }
    return process::Identity{found->pw_uid, found->pw_gid};
}

process::ProcessSpec ProcessTemplateBuilder::specFor(const core::TemplateDefinition& definition,
                                                     const std::filesystem::path& folder,
                                                     const process::Identity& identity) const {
    process::ProcessSpec spec;
    spec.program = m_options.program;
    spec.arguments = {"--output", folder.string(),          "--name",        definition.name,
                      "--agent",  m_options.agent.string(), "--suite",       definition.suite,
                      "--kernel", definition.kernel,        "--system-size", std::to_string(definition.systemSize)};
    spec.arguments.insert(spec.arguments.end(), {"--init", std::string(nameOf(definition.init))});
    if (definition.files) {
        spec.arguments.insert(spec.arguments.end(), {"--files", definition.files->string()});
    }
    if (definition.heads > 0) {
        spec.arguments.insert(spec.arguments.end(), {"--session", m_options.session.string()});
    }
    for (const std::string& package : definition.packages) {
        spec.arguments.emplace_back("--package");
        spec.arguments.push_back(package);
    }
    spec.environment = process::toolEnvironment();
    spec.environment.push_back("HOME=" + folder.string());
    spec.environment.push_back("TMPDIR=" + folder.string());
    spec.environment.push_back("USER=" + m_options.user);
    if (::geteuid() != identity.uid) {
        spec.identity = identity;
    }
    spec.workingDirectory = folder;
    spec.newSession = true;
    // newuidmap and newgidmap, with which the build gets its range of ids, are set-id programs.
    spec.noNewPrivileges = false;
    spec.umask = 022;
    spec.deathSignal = SIGTERM;
    return spec;
}

Result<core::BuiltTemplate> ProcessTemplateBuilder::build(const core::TemplateDefinition& definition,
                                                          const core::ProgressSink& progress, std::stop_token cancel) {
    const auto identity = buildIdentity();
    if (!identity) {
        return fail(identity.error());
    }
    auto hash = definitionHash(definition);
    if (!hash) {
        return fail(hash.error());
    }
    if (definition.heads > 0 && !isThere(m_options.session)) {
        return fail(ErrorCode::Unavailable,
                    "the template has a display, which needs the program " + m_options.session.string() +
                        "; install all of Bulkhead (this part comes with the desktop templates)");
    }
    if (auto room = checkSpace(m_space, m_options.workDirectory,
                               definition.heads > 0 ? kDesktopBuildNeeds : kBuildNeeds, "building a template");
        !room) {
        return fail(room.error());
    }
    std::error_code error;
    std::filesystem::create_directories(m_options.workDirectory, error);
    if (auto ready = ensureFolder(m_options.workDirectory, {0711, ::geteuid(), ::getegid()}); !ready) {
        return fail(ready.error());
    }
    const std::filesystem::path folder = m_options.workDirectory / randomUuidText();
    ScopeGuard undo([&] { discard({folder, {}}); });
    // o+x: the ids of the build's user namespace pass through it on their way to its root.
    if (auto made = makeFolder(folder, {0711, identity->uid, identity->gid}); !made) {
        return fail(made.error());
    }
    process::RunOptions options;
    options.timeout = m_options.timeout;
    options.cancel = std::move(cancel);
    options.progressDescriptor = kProgressDescriptor;
    options.onProgressLine = [&progress](std::string_view line) {
        if (const auto step = parseBuildProgress(line); step && progress) {
            progress(step->phase, step->fraction);
        }
    };
    const auto result = process::runChecked(specFor(definition, folder, *identity), options);
    if (!result) {
        return fail(result.error());
    }
    undo.dismiss();
    return core::BuiltTemplate{folder, std::move(*hash)};
}

void ProcessTemplateBuilder::discard(const core::BuiltTemplate& built) {
    if (built.directory.parent_path() != m_options.workDirectory) {
        return; // nothing that we made
    }
    if (auto removed = removeTree(built.directory); !removed) {
        log::warning("a build's folder cannot be removed", {{"ERROR", removed.error().message}});
    }
}

void ProcessTemplateBuilder::removeLeftovers() {
    const auto names = listFolder(m_options.workDirectory);
    if (!names) {
        log::warning("builds that were interrupted cannot be removed", {{"ERROR", names.error().message}});
        return;
    }
    for (const std::string& name : *names) {
        discard({m_options.workDirectory / name, {}});
    }
}

} // namespace bulkhead::imaging
