// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "memory/file_io.hpp"

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::memcap {

/// The image that captured pages are compared with, or zeros everywhere. Read, not mapped: a file that became shorter
/// is then an error and not a signal, and the holes of a sparse image cost nothing.
class ParentImage {
public:
    ParentImage() = default;
    /// InvalidArgument unless it is a regular file of `ram` bytes.
    static Result<ParentImage> open(UniqueFd fd, Bytes ram);

    /// The bytes there; valid until the next call. Ask in ascending order.
    Result<std::string_view> read(Bytes offset, std::size_t size);
    /// The stretch with data that `offset` is in, or the next one; an empty one at the end when there is none.
    Result<memory::Extent> dataAfter(Bytes offset);
    /// HostFailure when it is not what it was: an image never changes, and a delta to another one would be wrong.
    Status unchanged() const;

private:
    UniqueFd m_fd; ///< not open: zeros everywhere
    Bytes m_size = 0;
    timespec m_written{};
    memory::Extent m_extent;  ///< the last that was found …
    Bytes m_searchedFrom = 0; ///< … from here on
    std::vector<char> m_bytes;
};

} // namespace bulkhead::memcap
