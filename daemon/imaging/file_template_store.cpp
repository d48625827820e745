// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_template_store.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/model/domain.hpp"
#include "imaging/digest.hpp"
#include "imaging/sparse_copy.hpp"
#include "imaging/template_manifest.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

struct Artefact {
    const char* name;
    Bytes most; ///< a build cannot make us copy more than this
};
constexpr std::size_t kMostManifest = std::size_t{64} * 1024;
constexpr std::size_t kVersionsKept = 2;
constexpr Bytes kMostDisk = 16 * 1024 * kGiB;
constexpr const char* kPackageList = "packages.txt";
constexpr Bytes kMostPackageList = 16 * kMiB;
constexpr std::array<Artefact, 4> kArtefacts{
    {{"root.img", kMostDisk}, {"vmlinuz", 256 * kMiB}, {"initrd.img", 512 * kMiB}, {kPackageList, kMostPackageList}}};

/// The folder that a build has left, and the user whose it is.
struct BuildFolder {
    UniqueFd fd;
    uid_t user = 0;
};

Result<BuildFolder> openBuild(const core::BuiltTemplate& built) {
    BuildFolder folder{UniqueFd(::open(built.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), 0};
    struct stat status {};
    if (!folder.fd || ::fstat(folder.fd.get(), &status) != 0) {
        return failErrno("cannot open the build " + built.directory.string(), errno);
    }
    folder.user = status.st_uid;
    return folder;
}

struct Source {
    UniqueFd fd;
    Bytes onDisk = 0;
};

/// Opens a file that the build user left.
Result<Source> openArtefact(int folder, const char* name, uid_t buildUser) {
    const std::string what = "the build's " + std::string(name);
    Source source{UniqueFd(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)), 0};
    if (!source.fd) {
        return failErrno("cannot open " + what, errno);
    }
    struct stat status {};
    if (::fstat(source.fd.get(), &status) != 0) {
        return failErrno("cannot look at " + what, errno);
    }
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_uid != buildUser) {
        return fail(ErrorCode::HostFailure, what + " is not a regular file of the build user with one name");
    }
    if (status.st_size == 0) {
        return fail(ErrorCode::HostFailure, what + " is empty");
    }
    source.onDisk = static_cast<Bytes>(status.st_blocks) * 512;
    return source;
}

std::string versionOf(const core::InstalledTemplate& installed) {
    Digest digest;
    for (const auto& [name, hash] : installed.artefacts) {
        digest.addText(name);
        digest.addText(hash);
    }
    return digest.finish().substr(0, 32);
}

tl::unexpected<Error> notBuilt(const std::string& name) {
    return fail(ErrorCode::NotFound,
                "template \"" + name + "\" is not built; run: sudo bulkhead template build " + name);
}

} // namespace

Result<core::InstalledTemplate> FileTemplateStore::load(const std::string& name, const std::string& version) const {
    const auto folder = m_layout.templateVersion(name, version);
    if (!folder) {
        return fail(folder.error());
    }
    const std::filesystem::path file = *folder / kManifestName;
    const auto text = readSmallFile(file, kMostManifest);
    if (!text) {
        return fail(text.error());
    }
    auto installed = readManifest(*text, file.string());
    if (!installed) {
        return installed;
    }
    if (installed->name != name || installed->version != version) {
        return fail(ErrorCode::HostFailure, file.string() + " is of another template");
    }
    installed->directory = *folder;
    for (const Artefact& artefact : kArtefacts) {
        struct stat status {};
        if (!installed->artefacts.contains(artefact.name) || ::lstat((*folder / artefact.name).c_str(), &status) != 0 ||
            !S_ISREG(status.st_mode)) {
            return fail(ErrorCode::HostFailure, (*folder / artefact.name).string() + " is missing");
        }
    }
    return installed;
}

Result<std::vector<core::InstalledTemplate>> FileTemplateStore::versionsOf(const std::string& name) const {
    const auto names = listFolder(m_layout.templates() / name);
    if (!names) {
        return fail(names.error());
    }
    std::vector<core::InstalledTemplate> versions;
    for (const std::string& version : *names) {
        if (version.starts_with('.')) {
            continue;
        }
        auto installed = load(name, version);
        if (!installed) {
            log::warning("an installed template cannot be used; build it again",
                         {{"TEMPLATE", name}, {"ERROR", installed.error().message}});
            continue;
        }
        versions.push_back(std::move(*installed));
    }
    std::stable_sort(versions.begin(), versions.end(),
                     [](const auto& a, const auto& b) { return a.builtAt > b.builtAt; });
    return versions;
}

Result<core::InstalledTemplate> FileTemplateStore::newest(const std::string& name) const {
    auto versions = versionsOf(name);
    if (!versions) {
        return fail(versions.error());
    }
    if (versions->empty()) {
        return notBuilt(name);
    }
    return std::move(versions->front());
}

