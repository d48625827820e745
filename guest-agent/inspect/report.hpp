// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inspect/records.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace bulkhead::inspect {

/// A file as one side has it.
struct FileState {
    struct stat info {};
    std::string target; ///< of a link
};

diff_stream::FileType typeOf(const struct stat& info);

/// Says what was found, in records, and counts it. Keeps to the stream's limits and tells of progress four times a
/// second at most.
class Report {
public:
    Report(RecordWriter::Sink sink, diff_stream::What what, bool isDeep);

    void package(std::string_view name, std::string_view architecture, std::string_view before, std::string_view after);
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState state);
    /// Null: it is not there. `what`: bits of what changed, when it is there on both sides.
    void entry(diff_stream::Disk disk, std::string_view path, const FileState* before, const FileState* after,
               std::uint32_t what);
    void note(diff_stream::NoteKind kind, diff_stream::Disk disk, diff_stream::Side side, int errorNumber,
              std::string_view path);
    /// One of facts.
    void record(diff_stream::Kind kind, const Body& body) { m_writer.send(kind, body); }

    void countDirectory() { ++m_directories; }
    void countNames(std::uint64_t count) { m_names += count; }
    void countBytes(std::uint64_t count) { m_bytes += count; }
    /// Call it often: tells of progress when it is time.
    void tick();

    /// Totals and End. False: nobody has read it.
    bool end();
    [[nodiscard]] bool isBroken() const { return m_writer.isBroken(); }
    [[nodiscard]] std::uint64_t size() const { return m_writer.size(); }

private:
    RecordWriter m_writer;
    std::chrono::steady_clock::time_point m_nextProgress;
    std::uint64_t m_listed = 0;
    std::uint64_t m_added = 0;
    std::uint64_t m_removed = 0;
    std::uint64_t m_changed = 0;
    std::uint64_t m_packagesListed = 0;
    std::uint64_t m_packagesAdded = 0;
    std::uint64_t m_packagesRemoved = 0;
    std::uint64_t m_packagesChanged = 0;
    std::uint64_t m_notes = 0;
    std::uint64_t m_directories = 0;
    std::uint64_t m_names = 0;
    std::uint64_t m_bytes = 0;
};

} // namespace bulkhead::inspect
