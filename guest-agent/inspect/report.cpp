// SPDX-License-Identifier: Apache-2.0
#include "inspect/report.hpp"

#include <algorithm>
#include <sys/sysmacros.h>
#include <utility>

namespace bulkhead::inspect {

using namespace diff_stream;

namespace {

constexpr std::chrono::milliseconds kBetweenProgress{250};

void addState(Body& body, const FileState& state) {
    const struct stat& info = state.info;
    const bool isDevice = S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode);
    body.one(typeOf(info))
        .u64(info.st_size < 0 ? 0 : static_cast<std::uint64_t>(info.st_size))
        .u32(info.st_mode & kModeBits)
        .u32(info.st_uid)
        .u32(info.st_gid)
        .i64(info.st_mtim.tv_sec)
        .u32(static_cast<std::uint32_t>(
            std::clamp<long>(info.st_mtim.tv_nsec, 0, 999'999'999))) // ext4 has room for more
        .u32(isDevice ? major(info.st_rdev) : 0)
        .u32(isDevice ? minor(info.st_rdev) : 0)
        .text(state.target, kLongestTarget);
}

} // namespace

FileType typeOf(const struct stat& info) {
    switch (info.st_mode & S_IFMT) {
    case S_IFREG:
        return FileType::File;
    case S_IFDIR:
        return FileType::Directory;
    case S_IFLNK:
        return FileType::Link;
    case S_IFIFO:
        return FileType::Fifo;
    case S_IFSOCK:
        return FileType::Socket;
    case S_IFCHR:
        return FileType::CharacterDevice;
    case S_IFBLK:
        return FileType::BlockDevice;
    default:
        return FileType::Unknown;
    }
}

Report::Report(RecordWriter::Sink sink, What what, bool isDeep)
    : m_writer(std::move(sink))
    , m_nextProgress(std::chrono::steady_clock::now() + kBetweenProgress) {
    m_writer.send(Kind::Begin, Body().u32(kVersion).one(what).u8(isDeep ? 1 : 0));
    m_writer.flush();
}

void Report::package(std::string_view name, std::string_view architecture, std::string_view before,
                     std::string_view after) {
    ++(before.empty() ? m_packagesAdded : after.empty() ? m_packagesRemoved : m_packagesChanged);
    if (++m_packagesListed <= kMostPackages) {
        m_writer.send(Kind::Package, Body()
                                         .text(name, kLongestWord)
                                         .text(architecture, kLongestWord)
                                         .text(before, kLongestWord)
                                         .text(after, kLongestWord));
    }
}

void Report::diskIs(Disk disk, DiskState state) {
    m_writer.send(Kind::DiskIs, Body().one(disk).one(state));
}

void Report::entry(Disk disk, std::string_view path, const FileState* before, const FileState* after,
                   std::uint32_t what) {
    const Change change = before == nullptr ? Change::Added : after == nullptr ? Change::Removed : Change::Changed;
    ++(change == Change::Added ? m_added : change == Change::Removed ? m_removed : m_changed);
    if (++m_listed > kMostEntries) {
        if (m_listed == kMostEntries + 1) {
            note(NoteKind::TooManyEntries, disk, Side::Both, 0, path);
        }
        return;
    }
    Body body;
    body.one(disk).one(change).u32(change == Change::Changed ? what : 0).text(path, kLongestPath);
    for (const FileState* state : {before, after}) {
        if (state != nullptr) {
            addState(body, *state);
        }
    }
    m_writer.send(Kind::Entry, body);
}

void Report::note(NoteKind kind, Disk disk, Side side, int errorNumber, std::string_view path) {
    // One place is kept for what must not be left out.
    if (++m_notes < kMostNotes || kind == NoteKind::TooManyEntries) {
        m_writer.send(Kind::Note, Body().one(kind).one(disk).one(side).i32(errorNumber).text(path, kLongestPath));
    }
}

void Report::tick() {
    const auto now = std::chrono::steady_clock::now();
    if (now >= m_nextProgress) {
        m_nextProgress = now + kBetweenProgress;
        m_writer.send(Kind::Progress, Body().u64(m_directories).u64(m_names).u64(m_bytes));
        m_writer.flush();
    }
}

bool Report::end() {
    Body totals;
    for (const std::uint64_t number : {m_added, m_removed, m_changed, m_packagesAdded, m_packagesRemoved,
                                       m_packagesChanged, m_notes, m_directories, m_names, m_bytes}) {
        totals.u64(number);
    }
    m_writer.send(Kind::Totals, totals);
    m_writer.send(Kind::End, Body().u64(m_writer.records()));
    m_writer.flush();
    return !m_writer.isBroken();
}

} // namespace bulkhead::inspect