Result<std::vector<core::InstalledTemplate>> FileTemplateStore::installed() {
    const auto names = listFolder(m_layout.templates());
    if (!names) {
        return fail(names.error());
    }
    std::vector<core::InstalledTemplate> found;
    for (const std::string& name : *names) {
        if (!core::checkSimpleName("template", name)) {
            continue;
        }
        if (auto installed = newest(name)) {
            found.push_back(std::move(*installed));
        } else if (installed.error().code != ErrorCode::NotFound) {
            return fail(installed.error());
        }
    }
    return found;
}

bool FileTemplateStore::has(const std::string& name, const std::string& version) {
    return core::checkSimpleName("template", name) && m_layout.templateVersion(name, version) && load(name, version);
}

Result<core::InstalledTemplate> FileTemplateStore::find(const std::string& name) {
    if (auto named = core::checkSimpleName("template", name); !named) {
        return fail(named.error());
    }
    return newest(name);
}

Result<core::InstalledTemplate> FileTemplateStore::copyIn(const core::TemplateDefinition& definition,
                                                          const core::BuiltTemplate& built,
                                                          const std::filesystem::path& target) {
    const auto folder = openBuild(built);
    if (!folder) {
        return fail(folder.error());
    }
    std::array<Source, kArtefacts.size()> sources;
    Bytes needed = 0;
    for (std::size_t i = 0; i < kArtefacts.size(); ++i) {
        auto source = openArtefact(folder->fd.get(), kArtefacts[i].name, folder->user);
        if (!source) {
            return fail(source.error());
        }
        needed += source->onDisk;
        sources[i] = std::move(*source);
    }
    if (auto room = checkSpace(m_space, m_layout.state(), needed, "installing template \"" + definition.name + "\"");
        !room) {
        return fail(room.error());
    }
    core::InstalledTemplate made;
    made.name = definition.name;
    made.definitionHash = built.definitionHash;
    made.builtAt = m_clock.now();
    made.systemSize = definition.systemSize;
    made.homeSize = definition.homeSize;
    made.init = definition.init;
    made.heads = definition.heads;
    for (std::size_t i = 0; i < kArtefacts.size(); ++i) {
        const std::filesystem::path file = target / kArtefacts[i].name;
        const UniqueFd to(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!to) {
            return failErrno("cannot make " + file.string(), errno);
        }
        const auto copied = copySparse(sources[i].fd.get(), to.get(), kArtefacts[i].name, kArtefacts[i].most);
        if (!copied) {
            return fail(copied.error());
        }
        if (i == 0 && copied->size != definition.systemSize) {
            return fail(ErrorCode::HostFailure, "the build made a system disk of " + formatBytes(copied->size) +
                                                    " instead of " + formatBytes(definition.systemSize));
        }
        if (auto given = setAccess(to.get(), m_layout.sharedFile(), file); !given) {
            return fail(given.error());
        }
        if (::fsync(to.get()) != 0) {
            return failErrno("cannot write " + file.string(), errno);
        }
        struct stat status {};
        if (::fstat(to.get(), &status) == 0) {
            made.sizeOnDisk += static_cast<Bytes>(status.st_blocks) * 512;
        }
        made.artefacts.emplace(kArtefacts[i].name, copied->digest);
    }
    made.version = versionOf(made);
    return made;
}

Status FileTemplateStore::publish(core::InstalledTemplate& made, const std::filesystem::path& temporary) {
    const auto folder = m_layout.templateVersion(made.name, made.version);
    if (!folder) {
        return fail(folder.error());
    }
    made.directory = *folder;
    if (auto written = writeNewFile(temporary / kManifestName, writeManifest(made), m_layout.sharedFile(), true);
        !written) {
        return written;
    }
    if (isThere(*folder)) {
        // The very same files came out of another definition or builder: only the manifest says something new.
        if (load(made.name, made.version)) {
            return renamePath(temporary / kManifestName, *folder / kManifestName).and_then([&] {
                return syncPath(*folder);
            });
        }
        if (auto removed = removeTree(*folder); !removed) {
            return removed;
        }
    }
    return syncPath(temporary)
        .and_then([&] { return renamePath(temporary, *folder); })
        .and_then([&] { return syncPath(folder->parent_path()); })
        .and_then([&] { return syncPath(m_layout.templates()); });
}

