// SPDX-License-Identifier: Apache-2.0
#include "client/diff_stream.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bulkhead::client {

using namespace diff_stream;

namespace {

/// Why a record is refused. Never leaves DiffParser::take().
class Refused : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const std::string& why) {
    throw Refused(why);
}

std::uint64_t numberIn(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    return value;
}

/// The fields of a body, in order.
class Fields {
public:
    explicit Fields(std::string_view bytes)
        : m_bytes(bytes) {}

    std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
    std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
    std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
    std::uint64_t u64() { return number(8); }
    std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
    std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
    bool flag() {
        const std::uint8_t value = u8();
        if (value > 1) {
            refuse("a yes or no is neither");
        }
        return value == 1;
    }
    template <class Enum> Enum one(Enum first, Enum last, const char* what) {
        const std::uint8_t value = u8();
        if (value < static_cast<std::uint8_t>(first) || value > static_cast<std::uint8_t>(last)) {
            refuse(std::string(what) + " " + std::to_string(value) + " is not known");
        }
        return static_cast<Enum>(value);
    }
    std::string text(std::size_t most, bool mayHoldZero = false) {
        const std::string_view value = take(u16());
        if (value.size() > most) {
            refuse("a text of " + std::to_string(value.size()) + " bytes is too long");
        }
        if (!mayHoldZero && value.find('\0') != std::string_view::npos) {
            refuse("a text holds a zero byte");
        }
        return std::string(value);
    }
    void end() const {
        if (!m_bytes.empty()) {
            refuse("a record is longer than its fields");
        }
    }

private:
    std::uint64_t number(std::size_t size) { return numberIn(take(size)); }
    std::string_view take(std::size_t size) {
        if (size > m_bytes.size()) {
            refuse("a record is shorter than its fields");
        }
        const std::string_view taken = m_bytes.substr(0, size);
        m_bytes.remove_prefix(size);
        return taken;
    }

    std::string_view m_bytes;
};

std::string pathIn(Fields& fields) {
    std::string path = fields.text(kLongestPath);
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        const std::string_view name = std::string_view(path).substr(at, end - at);
        if (name.empty() || name == "." || name == ".." || name.size() > kLongestName) {
            refuse("a path has a part that is none");
        }
        at = end + 1;
    }
    return path;
}

FileState stateIn(Fields& fields) {
    FileState state;
    state.type = fields.one(FileType::Unknown, FileType::BlockDevice, "a type of file");
    state.size = fields.u64();
    state.mode = fields.u32();
    state.uid = fields.u32();
    state.gid = fields.u32();
    state.mtime = fields.i64();
    state.mtimeNanoseconds = fields.u32();
    state.deviceMajor = fields.u32();
    state.deviceMinor = fields.u32();
    state.target = fields.text(kLongestTarget);
    const bool isDevice = state.type == FileType::CharacterDevice || state.type == FileType::BlockDevice;
    if (state.mode > kModeBits || state.mtimeNanoseconds > 999'999'999 ||
        (!isDevice && (state.deviceMajor != 0 || state.deviceMinor != 0)) ||
        (state.type != FileType::Link && !state.target.empty())) {
        refuse("the state of a file makes no sense");
    }
    return state;
}

/// Whether the bits say what the states say, as far as those can.
bool agrees(const DiffEntry& entry) {
    const FileState& a = *entry.before;
    const FileState& b = *entry.after;
    const auto has = [&](std::uint32_t bit) { return (entry.what & bit) != 0; };
    const bool isSameType = a.type == b.type;
    const bool areFiles = isSameType && a.type == FileType::File;
    const bool areDevices = isSameType && (a.type == FileType::CharacterDevice || a.type == FileType::BlockDevice);
    return entry.what != 0 && (entry.what & ~kAllBits) == 0 && has(kMode) == (a.mode != b.mode) &&
           has(kOwner) == (a.uid != b.uid || a.gid != b.gid) && has(kType) == !isSameType &&
           has(kTarget) == (isSameType && a.target != b.target) && (!has(kContent) || areFiles) &&
           (!areFiles || a.size == b.size || has(kContent)) &&
           has(kDevice) == (areDevices && (a.deviceMajor != b.deviceMajor || a.deviceMinor != b.deviceMinor)) &&
           (!has(kAttributes) || isSameType);
}

} // namespace

bool isPathBefore(std::string_view a, std::string_view b) {
    const auto weight = [](char c) { return c == '/' ? 0U : static_cast<unsigned char>(c); };
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [&](char x, char y) { return weight(x) < weight(y); });
}

