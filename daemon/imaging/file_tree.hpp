// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

/// Small acts on files, each of which follows no link in the last part of a path.
namespace bulkhead::imaging {

struct Access {
    mode_t mode = 0;
    uid_t uid = 0;
    gid_t gid = 0;
};

struct FileFacts {
    Bytes size = 0;
    Bytes allocated = 0;
    mode_t mode = 0; ///< permissions only
    uid_t uid = 0;
    gid_t gid = 0;
    std::uint64_t inode = 0;
};

/// Makes the folder when it is absent, and gives it this owner and mode in any case.
Status ensureFolder(const std::filesystem::path& folder, const Access& access);
/// Makes a folder that must be new; AlreadyExists otherwise.
Status makeFolder(const std::filesystem::path& folder, const Access& access);
/// Makes a file that must be new, with these bytes and on disk when `sync` is set.
Status writeNewFile(const std::filesystem::path& file, std::string_view bytes, const Access& access, bool sync);
/// Reads a regular file of at most `most` bytes. NotFound when it is absent.
Result<std::string> readSmallFile(const std::filesystem::path& file, std::size_t most);
/// Replaces a file, which need not be there: afterwards it has either the old bytes or all of the new ones. With `sync`
/// it is on disk, its name too. What a crash leaves begins with a dot.
Status replaceFile(const std::filesystem::path& file, std::string_view bytes, const Access& access, bool sync);
/// Gives a regular file a second name in another folder of the same file system. Follows no link.
Status linkFile(const std::filesystem::path& file, const std::filesystem::path& name);
/// Changes owner and mode of a regular file with one name. NotFound when it is absent.
Status setAccess(const std::filesystem::path& file, const Access& access);
/// The same for a file that may have several names: a layer of a disk, see FileSnapshotStore.
Status setAccessOfLayer(const std::filesystem::path& file, const Access& access);
Status setAccess(int fd, const Access& access, const std::filesystem::path& shownAs);
/// Brings a file's or a folder's own content to the disk.
Status syncPath(const std::filesystem::path& path);
Status renamePath(const std::filesystem::path& from, const std::filesystem::path& to);

/// Deletes a file or a folder with all that is in it, even while its owner changes it: never leaves the tree through a
/// link. Success when it is absent.
Status removeTree(const std::filesystem::path& path);

/// The names in a folder, sorted; none when it is absent.
Result<std::vector<std::string>> listFolder(const std::filesystem::path& folder);
/// What lstat(2) says of a regular file. NotFound when it is absent, HostFailure when it is something else.
Result<FileFacts> factsOf(const std::filesystem::path& file);
/// True if something has this name, a dangling link too.
bool isThere(const std::filesystem::path& path);

} // namespace bulkhead::imaging
