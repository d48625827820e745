// SPDX-License-Identifier: Apache-2.0
#include "cli/output/diff.hpp"

#include "cli/output/describe.hpp"
#include "client/terminal_text.hpp"

#include <fmt/format.h>

#include <array>
#include <system_error>
#include <utility>

namespace bulkhead::cli {

using namespace diff_stream;
using client::DiffEntry;
using client::DiffNote;
using client::FileState;
using client::terminalSafe;

namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::size_t kMostNotesShown = 50;

const char* wordFor(FileType type) {
    constexpr std::array<const char*, 8> kWords{"unknown", "file",   "directory",        "link",
                                                "fifo",    "socket", "character device", "block device"};
    return kWords.at(static_cast<std::size_t>(type));
}

const char* wordFor(Disk disk) {
    return disk == Disk::System ? "system" : "home";
}

std::string modeText(std::uint32_t mode) {
    return fmt::format("{:04o}", mode);
}

std::string ownerText(const FileState& state) {
    return fmt::format("{}:{}", state.uid, state.gid);
}

std::string deviceText(const FileState& state) {
    return fmt::format("{}:{}", state.deviceMajor, state.deviceMinor);
}

bool isDevice(FileType type) {
    return type == FileType::CharacterDevice || type == FileType::BlockDevice;
}

/// What there is to know of a file that came or went.
std::string described(const FileState& state) {
    std::string text = state.type == FileType::File ? bytesText(state.size) : wordFor(state.type);
    if (state.type == FileType::Link) {
        return text + " to " + terminalSafe(state.target);
    }
    if (isDevice(state.type)) {
        text += " " + deviceText(state);
    }
    return text + ", " + modeText(state.mode) + ", " + ownerText(state);
}

std::string changes(const DiffEntry& entry) {
    const FileState& a = *entry.before;
    const FileState& b = *entry.after;
    std::string text;
    const auto add = [&](std::uint32_t bit, const std::string& words) {
        if ((entry.what & bit) != 0) {
            text += (text.empty() ? "" : ", ") + words;
        }
    };
    add(kType, std::string("was a ") + wordFor(a.type) + ", is a " + wordFor(b.type));
    add(kContent, a.size == b.size ? "content, " + bytesText(b.size)
                                   : "content, " + bytesText(a.size) + " -> " + bytesText(b.size));
    add(kTarget, "link to " + terminalSafe(a.target) + " -> " + terminalSafe(b.target));
    add(kDevice, "device " + deviceText(a) + " -> " + deviceText(b));
    add(kMode, "mode " + modeText(a.mode) + " -> " + modeText(b.mode));
    add(kOwner, "owner " + ownerText(a) + " -> " + ownerText(b));
    add(kAttributes, "attributes");
    return text;
}

std::string lineOf(const DiffEntry& entry) {
    const FileState& shown = entry.after ? *entry.after : *entry.before;
    const bool isDirectory = shown.type == FileType::Directory;
    const char mark = entry.change == Change::Added ? '+' : entry.change == Change::Removed ? '-' : '~';
    return fmt::format("  {} {}{}  ({})\n", mark, terminalSafe(guestPath(entry.disk, entry.path)),
                       isDirectory ? "/" : "", entry.change == Change::Changed ? changes(entry) : described(shown));
}

std::string counted(std::uint64_t added, std::uint64_t removed, std::uint64_t changed) {
    return fmt::format("{} added, {} removed, {} changed", added, removed, changed);
}

} // namespace

std::string guestPath(Disk disk, std::string_view path) {
    return (disk == Disk::System ? "/" : "/home/") + std::string(path);
}

std::string noteText(const DiffNote& note) {
    const auto sentence = [&](const std::string& what) {
        const std::string side = note.side == Side::A ? " (in A)" : note.side == Side::B ? " (in B)" : "";
        const std::string why = note.error != 0 ? ": " + std::generic_category().message(note.error) : "";
        return what + side + why;
    };
    const std::string path = note.path.empty() ? fmt::format("the {} disk", wordFor(note.disk))
                                               : terminalSafe(guestPath(note.disk, note.path));
    switch (note.kind) {
    case NoteKind::NotMounted:
        return sentence(path + ": it cannot be read at all");
    case NoteKind::JournalIgnored:
        return sentence(path + ": its journal cannot be read, so its last changes are not seen");
    case NoteKind::Unreadable:
        return sentence(path + ": it cannot be read");
    case NoteKind::SeenBefore:
        return sentence(path + ": it is a directory that also stands elsewhere, and was looked into once only");
    case NoteKind::TooDeep:
        return sentence(path + ": it lies too deep to be looked into");
    case NoteKind::PathTooLong:
        return sentence(path + ": paths of some names in it are too long; those were left out");
    case NoteKind::TooManyNames:
        return sentence(path + ": it has too many names to be looked into");
    case NoteKind::TooManyDirectories:
        return sentence(path + ": there are too many directories; it was not looked into");
    case NoteKind::BadName:
        return sentence(path + ": it has names that can be none, or one twice; those were left out");
    case NoteKind::OtherFileSystem:
        return sentence(path + ": it is another file system, and was not looked into");
    case NoteKind::TooManyEntries:
        return sentence(path + ": there are too many differences; from here on they are counted only");
    case NoteKind::PackagesUnreadable:
        return sentence(path + ": packages in it could not be read");
    case NoteKind::FactsCut:
        return "there are more " + terminalSafe(note.path) + " than there is room for";
    }
    return path;
}