Outcome<void> DiffParser::take(std::string_view bytes) {
    if (m_failure) {
        return tl::unexpected<Failure>(*m_failure);
    }
    try {
        while (!bytes.empty()) {
            if (m_stage == Stage::Ended) {
                refuse("there is something behind the end");
            }
            // First what is missing of the header, then what is missing of the body: no record is copied twice, and
            // nothing is set aside for a size before it was checked.
            std::size_t wanted = kHeaderSize;
            if (m_pending.size() >= kHeaderSize) {
                wanted += numberIn(std::string_view(m_pending).substr(0, 4));
            }
            const std::size_t count = std::min(wanted - m_pending.size(), bytes.size());
            m_pending.append(bytes.substr(0, count));
            bytes.remove_prefix(count);
            if (m_pending.size() < kHeaderSize) {
                continue;
            }
            const std::uint64_t size = numberIn(std::string_view(m_pending).substr(0, 4));
            if (size > kLongestBody) {
                refuse("a record of " + std::to_string(size) + " bytes is too long");
            }
            if (m_pending.size() == kHeaderSize + size) {
                m_size += m_pending.size();
                if (m_expected == What::Facts && m_size > kLongestFacts) {
                    refuse("it is too long");
                }
                const auto kind = static_cast<std::uint16_t>(numberIn(std::string_view(m_pending).substr(4, 2)));
                accept(kind, std::string_view(m_pending).substr(kHeaderSize));
                ++m_records;
                m_pending.clear();
            }
        }
    } catch (const Refused& why) {
        m_pending = {};
        m_failure = Failure{code::kGuestFailure, std::string("what the guest says cannot be used: ") + why.what() +
                                                     " (record " + std::to_string(m_records + 1) + ")"};
        return tl::unexpected<Failure>(*m_failure);
    }
    return {};
}

Outcome<void> DiffParser::finish() {
    if (m_failure) {
        return tl::unexpected<Failure>(*m_failure);
    }
    if (m_stage != Stage::Ended) {
        return failed(code::kGuestFailure, "the guest stopped before it had said everything (after " +
                                               std::to_string(m_records) + " records)");
    }
    return {};
}

void DiffParser::accept(std::uint16_t kind, std::string_view body) {
    if ((m_stage == Stage::Nothing) != (kind == static_cast<std::uint16_t>(Kind::Begin))) {
        refuse(m_stage == Stage::Nothing ? "it does not begin as it should" : "it begins twice");
    }
    switch (static_cast<Kind>(kind)) {
    case Kind::Begin:
        return acceptBegin(body);
    case Kind::Package:
        return acceptPackage(body);
    case Kind::DiskIs:
        return acceptDisk(body);
    case Kind::Entry:
        return acceptEntry(body);
    case Kind::Note:
        return acceptNote(body);
    case Kind::Progress:
        return acceptProgress(body);
    case Kind::Totals:
        return acceptTotals(body);
    case Kind::End:
        return acceptEnd(body);
    case Kind::Socket:
        return acceptSocket(body);
    case Kind::Process:
        return acceptProcess(body);
    }
    refuse("a record of kind " + std::to_string(kind) + " is not known");
}

void DiffParser::advance(Stage stage, Stage earliest, const char* what) {
    if (m_stage < earliest || m_stage > stage) {
        refuse(std::string(what) + " at the wrong place");
    }
    m_stage = stage;
}

void DiffParser::acceptBegin(std::string_view body) {
    Fields fields(body);
    if (const std::uint32_t version = fields.u32(); version != kVersion) {
        refuse("it is of version " + std::to_string(version));
    }
    if (fields.one(What::Difference, What::Facts, "a stream of kind") != m_expected) {
        refuse("it is about something else");
    }
    const bool isDeep = fields.flag();
    fields.end();
    m_stage = m_expected == What::Facts ? Stage::Sockets : Stage::Packages;
    m_listener.began(isDeep);
}

void DiffParser::acceptPackage(std::string_view body) {
    advance(Stage::Packages, Stage::Packages, "a package");
    Fields fields(body);
    PackageChange change;
    change.name = fields.text(kLongestWord);
    change.architecture = fields.text(kLongestWord);
    change.before = fields.text(kLongestWord);
    change.after = fields.text(kLongestWord);
    fields.end();
    std::pair key(change.name, change.architecture);
    if (change.name.empty() || change.before == change.after) {
        refuse("a package has not changed");
    }
    if (m_lastPackage && *m_lastPackage >= key) {
        refuse("packages are not sorted");
    }
    m_lastPackage = std::move(key);
    ++(change.before.empty()  ? m_seen.packagesAdded
       : change.after.empty() ? m_seen.packagesRemoved
                              : m_seen.packagesChanged);
    if (m_seen.packagesAdded + m_seen.packagesRemoved + m_seen.packagesChanged > kMostPackages) {
        refuse("there are too many packages");
    }
    m_listener.package(change);
}

void DiffParser::acceptDisk(std::string_view body) {
    advance(Stage::Disks, Stage::Packages, "a disk");
    Fields fields(body);
    const Disk disk = fields.one(Disk::System, Disk::Home, "a disk");
    const DiskState state = fields.one(DiskState::Compared, DiskState::Unreadable, "the state of a disk");
    fields.end();
    if (m_disk && *m_disk >= disk) {
        refuse("disks are not sorted");
    }
    m_disk = disk;
    m_diskState = state;
    m_lastPath.clear();
    m_listener.diskIs(disk, state);
}

