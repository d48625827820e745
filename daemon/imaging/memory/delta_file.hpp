// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "imaging/digest.hpp"
#include "memory/packed_delta.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace bulkhead::memory {

struct WrittenDelta {
    Bytes size = 0;
    std::uint64_t dataPages = 0;
    std::uint64_t zeroPages = 0;
    std::string digest; ///< of all but the trailer, which holds it
    bool operator==(const WrittenDelta&) const = default;
};

/// Writes a delta from the start of a file: begin(), add() for the pages in the order of the runs, finish(). Neither
/// the descriptor nor what was written is taken back after a failure.
class DeltaWriter {
public:
    /// `fd` stays the caller's; `name` is for messages.
    DeltaWriter(int fd, std::string name);
    Status begin(const DeltaIndex& index);
    /// Any number of whole pages.
    Status add(std::string_view pages);
    /// Cuts the file to its size and brings it to the disk. InvalidArgument unless all pages of the data runs came.
    Result<WrittenDelta> finish();

private:
    Status write(std::string_view bytes);

    int m_fd;
    std::string m_what;
    imaging::Digest m_digest;
    WrittenDelta m_written;
    Bytes m_offset = 0;
};

/// Who gets the pages of a delta, in order. A failure ends the reading.
struct PageSink {
    std::function<Status(Bytes offset, std::string_view pages)> data; ///< whole pages, at most 1 MiB
    std::function<Status(Bytes offset, Bytes length)> zero;
};

/// Reads a delta that may be damaged. Open it, look at the index, then read the pages once.
class DeltaReader {
public:
    /// Checks header and runs. NotFound when there is no such file; HostFailure for a damaged one.
    static Result<DeltaReader> open(const std::filesystem::path& file);
    static Result<DeltaReader> open(UniqueFd fd, std::string name);

    [[nodiscard]] const DeltaIndex& index() const { return m_index; }
    /// Gives every page to the sink and compares the digest at the end: what the sink did counts only when this
    /// succeeds. Returns the digest.
    Result<std::string> read(const PageSink& sink);

private:
    DeltaReader(UniqueFd fd, std::string name, DeltaIndex index)
        : m_fd(std::move(fd))
        , m_name(std::move(name))
        , m_index(std::move(index)) {}

    UniqueFd m_fd;
    std::string m_name;
    DeltaIndex m_index;
};

} // namespace bulkhead::memory
