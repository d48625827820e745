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
/// Its name is its content digest, imaging::contentDigest(): BLAKE2b-256 over the size and the 64 KiB blocks that are
/// not all zero. It depends on the content alone, so an image that was copied block by block, reflinked or made of
/// other deltas has the same name, and 3 GiB of which 400 MiB are in use take as long as 400 MiB.
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
    imaging::Access access{0444, 0, 0};
};

/// Makes the image of `parent` with all deltas applied, and brings it to the disk. The parent is reflinked where the
/// file system can, else its data is copied (and checked against its digest on the way) and its holes stay holes. An
/// image that exists already is left as it is. On failure nothing is left. HostFailure names the damaged file.
Result<MemoryImage> composeImage(const ComposeSpec& spec);

/// Reads the whole image and compares: size, mode without any write bit, digest.
Status verifyImage(const std::filesystem::path& file, const std::string& digest, Bytes ram);

/// <folder>/<digest>.ram
std::filesystem::path imagePath(const std::filesystem::path& folder, const std::string& digest);

} // namespace bulkhead::memory
