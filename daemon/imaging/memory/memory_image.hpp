// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "imaging/file_tree.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// The raw RAM of a paused guest in one sparse file, from which emulators start: they map it privately, so it never
/// changes and never shrinks once it has its name.
///
/// Its name is its content digest (ImageChunks), so an image that was copied, reflinked or made of other deltas has the
/// same name. The list of its chunks lies beside it; with that, an image that differs in 1 MiB is named after reading
/// 1 MiB. The list is no more than a shortcut: without it the parent is read.
namespace bulkhead::memory {

/// What temporary files of composeImage() begin with: those that a crash left may be deleted when nothing composes.
constexpr std::string_view kUnfinishedPrefix = ".unfinished-";

struct MemoryImage {
    std::filesystem::path file; ///< <folder>/<digest>.ram
    std::string digest;
    Bytes size = 0;         ///< the guest's RAM
    Bytes allocated = 0;    ///< what the file takes of the disk; shared extents count in each of their files
    bool reflinked = false; ///< shares its unchanged parts with the parent
};

/// A delta and what it must be a delta of, as recorded by whoever made it.
struct DeltaStep {
    std::filesystem::path file;
    std::string parent; ///< digest of the image below, or zeroParent()
};

struct ComposeSpec {
    Bytes ram = 0;
    std::optional<std::filesystem::path> parent; ///< none: memory that is zero everywhere
    std::string parentDigest;                    ///< of `parent`; ignored when there is none
    std::vector<DeltaStep> deltas;               ///< the oldest first; each on top of those before
    std::filesystem::path folder;                ///< where the image goes; not on a memory file system
    bool sync = true;                            ///< false: syncImage() is called later, before it is relied on
    imaging::Access access{0444, 0, 0};
};

/// Makes the image of `parent` with all deltas applied, and brings it to the disk. The parent is reflinked where the
/// file system can, else its data is copied and its holes stay holes. The parent is only read where needed: damage in
/// it is in the new image as well, whose digest is that of the undamaged content, so verifyImage() finds it in both. An
/// image that exists already is left as it is. On failure nothing is left. HostFailure names the damaged file.
Result<MemoryImage> composeImage(const ComposeSpec& spec);
/// Brings an image that was made without `sync`, its list and its name to the disk.
Status syncImage(const std::filesystem::path& image);

/// Reads the whole image and compares: size, mode without any write bit, digest.
Status verifyImage(const std::filesystem::path& file, const std::string& digest, Bytes ram);

/// Deletes an image and its list of chunks; success when they are not there. Emulators that map it are not disturbed.
Status removeImage(const std::filesystem::path& image);

/// <folder>/<digest>.ram
std::filesystem::path imagePath(const std::filesystem::path& folder, const std::string& digest);
/// <folder>/<digest>.chunks
std::filesystem::path chunksPath(const std::filesystem::path& image);

} // namespace bulkhead::memory
