// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_warm_image_store.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "imaging/digest.hpp"
#include "imaging/sparse_copy.hpp"
#include "imaging/template_manifest.hpp"
#include "imaging/warm_manifest.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <utility>

namespace bulkhead::imaging {
namespace {

constexpr const char* kMemory = "memory";
constexpr const char* kDevices = "devices";
constexpr const char* kSystem = "system.qcow2";
constexpr const char* kChunks = "memory.chunks";
constexpr const char* kRetired = "retired";
constexpr const char* kUsed = "used";
constexpr std::array kParts{kMemory, kDevices, kSystem};
constexpr Bytes kMostPart = 4096 * kGiB;
constexpr std::size_t kMostManifest = std::size_t{64} * 1024;

std::string digestOf(const core::WarmImageKey& key) {
    Digest digest;
    for (const std::string_view part :
         {std::string_view(key.templateName), std::string_view(key.templateVersion), std::string_view(key.size),
          nameOf(key.acceleration), nameOf(key.transport), std::string_view(key.machine)}) {
        digest.addText(part);
    }
    digest.addText(std::to_string(key.memory) + " " + std::to_string(key.vcpus) + " " + std::to_string(key.heads));
    digest.addText(nameOf(key.audio));
    return digest.finish().substr(0, 32);
}

/// The file system may let both names have the same blocks; the host's cache has pages for each. `digest`: what the
/// content has to have; nothing is compared where it is empty or no byte was read.
Status copyInto(const std::filesystem::path& from, const std::filesystem::path& to, const std::string& digest = {}) {
    const UniqueFd source(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!source || !target) {
        return failErrno("cannot copy " + from.string() + " to " + to.string(), errno);
    }
    if (::ioctl(target.get(), FICLONE, source.get()) == 0) {
        return {};
    }
    const auto copied = copySparse(source.get(), target.get(), from.string(), kMostPart);
    if (!copied) {
        return fail(copied.error());
    }
    if (!digest.empty() && copied->digest != digest) {
        return fail(ErrorCode::HostFailure, from.string() + " is damaged: it has other bytes than when it was made");
    }
    return {};
}

} // namespace

Result<std::filesystem::path> FileWarmImageStore::warmFolder(const std::string& name,
                                                             const std::string& version) const {
    return m_layout.templateVersion(name, version).map([](std::filesystem::path&& folder) { return folder / "warm"; });
}

Result<core::WarmImage> FileWarmImageStore::load(const std::filesystem::path& folder) const {
    const std::filesystem::path file = folder / kManifestName;
    const auto text = readSmallFile(file, kMostManifest);
    if (!text) {
        return fail(text.error());
    }
    auto manifest = readWarmManifest(*text, file.string());
    if (!manifest) {
        return fail(manifest.error());
    }
    core::WarmImage image;
    image.key = std::move(manifest->key);
    image.memory = folder / kMemory;
    image.memoryDigest = std::move(manifest->memoryDigest);
    image.devices = folder / kDevices;
    image.system = {folder / kSystem, core::DiskFormat::Qcow2};
    image.madeAt = manifest->madeAt;
    for (const char* const name : kParts) {
        struct stat status {};
        const auto part = manifest->parts.find(name);
        // All bytes of it are read when it is made and when it did not bring a guest to life, not at each start.
        if (part == manifest->parts.end() || ::lstat((folder / name).c_str(), &status) != 0 ||
            !S_ISREG(status.st_mode) || static_cast<Bytes>(status.st_size) != part->second.size) {
            return fail(ErrorCode::HostFailure, (folder / name).string() + " is missing or has another size");
        }
        image.sizeOnDisk += static_cast<Bytes>(status.st_blocks) * 512;
    }
    struct stat used {};
    if (::lstat((folder / kUsed).c_str(), &used) == 0) {
        image.lastUsedAt = used.st_mtim.tv_sec;
    }
    if (image.key.memory != manifest->parts.at(kMemory).size) {
        return fail(ErrorCode::HostFailure, file.string() + " is damaged: it does not fit the memory's size");
    }
    return image;
}

std::optional<core::WarmImage> FileWarmImageStore::find(const core::WarmImageKey& key) {
    std::optional<core::WarmImage> newest;
    for (core::WarmImage& image : all(key.templateName, key.templateVersion)) {
        auto wanted = key;
        wanted.label = key.label.empty() ? image.key.label : key.label;
        // Of copies of one, the one that was used last: it is the likeliest to be in memory.
        if (image.key == wanted &&
            (!newest || std::pair(image.madeAt, image.lastUsedAt) >= std::pair(newest->madeAt, newest->lastUsedAt))) {
            newest = std::move(image);
        }
    }
    return newest;
}

std::vector<core::WarmImage> FileWarmImageStore::all(const std::string& templateName,
                                                     const std::string& templateVersion) {
    std::vector<core::WarmImage> images;
    const auto folder = warmFolder(templateName, templateVersion);
    const auto names = folder ? listFolder(*folder) : Result<std::vector<std::string>>{};
    if (!folder || !names) {
        return images;
    }
    for (const std::string& name : *names) {
        if (name.starts_with('.') || isThere(*folder / name / kRetired)) {
            continue;
        }
        if (auto image = load(*folder / name)) {
            images.push_back(std::move(*image));
        } else {
            log::warning("a warm image cannot be used", {{"TEMPLATE", templateName}, {"ERROR", image.error().message}});
        }
    }
    return images;
}

Result<core::WarmImage> FileWarmImageStore::provide(const core::WarmImageKey& key, const FilesInUse& filesInUse) {
    // Whoever waited here may find what it needs; and nothing that is being copied is replaced meanwhile.
    const std::lock_guard lock(m_publishing);
    if (auto own = find(key)) {
        return std::move(*own);
    }
    std::optional<core::WarmImage> source;
    std::size_t count = 0;
    for (core::WarmImage& image : all(key.templateName, key.templateVersion)) {
        ++count;
        auto other = key;
        other.label = image.key.label;
        // One that is nobody's yet, or the one that was used last: it is the likeliest to be in memory.
        const bool isBetter =
            !source || image.key.label.empty() || (!source->key.label.empty() && image.lastUsedAt > source->lastUsedAt);
        if (image.key == other && isBetter) {
            source = std::move(image);
        }
    }
    if (!source) {
        return fail(ErrorCode::NotFound,
                    "there is no warm image of template \"" + key.templateName + "\", size \"" + key.size + "\"");
    }
    if (source->key.label.empty()) {
        return giveAway(*source, key.label);
    }
    for (; count >= kMostImages && removeLeastUsed(*source, filesInUse); --count) {
    }
    while (true) {
        auto room = checkSpace(m_space, m_layout.state(), source->sizeOnDisk,
                               "a warm image of \"" + key.templateName + "\" for another label");
        if (room) {
            return copyOf(*source, key.label);
        }
        if (!removeLeastUsed(*source, filesInUse)) {
            return fail(room.error());
        }
    }
}

Result<core::WarmImage> FileWarmImageStore::giveAway(const core::WarmImage& image, const std::string& label) const {
    const std::filesystem::path folder = image.memory.parent_path();
    const std::filesystem::path file = folder / kManifestName;
    const auto text = readSmallFile(file, kMostManifest);
    auto manifest = text ? readWarmManifest(*text, file.string()) : fail(text.error());
    if (!manifest) {
        return fail(manifest.error());
    }
    manifest->key.label = label;
    if (auto written = replaceFile(file, writeWarmManifest(*manifest), m_layout.sharedFile(), true); !written) {
        return fail(written.error());
    }
    return load(folder);
}

Result<core::WarmImage> FileWarmImageStore::copyOf(const core::WarmImage& image, const std::string& label) {
    const std::filesystem::path from = image.memory.parent_path();
    const auto text = readSmallFile(from / kManifestName, kMostManifest);
    auto manifest = text ? readWarmManifest(*text, (from / kManifestName).string()) : fail(text.error());
    if (!manifest) {
        return fail(manifest.error());
    }
    const std::filesystem::path warm = from.parent_path();
    const std::filesystem::path folder = warm / (".new-" + randomUuidText());
    if (auto made = makeFolder(folder, m_layout.sharedFolder()); !made) {
        return fail(made.error());
    }
    ScopeGuard undo([&] { discard(folder); });
    for (const char* const name : {kMemory, kDevices, kSystem, kChunks}) {
        if (name == kChunks && !isThere(from / name)) {
            continue;
        }
        const auto part = manifest->parts.find(name);
        const Status copied =
            copyInto(from / name, folder / name, part != manifest->parts.end() ? part->second.digest : std::string())
                .and_then([&] { return setAccess(folder / name, m_layout.sharedFile()); })
                .and_then([&] { return syncPath(folder / name); });
        if (!copied) {
            return fail(copied.error());
        }
    }
    manifest->key.label = label;
    const std::filesystem::path place = warm / (digestOf(manifest->key) + "-" + randomUuidText());
    const Status published =
        writeNewFile(folder / kManifestName, writeWarmManifest(*manifest), m_layout.sharedFile(), true)
            .and_then([&] { return syncPath(folder); })
            .and_then([&] { return renamePath(folder, place); })
            .and_then([&] { return syncPath(warm); });
    if (!published) {
        return fail(published.error());
    }
    undo.dismiss();
    log::info("a warm image was copied for another label",
              {{"TEMPLATE", image.key.templateName}, {"SIZE", image.key.size}, {"LABEL", label}});
    return load(place);
}

bool FileWarmImageStore::removeLeastUsed(const core::WarmImage& kept, const FilesInUse& filesInUse) {
    auto images = all(kept.key.templateName, kept.key.templateVersion);
    std::stable_sort(images.begin(), images.end(), [](const core::WarmImage& one, const core::WarmImage& other) {
        return std::max(one.lastUsedAt, one.madeAt) < std::max(other.lastUsedAt, other.madeAt);
    });
    for (const core::WarmImage& image : images) {
        const std::filesystem::path folder = image.memory.parent_path();
        if (folder == kept.memory.parent_path()) {
            continue;
        }
        const auto used = filesInUse ? filesInUse() : Result<std::vector<std::filesystem::path>>{};
        if (!used) {
            return false;
        }
        if (std::none_of(used->begin(), used->end(),
                         [&](const std::filesystem::path& file) { return file.parent_path() == folder; })) {
            removeFolder(folder);
            return !isThere(folder);
        }
    }
    return false;
}

void FileWarmImageStore::noteUse(const core::WarmImage& image) {
    const std::filesystem::path file = image.memory.parent_path() / kUsed;
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0400));
    const auto seconds = static_cast<time_t>(m_clock.now());
    const std::array<timespec, 2> now{timespec{seconds, 0}, timespec{seconds, 0}};
    if (!fd || ::futimens(fd.get(), now.data()) != 0) {
        log::warning("it cannot be noted when a warm image was used", {{"FILE", file.string()}});
    }
}

