// SPDX-License-Identifier: Apache-2.0
#include "memory/packed_delta.hpp"

#include "memory/little_endian.hpp"

#include <algorithm>

namespace bulkhead::memory {

namespace {

constexpr std::string_view kMagic = "BHDELTA\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kDigestDigits = 64;

unsigned valueOf(char digit) {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

tl::unexpected<Error> damaged(const std::string& why) {
    return fail(ErrorCode::HostFailure, "not a valid memory delta: " + why);
}

} // namespace

std::string_view zeroParent() {
    static const std::string zeros(kDigestDigits, '0');
    return zeros;
}

bool isDigest(std::string_view text) {
    return text.size() == kDigestDigits && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::string bytesOfDigest(std::string_view digits) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<char>(valueOf(digits[i]) << 4U | valueOf(digits[i + 1])));
    }
    return bytes;
}

std::string digestOfBytes(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string digits;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        digits.push_back(kDigits[value >> 4U]);
        digits.push_back(kDigits[value & 0xfU]);
    }
    return digits;
}

void DeltaIndex::append(std::uint64_t first, std::uint64_t count, RunKind kind) {
    if (count == 0) {
        return;
    }
    if (!runs.empty() && runs.back().kind == kind && runs.back().first + runs.back().count == first) {
        runs.back().count += count;
        return;
    }
    runs.push_back({first, count, kind});
}

std::uint64_t DeltaIndex::pages(RunKind kind) const {
    std::uint64_t sum = 0;
    for (const Run& run : runs) {
        sum += run.kind == kind ? run.count : 0;
    }
    return sum;
}

Bytes DeltaIndex::fileSize() const {
    return kDeltaHeaderSize + runs.size() * kDeltaRunSize + pages(RunKind::Data) * kPage + kDeltaTrailerSize;
}

std::string encodeIndex(const DeltaIndex& index) {
    std::string bytes(kMagic);
    bytes.reserve(kDeltaHeaderSize + index.runs.size() * kDeltaRunSize);
    putNumber(bytes, kVersion);
    putNumber(bytes, static_cast<std::uint32_t>(kPage));
    putNumber(bytes, index.ram);
    putNumber(bytes, std::uint64_t{index.runs.size()});
    putNumber(bytes, index.pages(RunKind::Data));
    putNumber(bytes, index.pages(RunKind::Zero));
    bytes += bytesOfDigest(index.parent);
    for (const Run& run : index.runs) {
        putNumber(bytes, run.first);
        putNumber(bytes, static_cast<std::uint32_t>(run.count)); // at most kMostRam / kPage
        putNumber(bytes, static_cast<std::uint32_t>(run.kind));
    }
    return bytes;
}

Result<DeltaHeader> decodeHeader(std::string_view bytes, Bytes fileSize) {
    if (bytes.size() != kDeltaHeaderSize || fileSize < kDeltaHeaderSize + kDeltaTrailerSize) {
        return damaged("the file is too short");
    }
    if (!bytes.starts_with(kMagic)) {
        return damaged("it does not begin as one");
    }
    bytes.remove_prefix(kMagic.size());
    if (const auto version = takeNumber<std::uint32_t>(bytes); version != kVersion) {
        return damaged("format version " + std::to_string(version) + "; this program knows version " +
                       std::to_string(kVersion));
    }
    if (const auto page = takeNumber<std::uint32_t>(bytes); page != kPage) {
        return damaged("pages of " + std::to_string(page) + " bytes instead of " + std::to_string(kPage));
    }
    DeltaHeader header;
    header.ram = takeNumber<std::uint64_t>(bytes);
    header.runCount = takeNumber<std::uint64_t>(bytes);
    header.dataPages = takeNumber<std::uint64_t>(bytes);
    header.zeroPages = takeNumber<std::uint64_t>(bytes);
    header.parent = digestOfBytes(bytes);
    if (header.ram == 0 || header.ram % kPage != 0 || header.ram > kMostRam) {
        return damaged("guest memory of " + std::to_string(header.ram) + " bytes");
    }
    // Each number alone first, so that the sums below cannot overflow.
    const std::uint64_t pages = header.ram / kPage;
    if (header.dataPages > pages || header.zeroPages > pages - header.dataPages) {
        return damaged("more pages than the guest has");
    }
    if (header.runCount > header.dataPages + header.zeroPages) {
        return damaged("more runs than pages");
    }
    const Bytes expected =
        kDeltaHeaderSize + header.runCount * kDeltaRunSize + header.dataPages * kPage + kDeltaTrailerSize;
    if (fileSize != expected) {
        return damaged("the file has " + std::to_string(fileSize) + " bytes, its header says " +
                       std::to_string(expected));
    }
    return header;
}

Result<DeltaIndex> decodeRuns(const DeltaHeader& header, std::string_view bytes) {
    if (bytes.size() != header.runCount * kDeltaRunSize) {
        return damaged("the list of runs is cut");
    }
    DeltaIndex index{header.ram, header.parent, {}};
    index.runs.reserve(header.runCount);
    const std::uint64_t pages = header.ram / kPage;
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < header.runCount; ++i) {
        const auto first = takeNumber<std::uint64_t>(bytes);
        const std::uint64_t count = takeNumber<std::uint32_t>(bytes);
        const auto kind = takeNumber<std::uint32_t>(bytes);
        const std::string which = "run " + std::to_string(i);
        if (kind != static_cast<std::uint32_t>(RunKind::Data) && kind != static_cast<std::uint32_t>(RunKind::Zero)) {
            return damaged(which + " is of unknown kind " + std::to_string(kind));
        }
        if (count == 0) {
            return damaged(which + " is empty");
        }
        if (first < next) {
            return damaged(which + " begins before the end of the one before");
        }
        if (first > pages || count > pages - first) {
            return damaged(which + " goes beyond the guest's memory");
        }
        const Run run{first, count, static_cast<RunKind>(kind)};
        if (!index.runs.empty() && first == next && index.runs.back().kind == run.kind) {
            return damaged(which + " continues the one before");
        }
        index.runs.push_back(run);
        next = first + count;
    }
    if (index.pages(RunKind::Data) != header.dataPages || index.pages(RunKind::Zero) != header.zeroPages) {
        return damaged("the runs do not add up to the pages that the header says");
    }
    return index;
}

} // namespace bulkhead::memory
