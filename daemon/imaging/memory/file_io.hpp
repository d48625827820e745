// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <string>
#include <string_view>

namespace bulkhead::memory {

/// Reads exactly `size` bytes from `offset`; a file that ends before is a failure. `what` begins the message.
Status readFully(int fd, char* target, std::size_t size, Bytes offset, const std::string& what);
/// failErrno(), with NoSpace also for a file that may not become so large.
tl::unexpected<Error> failWriting(const std::string& what, int errorNumber);
/// Writes all bytes at `offset`. Fails as failWriting() does.
Status writeFully(int fd, std::string_view bytes, Bytes offset, const std::string& what);
/// True if every byte is zero; true for none.
bool isZero(std::string_view bytes);

/// From `begin` up to `end` a file has data; before and after may be holes.
struct Extent {
    Bytes begin = 0;
    Bytes end = 0;
};
/// The next stretch with data at or after `offset` in a file of `size` bytes; begin == end == size when there is none.
/// A file system that knows no holes gives all the rest.
Result<Extent> nextExtent(int fd, Bytes offset, Bytes size, const std::string& what);

} // namespace bulkhead::memory