Result<std::filesystem::path> FileWarmImageStore::begin(const core::WarmImageKey& key, Bytes needs) {
    const auto warm = warmFolder(key.templateName, key.templateVersion);
    if (!warm) {
        return fail(warm.error());
    }
    if (!isThere(warm->parent_path())) {
        return fail(ErrorCode::NotFound, "template \"" + key.templateName + "\" version " + key.templateVersion +
                                             " is not installed any more");
    }
    if (auto room = checkSpace(m_space, m_layout.state(), needs, "a warm image of \"" + key.templateName + "\"");
        !room) {
        return fail(room.error());
    }
    std::filesystem::path folder = *warm / (".new-" + randomUuidText());
    const Status made = ensureFolder(*warm, m_layout.sharedFolder()).and_then([&] {
        return makeFolder(folder, m_layout.sharedFolder());
    });
    if (!made) {
        return fail(made.error());
    }
    return folder;
}

Result<core::WarmImage> FileWarmImageStore::publish(const core::WarmImageKey& key, const std::filesystem::path& folder,
                                                    const std::filesystem::path& system,
                                                    const std::string& memoryDigest, const FilesInUse& filesInUse) {
    if (auto copied = copyInto(system, folder / kSystem); !copied) {
        return fail(copied.error());
    }
    WarmManifest manifest{key, memoryDigest, m_clock.now(), {}};
    for (const char* const name : kParts) {
        const std::filesystem::path file = folder / name;
        const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!fd) {
            return failErrno("cannot open " + file.string(), errno);
        }
        const auto content = contentDigest(fd.get(), name, kMostPart);
        if (!content) {
            return fail(content.error());
        }
        if (auto given = setAccess(fd.get(), m_layout.sharedFile(), file); !given) {
            return fail(given.error());
        }
        if (auto synced = syncPath(file); !synced) {
            return fail(synced.error());
        }
        manifest.parts.emplace(name, ManifestPart{content->size, content->digest});
    }
    if (auto given = setAccess(folder / kChunks, m_layout.sharedFile());
        !given && given.error().code != ErrorCode::NotFound) {
        return fail(given.error());
    }
    if (auto written = writeNewFile(folder / kManifestName, writeWarmManifest(manifest), m_layout.sharedFile(), true);
        !written) {
        return fail(written.error());
    }
    const auto warm = warmFolder(key.templateName, key.templateVersion);
    if (!warm) {
        return fail(warm.error());
    }
    // A place that was never used: whoever has found an image finds its parts together, or gone, but never mixed.
    const std::filesystem::path place = *warm / (digestOf(key) + "-" + randomUuidText());
    const std::lock_guard lock(m_publishing);
    const Status published =
        syncPath(folder).and_then([&] { return renamePath(folder, place); }).and_then([&] { return syncPath(*warm); });
    if (!published) {
        return fail(published.error());
    }
    removeReplaced(key, place, filesInUse);
    return load(place);
}

