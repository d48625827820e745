// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/delta_file.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// What the daemon and bulkhead-memcap say to each other: one line per command on its standard input, one line per
/// answer on its standard output. Lines end with a newline and are at most kMaxLine bytes; fields are in this order,
/// numbers are decimal. Anything else is a broken helper.
///
///   prepare   ->  prepared pages=N capacity=N
///   capture   ->  captured pages=N usec=N
///   finish    ->  written bytes=N data=N zero=N same=N digest=HEX
///   abort     ->  (it ends; so it does at the end of its input)
///   any       ->  error CODE TEXT      CODE is nameOf(ErrorCode); it ends after it
///
/// Commands come in this order and once each. The helper ends with status 0 after `written` and after an abort.
///
/// Its command line:
///   bulkhead-memcap --pid N --ram-bytes N [--max-bytes N] [--parent DIGEST] [--mapped-file]
namespace bulkhead::memory {

constexpr std::size_t kMaxLine = 1024;

/// The descriptors that the helper gets beside 0 and 1.
constexpr int kProcessFd = 3; ///< pidfd of the emulator
constexpr int kOutputFd = 4;  ///< the new file for the delta, empty, open for writing
constexpr int kParentFd = 5;  ///< with --parent: the image to compare with, open for reading
constexpr int kMappedFd = 6;  ///< with --mapped-file: the image that the emulator maps (O_PATH is enough)

constexpr std::string_view kPrepare = "prepare";
constexpr std::string_view kCapture = "capture";
constexpr std::string_view kFinish = "finish";
constexpr std::string_view kAbort = "abort";

struct PreparedCapture {
    std::uint64_t pages = 0; ///< private pages at this moment
    Bytes capacity = 0;      ///< of the buffer that is ready; more pages are taken too, but slower
    bool operator==(const PreparedCapture&) const = default;
};

struct CapturedPages {
    std::uint64_t pages = 0;
    std::chrono::microseconds duration{0}; ///< as the helper measured it
    bool operator==(const CapturedPages&) const = default;
};

struct FinishedCapture {
    WrittenDelta delta;
    std::uint64_t samePages = 0; ///< captured, but equal to the parent's, so not stored
    bool operator==(const FinishedCapture&) const = default;
};

/// Without the newline.
std::string encode(const PreparedCapture& answer);
std::string encode(const CapturedPages& answer);
std::string encode(const FinishedCapture& answer);
std::string encode(const Error& error);

/// An `error` line gives that error; a line that is none of the two gives HostFailure.
Result<PreparedCapture> decodePrepared(std::string_view line);
Result<CapturedPages> decodeCaptured(std::string_view line);
Result<FinishedCapture> decodeFinished(std::string_view line);

} // namespace bulkhead::memory