Result<core::InstalledTemplate> FileTemplateStore::install(const core::TemplateDefinition& definition,
                                                           const core::BuiltTemplate& built,
                                                           const VersionsInUse& versionsInUse) {
    if (auto named = core::checkSimpleName("template", definition.name); !named) {
        return fail(named.error());
    }
    const std::lock_guard lock(m_installing);
    const std::filesystem::path folder = m_layout.templates() / definition.name;
    const bool isFirst = !isThere(folder);
    if (auto ready = m_layout.prepare().and_then([&] { return ensureFolder(folder, m_layout.sharedFolder()); });
        !ready) {
        return fail(ready.error());
    }
    const std::filesystem::path temporary = folder / (".new-" + randomUuidText());
    ScopeGuard undo([&] {
        [[maybe_unused]] const Status removed = removeTree(temporary);
        if (isFirst) {
            ::rmdir(folder.c_str()); // refuses when there is something in it
        }
    });
    if (auto room = makeFolder(temporary, m_layout.sharedFolder()); !room) {
        return fail(room.error());
    }
    auto made = copyIn(definition, built, temporary);
    if (!made) {
        return made;
    }
    // Also after the clock was set back: what was built last is what people want to start.
    if (const auto before = newest(made->name)) {
        made->builtAt = std::max(made->builtAt, before->builtAt + 1);
    }
    made->checkedAt = made->builtAt;
    if (auto published = publish(*made, temporary); !published) {
        return fail(published.error());
    }
    removeOldVersions(made->name, versionsInUse);
    return made;
}

Result<bool> FileTemplateStore::confirm(const std::string& name, const core::BuiltTemplate& built) {
    const std::lock_guard lock(m_installing);
    auto current = find(name);
    if (!current) {
        return current.error().code == ErrorCode::NotFound ? Result<bool>(false) : fail(current.error());
    }
    const auto folder = openBuild(built);
    if (!folder) {
        return fail(folder.error());
    }
    const auto list = openArtefact(folder->fd.get(), kPackageList, folder->user);
    if (!list) {
        return fail(list.error());
    }
    const auto digest = contentDigest(list->fd.get(), kPackageList, kMostPackageList);
    if (!digest) {
        return fail(digest.error());
    }
    if (current->definitionHash != built.definitionHash || current->artefacts[kPackageList] != digest->digest) {
        return false;
    }
    current->checkedAt = std::max(current->checkedAt, m_clock.now());
    const std::filesystem::path temporary = m_layout.templates() / name / (".checked-" + randomUuidText());
    const std::filesystem::path manifest = current->directory / kManifestName;
    if (auto written = writeNewFile(temporary, writeManifest(*current), m_layout.sharedFile(), true)
                           .and_then([&] { return renamePath(temporary, manifest); })
                           .and_then([&] { return syncPath(current->directory); });
        !written) {
        ::unlink(temporary.c_str());
        return fail(written.error());
    }
    return true;
}

void FileTemplateStore::removeOldVersions(const std::string& name, const VersionsInUse& inUse) const {
    const std::filesystem::path folder = m_layout.templates() / name;
    const auto versions = listFolder(folder);
    const auto usable = versionsOf(name);
    if (!versions || !usable) {
        return;
    }
    // A start that has planned with the version before has no record yet that says so.
    const auto kept = usable->begin() + static_cast<std::ptrdiff_t>(std::min(usable->size(), kVersionsKept));
    for (const std::string& version : *versions) {
        if (version.starts_with('.') ||
            std::any_of(usable->begin(), kept, [&](const auto& one) { return one.version == version; })) {
            continue;
        }
        const auto used = inUse();
        if (!used) {
            log::warning("old versions of a template are kept: it is not known which are in use",
                         {{"TEMPLATE", name}, {"ERROR", used.error().message}});
            return;
        }
        if (std::find(used->begin(), used->end(), version) != used->end()) {
            continue;
        }
        // First out of sight, so that nobody finds half of it.
        const std::filesystem::path going = folder / (".old-" + version);
        if (auto removed = renamePath(folder / version, going).and_then([&] { return removeTree(going); }); !removed) {
            log::warning("an old version of a template cannot be removed",
                         {{"TEMPLATE", name}, {"ERROR", removed.error().message}});
        }
    }
}

Status FileTemplateStore::removeLeftovers() {
    const std::lock_guard lock(m_installing);
    std::vector<std::filesystem::path> folders{m_layout.templates(), m_layout.bases(),     m_layout.homes(),
                                               m_layout.instances(), m_layout.snapshots(), m_layout.memoryImages()};
    const auto names = listFolder(m_layout.templates());
    if (!names) {
        return fail(names.error());
    }
    for (const std::string& name : *names) {
        folders.push_back(m_layout.templates() / name);
        const auto versions = listFolder(folders.back());
        for (const std::string& version : versions ? *versions : std::vector<std::string>()) {
            folders.push_back(m_layout.templates() / name / version / "warm");
        }
    }
    Status first;
    for (const std::filesystem::path& folder : folders) {
        const auto entries = listFolder(folder);
        if (!entries) {
            first = first ? Status(fail(entries.error())) : first;
            continue;
        }
        for (const std::string& entry : *entries) {
            if (!entry.starts_with('.')) {
                continue;
            }
            if (auto removed = removeTree(folder / entry); !removed && first) {
                first = removed;
            }
        }
    }
    return first;
}

} // namespace bulkhead::imaging
