// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"
#include "dbus/interfaces/diff_stream.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a guest says of the difference between two snapshots, or of itself: see dbus/interfaces/diff_stream.hpp. All of
/// it is a hostile guest's word. Paths, names and commands are bytes of any kind (no zero byte but in a command): they
/// go through terminalSafe() before a terminal or a window sees them.
namespace bulkhead::client {

struct FileState {
    diff_stream::FileType type{};
    std::uint64_t size = 0;
    std::uint32_t mode = 0; ///< the lowest 12 bits
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::int64_t mtime = 0; ///< seconds since 1970
    std::uint32_t mtimeNanoseconds = 0;
    std::uint32_t deviceMajor = 0;
    std::uint32_t deviceMinor = 0;
    std::string target; ///< of a link
    bool operator==(const FileState&) const = default;
};

struct DiffEntry {
    diff_stream::Disk disk{};
    diff_stream::Change change{};
    std::uint32_t what = 0; ///< bits such as diff_stream::kContent
    std::string path;       ///< below the disk's top, without a "/" at its beginning
    std::optional<FileState> before;
    std::optional<FileState> after;
};

struct PackageChange {
    std::string name;
    std::string architecture;
    std::string before; ///< version; empty: it was not there
    std::string after;
};

struct DiffNote {
    diff_stream::NoteKind kind{};
    diff_stream::Disk disk{};
    diff_stream::Side side{};
    int error = 0; ///< errno of the guest, 0: none
    std::string path;
};

struct DiffProgress {
    std::uint64_t directories = 0;
    std::uint64_t names = 0;
    std::uint64_t bytes = 0;
};

/// As the guest counted. At least what was listed.
struct DiffTotals {
    std::uint64_t added = 0;
    std::uint64_t removed = 0;
    std::uint64_t changed = 0;
    std::uint64_t packagesAdded = 0;
    std::uint64_t packagesRemoved = 0;
    std::uint64_t packagesChanged = 0;
    std::uint64_t notes = 0;
    std::uint64_t directories = 0;
    std::uint64_t names = 0;
    std::uint64_t bytes = 0;
};

struct SocketFact {
    diff_stream::SocketKind kind{};
    std::string address;
    std::uint16_t port = 0;
    std::uint32_t uid = 0;
    std::uint32_t pid = 0; ///< 0: not known
};

struct ProcessFact {
    std::uint32_t pid = 0;
    std::uint32_t parent = 0;
    std::uint32_t uid = 0;
    std::int64_t startedAt = 0;
    bool isCut = false;
    std::string command; ///< arguments, each ended by a zero byte
};

/// Is told what stands in a stream, in its order.
class DiffListener {
public:
    virtual ~DiffListener() = default;
    virtual void began(bool /*isDeep*/) {}
    virtual void package(const PackageChange&) {}
    virtual void diskIs(diff_stream::Disk, diff_stream::DiskState) {}
    virtual void entry(const DiffEntry&) {}
    virtual void note(const DiffNote&) {}
    virtual void progress(const DiffProgress&) {}
    virtual void totals(const DiffTotals&) {}
    virtual void socket(const SocketFact&) {}
    virtual void process(const ProcessFact&) {}
};

/// Reads a stream piece by piece. Holds one record at most. One thread.
class DiffParser {
public:
    /// `listener` must outlive it.
    DiffParser(diff_stream::What expected, DiffListener& listener)
        : m_expected(expected)
        , m_listener(listener) {}

    /// The next bytes. GuestFailure when they are not what may stand there: nothing of that record or behind it is
    /// told, and each further call fails in the same way.
    Outcome<void> take(std::string_view bytes);
    /// There are no more bytes. GuestFailure when the stream has not come to its end.
    Outcome<void> finish();
    /// Its last record has come.
    [[nodiscard]] bool hasEnded() const { return m_stage == Stage::Ended; }

private:
    /// In the order in which they come.
    enum class Stage { Nothing, Packages, Disks, Sockets, Processes, Totals, Ended };

    void accept(std::uint16_t kind, std::string_view body);
    void advance(Stage stage, Stage earliest, const char* what);
    void acceptBegin(std::string_view body);
    void acceptPackage(std::string_view body);
    void acceptDisk(std::string_view body);
    void acceptEntry(std::string_view body);
    void acceptNote(std::string_view body);
    void acceptProgress(std::string_view body);
    void acceptTotals(std::string_view body);
    void acceptEnd(std::string_view body);
    void acceptSocket(std::string_view body);
    void acceptProcess(std::string_view body);

    diff_stream::What m_expected;
    DiffListener& m_listener;
    std::string m_pending; ///< the beginning of a record
    std::optional<Failure> m_failure;
    Stage m_stage = Stage::Nothing;
    bool m_isWhole = true; ///< no note said that entries are left out
    std::uint64_t m_records = 0;
    std::uint64_t m_size = 0;
    DiffTotals m_seen;
    std::uint64_t m_progress = 0;
    std::optional<diff_stream::Disk> m_disk;
    diff_stream::DiskState m_diskState{};
    std::string m_lastPath;
    std::optional<std::pair<std::string, std::string>> m_lastPackage;
    std::uint32_t m_lastPid = 0;
};

/// The order of entries: as bytes, "/" before any other.
bool isPathBefore(std::string_view a, std::string_view b);

} // namespace bulkhead::client