void FileWarmImageStore::removeReplaced(const core::WarmImageKey& key, const std::filesystem::path& place,
                                        const FilesInUse& filesInUse) const {
    const auto names = listFolder(place.parent_path());
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        const std::filesystem::path folder = place.parent_path() / name;
        if (name.starts_with('.') || folder == place) {
            continue;
        }
        const auto other = load(folder);
        if (other && !isThere(folder / kRetired) &&
            (other->key.size != key.size || other->key.acceleration != key.acceleration ||
             other->key.transport != key.transport || other->key.audio != key.audio)) {
            continue;
        }
        const auto used = filesInUse ? filesInUse() : Result<std::vector<std::filesystem::path>>{};
        const bool isUsed = !used || std::any_of(used->begin(), used->end(), [&](const std::filesystem::path& file) {
            return file.parent_path() == folder;
        });
        isUsed ? retire(folder) : removeFolder(folder);
    }
}

void FileWarmImageStore::retire(const std::filesystem::path& folder) const {
    if (isThere(folder / kRetired) || !isThere(folder)) {
        return;
    }
    const Status retired =
        writeNewFile(folder / kRetired, "", m_layout.privateFile(), true).and_then([&] { return syncPath(folder); });
    if (!retired) {
        log::warning("a warm image cannot be taken out of use", {{"ERROR", retired.error().message}});
    }
}

void FileWarmImageStore::discard(const std::filesystem::path& folder) {
    if (auto removed = removeTree(folder); !removed) {
        log::warning("an unfinished warm image cannot be removed", {{"ERROR", removed.error().message}});
    }
}

void FileWarmImageStore::remove(const core::WarmImage& image) {
    const std::lock_guard lock(m_publishing);
    // Those of other labels are copies of it.
    for (const core::WarmImage& other : all(image.key.templateName, image.key.templateVersion)) {
        if (other.memoryDigest == image.memoryDigest) {
            retire(other.memory.parent_path());
        }
    }
    retire(image.memory.parent_path());
}

void FileWarmImageStore::removeFolder(const std::filesystem::path& folder) const {
    if (!isThere(folder)) {
        return;
    }
    // First out of sight. The files live on for the emulators that have them open.
    const std::filesystem::path going = folder.parent_path() / (".old-" + randomUuidText());
    if (auto removed = renamePath(folder, going).and_then([&] { return removeTree(going); }); !removed) {
        log::warning("a warm image cannot be removed", {{"ERROR", removed.error().message}});
    }
}

} // namespace bulkhead::imaging
