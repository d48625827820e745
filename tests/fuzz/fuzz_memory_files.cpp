// SPDX-License-Identifier: Apache-2.0
// What describes guest memory in files, what the kernel says of an emulator's memory, and what the capture helper
// answers: whatever is accepted keeps within its bounds and is written back byte for byte.
#include "memcap/ram_mapping.hpp"
#include "memory/capture_lines.hpp"
#include "memory/image_chunks.hpp"
#include "memory/packed_delta.hpp"

#include <cstdint>
#include <cstdlib>

using namespace bulkhead;
using namespace bulkhead::memory;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void checkDelta(std::string_view bytes) {
    const std::string_view head = bytes.substr(0, kDeltaHeaderSize);
    // The size that the header itself asks for, so that more than the length is looked at.
    Bytes size = bytes.size();
    if (auto header = decodeHeader(head, size); !header && head.size() == kDeltaHeaderSize) {
        const auto at = header.error().message.rfind(' ');
        size = std::strtoull(header.error().message.c_str() + at, nullptr, 10);
    }
    const auto header = decodeHeader(head, size);
    if (!header) {
        return;
    }
    require(header->runCount <= (header->dataPages + header->zeroPages));
    const std::string_view list = bytes.substr(kDeltaHeaderSize, header->runCount * kDeltaRunSize);
    const auto index = decodeRuns(*header, list);
    if (!index) {
        return;
    }
    require(index->fileSize() == size);
    require(encodeIndex(*index) == std::string(head) + std::string(list));
    std::uint64_t next = 0;
    for (const Run& run : index->runs) {
        require(run.count > 0 && run.first >= next && run.first + run.count <= index->ram / kPage);
        next = run.first + run.count;
    }
}

void checkChunks(std::string_view bytes) {
    if (const auto chunks = ImageChunks::decode(bytes)) {
        require(chunks->encode() == bytes);
    }
}

void checkLine(std::string_view line) {
    if (const auto answer = decodePrepared(line)) {
        require(decodePrepared(encode(*answer)) == answer);
    }
    if (const auto answer = decodeCaptured(line)) {
        require(decodeCaptured(encode(*answer)) == answer);
    }
    if (const auto answer = decodeFinished(line)) {
        require(decodeFinished(encode(*answer)) == answer);
    }
}

void checkMaps(std::string_view text) {
    const auto vmas = memcap::parseMaps(text);
    if (!vmas) {
        return;
    }
    constexpr Bytes kRam = 0x2000;
    for (const auto& file : {std::optional<memcap::MappedFile>(), std::optional(memcap::MappedFile{8, 1, 42, "/x"})}) {
        if (const auto found = memcap::findRam(*vmas, kRam, file)) {
            require(!found->empty());
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string bytes(data + 1, data + size);
    switch (data[0] % 4) {
    case 0:
        checkDelta(bytes);
        break;
    case 1:
        checkChunks(bytes);
        break;
    case 2:
        checkLine(bytes);
        break;
    default:
        checkMaps(bytes);
        break;
    }
    return 0;
}
