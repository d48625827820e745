// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <string>

namespace bulkhead::imaging {

/// The unit of the content digest, and the finest hole that is kept.
constexpr Bytes kDigestBlock = 64 * kKiB;

struct CopiedFile {
    Bytes size = 0;
    std::string digest; ///< see contentDigest()
};

/// Copies all bytes of `from` to `to` (new, empty, both at any position), keeps holes and makes new ones where a block
/// is zero, and computes the content digest on the way. Does not fsync. `name` is for messages. LimitExceeded when the
/// file is larger than `most`.
Result<CopiedFile> copySparse(int from, int to, const std::string& name, Bytes most);

/// The digest that copySparse() gives: BLAKE2b-256 over the file's size and then, for each 64 KiB block that is not all
/// zero, its offset and its bytes (numbers as 8 bytes, little-endian). So it depends on the content alone, not on where
/// the file system happens to have holes, and a sparse 8 GiB disk with 1 GiB of data takes as long as 1 GiB.
Result<CopiedFile> contentDigest(int from, const std::string& name, Bytes most);

} // namespace bulkhead::imaging