void DiffOutput::write(std::string_view text) {
    m_buffer += text;
    if (m_buffer.size() >= kPiece) {
        flush();
    }
}

void DiffOutput::flush() {
    if (!m_buffer.empty() && !m_isBroken) {
        m_isBroken = !m_writer(m_buffer);
    }
    m_buffer.clear();
}

DiffText::DiffText(DiffWriter writer, const std::string& title, bool isUnlimited)
    : DiffOutput(std::move(writer))
    , m_isUnlimited(isUnlimited) {
    write(title + "\n");
}

void DiffText::head(const std::string& line) {
    m_head = "\n" + line + "\n";
}

bool DiffText::mayList() {
    ++m_seen;
    if (!m_isUnlimited && m_lines >= kMostLines) {
        ++m_leftOut;
        return false;
    }
    ++m_lines;
    write(std::exchange(m_head, {}));
    return true;
}

void DiffText::package(const client::PackageChange& change) {
    if (m_seen == 0) {
        head("Packages");
    }
    if (!mayList()) {
        return;
    }
    const char mark = change.before.empty() ? '+' : change.after.empty() ? '-' : '~';
    const std::string version = change.before.empty()  ? change.after
                                : change.after.empty() ? change.before
                                                       : change.before + " -> " + change.after;
    write(fmt::format("  {} {} {} ({})\n", mark, terminalSafe(change.name), terminalSafe(version),
                      terminalSafe(change.architecture)));
}

void DiffText::diskIs(Disk disk, DiskState state) {
    m_head.clear();
    const std::string name = disk == Disk::System ? "System disk" : "Home disk";
    switch (state) {
    case DiskState::Compared:
        head(name);
        return;
    case DiskState::NotGiven:
        write("\n" + name + ": there is nothing to compare (one and the same for both, or gone)\n");
        return;
    case DiskState::OnlyA:
    case DiskState::OnlyB:
        m_isUncertain = true;
        write("\n" + name + ": not compared, only " + (state == DiskState::OnlyA ? "A" : "B") + " has one\n");
        return;
    case DiskState::Unreadable:
        m_isUncertain = true;
        write("\n" + name + ": not compared, see below\n");
        return;
    }
}

void DiffText::entry(const DiffEntry& entry) {
    if (mayList()) {
        write(lineOf(entry));
    }
}

void DiffText::note(const DiffNote& note) {
    m_isUncertain = true;
    ++m_notesSeen;
    if (m_isUnlimited || m_notes.size() < kMostNotesShown) {
        m_notes.push_back(noteText(note));
    }
}

void DiffText::totals(const client::DiffTotals& totals) {
    m_totals = totals;
}

void DiffText::finish(const client::Failure* failure) {
    if (m_leftOut != 0) {
        write(fmt::format("  … and {} more; all of them: --all\n", m_leftOut));
    }
    if (!m_notes.empty()) {
        write("\nNot everything could be compared:\n");
        for (const std::string& note : m_notes) {
            write("  " + note + "\n");
        }
        if (m_notesSeen > m_notes.size()) {
            write(fmt::format("  … and {} more; all of them: --all\n", m_notesSeen - m_notes.size()));
        }
        if (m_totals.notes > m_notesSeen) {
            write(fmt::format("  … and {} more that were counted only\n", m_totals.notes - m_notesSeen));
        }
    }
    if (failure != nullptr) {
        write("\nThis is not all: see the error.\n");
    } else if (m_seen == 0 && m_totals.added + m_totals.removed + m_totals.changed == 0) {
        write(m_isUncertain ? "\nNothing differs in what could be compared.\n" : "\nNothing differs.\n");
    } else {
        write(fmt::format("\nFiles: {}. Packages: {}.\n", counted(m_totals.added, m_totals.removed, m_totals.changed),
                          counted(m_totals.packagesAdded, m_totals.packagesRemoved, m_totals.packagesChanged)));
    }
    flush();
}

} // namespace bulkhead::cli
