// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace bulkhead::memory {

/// The unit of an image's digest.
constexpr Bytes kChunk = 64 * kKiB;

/// The digests of the parts of a memory image, so that the digest of a changed image costs no more than the changes.
///
/// An image's digest is BLAKE2b-256 of this list as it is stored beside the image:
///   header   32 bytes: magic "BHCHUNKS", u64 bytes of RAM, u64 chunk size 65536, u64 number of entries
///   entries  40 bytes each: u64 number of the chunk, 32 bytes BLAKE2b-256 of its bytes. Sorted; a chunk that is all
///            zero has none. The last chunk may be shorter
/// Numbers are little-endian. So the digest depends on the content alone, not on where the file has holes; and the
/// stored list proves itself against the digest.
class ImageChunks {
public:
    /// All zero.
    explicit ImageChunks(Bytes ram)
        : m_ram(ram) {}
    /// Reads a whole image of `ram` bytes, but its holes.
    static Result<ImageChunks> ofFile(int fd, Bytes ram, const std::string& name);
    /// A stored list; HostFailure unless it is that of the image with this digest.
    static Result<ImageChunks> load(const std::filesystem::path& list, const std::string& digest, Bytes ram);
    static Result<ImageChunks> decode(std::string_view bytes);

    /// Reads these chunks; HostFailure when one is not what the list says. `name` begins the message.
    Status check(int fd, const std::set<std::uint64_t>& chunks, const std::string& name) const;
    /// Reads these chunks of a changed image again.
    Status update(int fd, const std::set<std::uint64_t>& chunks, const std::string& name);
    [[nodiscard]] std::string encode() const;
    /// The digest of the image.
    [[nodiscard]] std::string digest() const;
    [[nodiscard]] Bytes ram() const { return m_ram; }

private:
    using ChunkDigest = std::array<char, 32>;

    /// None for a chunk that is all zero.
    static std::optional<ChunkDigest> digestOfChunk(std::string_view bytes);
    /// Reads chunk by chunk.
    template <class Sink>
    Status read(int fd, const std::set<std::uint64_t>& chunks, const std::string& name, Sink&& sink) const;
    void set(std::uint64_t chunk, std::string_view bytes);

    Bytes m_ram;
    std::map<std::uint64_t, ChunkDigest> m_chunks;
};

} // namespace bulkhead::memory