void DiffParser::acceptEntry(std::string_view body) {
    advance(Stage::Disks, Stage::Disks, "a file");
    Fields fields(body);
    DiffEntry entry;
    entry.disk = fields.one(Disk::System, Disk::Home, "a disk");
    entry.change = fields.one(Change::Added, Change::Changed, "a change");
    entry.what = fields.u32();
    entry.path = pathIn(fields);
    if (entry.change != Change::Added) {
        entry.before = stateIn(fields);
    }
    if (entry.change != Change::Removed) {
        entry.after = stateIn(fields);
    }
    fields.end();
    if (m_disk != entry.disk || m_diskState != DiskState::Compared) {
        refuse("a file is of a disk that was not compared");
    }
    if (!isPathBefore(m_lastPath, entry.path)) {
        refuse("files are not sorted");
    }
    if (entry.change == Change::Changed ? !agrees(entry) : entry.what != 0) {
        refuse("what changed of a file makes no sense");
    }
    ++(entry.change == Change::Added     ? m_seen.added
       : entry.change == Change::Removed ? m_seen.removed
                                         : m_seen.changed);
    if (m_seen.added + m_seen.removed + m_seen.changed > kMostEntries) {
        refuse("there are too many files");
    }
    m_lastPath = entry.path;
    m_listener.entry(entry);
}

void DiffParser::acceptNote(std::string_view body) {
    if (m_stage >= Stage::Totals) {
        refuse("a note at the wrong place");
    }
    Fields fields(body);
    DiffNote note;
    note.kind = fields.one(NoteKind::NotMounted, NoteKind::FactsCut, "a note");
    note.disk = fields.one(Disk::System, Disk::Home, "a disk");
    note.side = fields.one(Side::Both, Side::B, "a side");
    note.error = fields.i32();
    note.path = fields.text(kLongestPath);
    fields.end();
    if (note.error < 0 || note.error > 4095) {
        refuse("an error makes no sense");
    }
    if (++m_seen.notes > kMostNotes) {
        refuse("there are too many notes");
    }
    m_isWhole = m_isWhole && note.kind != NoteKind::TooManyEntries;
    m_listener.note(note);
}

void DiffParser::acceptProgress(std::string_view body) {
    if (m_stage >= Stage::Totals) {
        refuse("progress at the wrong place");
    }
    Fields fields(body);
    DiffProgress progress;
    progress.directories = fields.u64();
    progress.names = fields.u64();
    progress.bytes = fields.u64();
    fields.end();
    if (++m_progress > kMostProgress) {
        refuse("there is too much progress");
    }
    m_listener.progress(progress);
}

void DiffParser::acceptTotals(std::string_view body) {
    if (m_stage == Stage::Totals) {
        refuse("totals come twice");
    }
    advance(Stage::Totals, m_expected == What::Facts ? Stage::Sockets : Stage::Disks, "totals");
    Fields fields(body);
    DiffTotals totals;
    const auto next = [&](std::uint64_t& place, std::uint64_t seen, bool mayBeMore) {
        place = fields.u64();
        if (mayBeMore ? place < seen : place != seen) {
            refuse("totals are not those of what came before");
        }
    };
    next(totals.added, m_seen.added, !m_isWhole);
    next(totals.removed, m_seen.removed, !m_isWhole);
    next(totals.changed, m_seen.changed, !m_isWhole);
    next(totals.packagesAdded, m_seen.packagesAdded, true);
    next(totals.packagesRemoved, m_seen.packagesRemoved, true);
    next(totals.packagesChanged, m_seen.packagesChanged, true);
    next(totals.notes, m_seen.notes, true);
    next(totals.directories, 0, true);
    next(totals.names, 0, true);
    next(totals.bytes, 0, true);
    fields.end();
    m_listener.totals(totals);
}

void DiffParser::acceptEnd(std::string_view body) {
    if (m_stage != Stage::Totals) {
        refuse("the end at the wrong place");
    }
    Fields fields(body);
    const std::uint64_t records = fields.u64();
    fields.end();
    if (records != m_records) {
        refuse("of " + std::to_string(records) + " records " + std::to_string(m_records) + " came");
    }
    m_stage = Stage::Ended;
}

void DiffParser::acceptSocket(std::string_view body) {
    advance(Stage::Sockets, Stage::Sockets, "a socket");
    Fields fields(body);
    SocketFact socket;
    socket.kind = fields.one(SocketKind::Tcp, SocketKind::Unix, "a socket");
    socket.address = fields.text(kLongestPath);
    socket.port = fields.u16();
    socket.uid = fields.u32();
    socket.pid = fields.u32();
    fields.end();
    m_listener.socket(socket);
}

void DiffParser::acceptProcess(std::string_view body) {
    advance(Stage::Processes, Stage::Sockets, "a process");
    Fields fields(body);
    ProcessFact process;
    process.pid = fields.u32();
    process.parent = fields.u32();
    process.uid = fields.u32();
    process.startedAt = fields.i64();
    process.isCut = fields.flag();
    process.command = fields.text(kLongestCommand, true);
    fields.end();
    if (process.pid <= m_lastPid) {
        refuse("processes are not sorted");
    }
    m_lastPid = process.pid;
    m_listener.process(process);
}

} // namespace bulkhead::client
