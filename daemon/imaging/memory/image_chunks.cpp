// SPDX-License-Identifier: Apache-2.0
#include "memory/image_chunks.hpp"

#include "imaging/digest.hpp"
#include "imaging/file_tree.hpp"
#include "memory/file_io.hpp"
#include "memory/little_endian.hpp"
#include "memory/packed_delta.hpp"

#include <algorithm>
#include <vector>

namespace bulkhead::memory {

namespace {

constexpr std::string_view kMagic = "BHCHUNKS";
constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kEntrySize = 40;
constexpr Bytes kReadAtOnce = 16 * kChunk;

tl::unexpected<Error> damaged(const std::string& why) {
    return fail(ErrorCode::HostFailure, "not a valid list of chunks: " + why);
}

std::string digestOf(std::string_view bytes) {
    imaging::Digest digest;
    digest.add(bytes);
    return digest.finish();
}

} // namespace

std::optional<ImageChunks::ChunkDigest> ImageChunks::digestOfChunk(std::string_view bytes) {
    if (isZero(bytes)) {
        return std::nullopt;
    }
    const std::string raw = bytesOfDigest(digestOf(bytes));
    ChunkDigest digest{};
    std::copy_n(raw.begin(), digest.size(), digest.begin());
    return digest;
}

void ImageChunks::set(std::uint64_t chunk, std::string_view bytes) {
    if (const auto digest = digestOfChunk(bytes)) {
        m_chunks[chunk] = *digest;
    } else {
        m_chunks.erase(chunk);
    }
}

Result<ImageChunks> ImageChunks::ofFile(int fd, Bytes ram, const std::string& name) {
    const std::string what = "cannot read " + name;
    ImageChunks chunks(ram);
    std::vector<char> buffer(kReadAtOnce);
    for (Bytes offset = 0; offset < ram;) {
        const auto extent = nextExtent(fd, offset, ram, what);
        if (!extent) {
            return fail(extent.error());
        }
        if (extent->begin == extent->end) {
            break;
        }
        offset = std::max(offset, extent->begin - extent->begin % kChunk);
        const Bytes extentEnd = std::min(ram, extent->end + (kChunk - extent->end % kChunk) % kChunk);
        const Bytes size = std::min(kReadAtOnce, extentEnd - offset);
        if (auto read = readFully(fd, buffer.data(), size, offset, what); !read) {
            return fail(read.error());
        }
        for (Bytes inside = 0; inside < size; inside += kChunk) {
            chunks.set((offset + inside) / kChunk, {buffer.data() + inside, std::min(kChunk, size - inside)});
        }
        offset += size;
    }
    return chunks;
}

template <class Sink>
Status ImageChunks::read(int fd, const std::set<std::uint64_t>& chunks, const std::string& name, Sink&& sink) const {
    std::vector<char> buffer(kChunk);
    for (const std::uint64_t chunk : chunks) {
        const Bytes offset = chunk * kChunk;
        const Bytes size = std::min(kChunk, m_ram - offset);
        if (auto got = readFully(fd, buffer.data(), size, offset, "cannot read " + name); !got) {
            return got;
        }
        if (auto taken = sink(chunk, std::string_view(buffer.data(), size)); !taken) {
            return taken;
        }
    }
    return {};
}

Status ImageChunks::check(int fd, const std::set<std::uint64_t>& chunks, const std::string& name) const {
    return read(fd, chunks, name, [&](std::uint64_t chunk, std::string_view bytes) -> Status {
        const auto known = m_chunks.find(chunk);
        const auto expected = known == m_chunks.end() ? std::nullopt : std::optional(known->second);
        if (digestOfChunk(bytes) != expected) {
            return fail(ErrorCode::HostFailure,
                        name + " is damaged at byte " + std::to_string(chunk * kChunk) + " or in the 64 KiB after it");
        }
        return {};
    });
}

Status ImageChunks::update(int fd, const std::set<std::uint64_t>& chunks, const std::string& name) {
    return read(fd, chunks, name, [&](std::uint64_t chunk, std::string_view bytes) -> Status {
        set(chunk, bytes);
        return {};
    });
}

std::string ImageChunks::encode() const {
    std::string bytes(kMagic);
    bytes.reserve(kHeaderSize + m_chunks.size() * kEntrySize);
    putNumber(bytes, m_ram);
    putNumber(bytes, kChunk);
    putNumber(bytes, std::uint64_t{m_chunks.size()});
    for (const auto& [chunk, digest] : m_chunks) {
        putNumber(bytes, chunk);
        bytes.append(digest.data(), digest.size());
    }
    return bytes;
}

std::string ImageChunks::digest() const {
    return digestOf(encode());
}

Result<ImageChunks> ImageChunks::decode(std::string_view bytes) {
    if (bytes.size() < kHeaderSize || !bytes.starts_with(kMagic)) {
        return damaged("it does not begin as one");
    }
    bytes.remove_prefix(kMagic.size());
    ImageChunks chunks(takeNumber<std::uint64_t>(bytes));
    const auto chunkSize = takeNumber<std::uint64_t>(bytes);
    const auto count = takeNumber<std::uint64_t>(bytes);
    if (chunks.m_ram == 0 || chunks.m_ram % kPage != 0 || chunks.m_ram > kMostRam || chunkSize != kChunk) {
        return damaged("its sizes make no sense");
    }
    const std::uint64_t most = (chunks.m_ram + kChunk - 1) / kChunk;
    if (count > most || bytes.size() != count * kEntrySize) {
        return damaged("its length is not what it says");
    }
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto chunk = takeNumber<std::uint64_t>(bytes);
        if (chunk < next || chunk >= most) {
            return damaged("its entries are not sorted");
        }
        ChunkDigest digest{};
        std::copy_n(bytes.begin(), digest.size(), digest.begin());
        bytes.remove_prefix(digest.size());
        chunks.m_chunks.emplace_hint(chunks.m_chunks.end(), chunk, digest);
        next = chunk + 1;
    }
    return chunks;
}

Result<ImageChunks> ImageChunks::load(const std::filesystem::path& list, const std::string& digest, Bytes ram) {
    const auto bytes = imaging::readSmallFile(list, kHeaderSize + (ram + kChunk - 1) / kChunk * kEntrySize);
    if (!bytes) {
        return fail(bytes.error());
    }
    if (digestOf(*bytes) != digest) {
        return fail(ErrorCode::HostFailure, list.string() + " is damaged, or belongs to another image");
    }
    auto chunks = decode(*bytes);
    if (!chunks) {
        return fail(chunks.error().in(list.string()));
    }
    if (chunks->m_ram != ram) {
        return fail(ErrorCode::HostFailure, list.string() + " is of an image of another size");
    }
    return chunks;
}

} // namespace bulkhead::memory
