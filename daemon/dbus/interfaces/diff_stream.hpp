// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// What the agent's sub-commands `inspect` and `facts` write to their standard output in a guest, and what a client
/// reads from Domain.Exec's `output`. Part of the contract, like the XML beside it. **Every byte is a hostile
/// guest's**: a reader keeps to the limits below and refuses, never repairs.
///
/// A record is a header of six bytes, size of the body (u32) and kind (u16), and the body. Numbers are little-endian
/// and stand next to each other without gaps; a text is its length (u16) and its bytes, without a zero byte where it is
/// a path or a name. A body has nothing behind its last field. The fields are listed with each kind, in order.
///
/// The order of a difference: Begin, Package*, then for each disk in the order of Disk its DiskIs and its Entry*, then
/// Totals and End. Note and Progress may stand anywhere between Begin and Totals. The order of facts: Begin, Socket*,
/// Process*, Totals, End; Note as above. A stream without End was cut.
namespace bulkhead::diff_stream {

constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderSize = 6;
constexpr std::size_t kLongestBody = 16 * 1024;
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kLongestName = 255;    ///< of a component of a path
constexpr std::size_t kLongestTarget = 4096; ///< of a link
constexpr std::size_t kLongestWord = 256;    ///< a package's name, version and architecture
constexpr std::size_t kLongestCommand = 200;
constexpr std::uint64_t kMostEntries = 4'000'000; ///< what is beyond is counted, not listed (Note::TooManyEntries)
constexpr std::uint64_t kMostPackages = 100'000;
constexpr std::uint64_t kMostNotes = 1'000; ///< what is beyond is counted in Totals
constexpr std::uint64_t kMostProgress = 1'000'000;
constexpr std::size_t kLongestFacts = 256 * 1024; ///< bytes of a whole stream of facts

enum class Kind : std::uint16_t {
    Begin = 1,    ///< u32 kVersion, u8 What, u8 1: deep
    Package = 2,  ///< text name, text architecture, text version in A, text version in B (an empty one: not there)
    DiskIs = 3,   ///< u8 Disk, u8 DiskState
    Entry = 4,    ///< u8 Disk, u8 Change, u32 bits of what changed, text path, state in A, state in B (see below)
    Note = 5,     ///< u8 NoteKind, u8 Disk, u8 Side, i32 errno (0: none), text path (empty: of the whole disk)
    Progress = 6, ///< u64 directories, u64 names, u64 bytes read so far
    /// u64 each: added, removed, changed; packages added, removed, changed; notes, directories, names, bytes read. Of
    /// facts: all zero but notes.
    Totals = 7,
    End = 8, ///< u64 records before this one
    /// u8 SocketKind, text local address ("127.0.0.1", "::1"; of a unix socket its path, "@" before an abstract one),
    /// u16 port (0 for unix), u32 uid, u32 pid that holds it (0: not known)
    Socket = 9,
    /// u32 pid, u32 parent, u32 uid, i64 started at (seconds since 1970), u8 1: the command was cut, text command (its
    /// arguments, each ended by a zero byte; of a kernel thread its name in brackets)
    Process = 10,
};

enum class What : std::uint8_t { Difference = 1, Facts = 2 };
enum class Disk : std::uint8_t { System = 0, Home = 1 };
enum class Side : std::uint8_t { Both = 0, A = 1, B = 2 };

enum class DiskState : std::uint8_t {
    Compared = 1,
    NotGiven = 2, ///< neither side's: they are one and the same, or there are none
    OnlyA = 3,    ///< the other one was not given: not compared
    OnlyB = 4,
    Unreadable = 5, ///< not compared; a Note before it says which side, and why
};

enum class Change : std::uint8_t { Added = 1, Removed = 2, Changed = 3 };

/// Bits of what changed; none with Added and Removed.
constexpr std::uint32_t kContent = 1;
constexpr std::uint32_t kMode = 2;
constexpr std::uint32_t kOwner = 4; ///< uid or gid
constexpr std::uint32_t kType = 8;
constexpr std::uint32_t kTarget = 16;     ///< of a link
constexpr std::uint32_t kAttributes = 32; ///< extended ones: file capabilities, security labels, access lists
constexpr std::uint32_t kDevice = 64;     ///< the number of a device node
constexpr std::uint32_t kAllBits = 127;

enum class FileType : std::uint8_t {
    Unknown = 0,
    File = 1,
    Directory = 2,
    Link = 3,
    Fifo = 4,
    Socket = 5,
    CharacterDevice = 6,
    BlockDevice = 7,
};

// The path of an entry is relative to its disk: components of 1 to kLongestName bytes, neither "." nor "..", with one
// "/" between them. Entries of a disk are strictly ascending: as bytes, "/" before any other. So a directory stands
// before what is in it, and nothing stands twice.
//
// A state of a file (A's first; Added has only B's, Removed only A's): u8 FileType, u64 size in bytes, u32 mode (the
// lowest 12 bits), u32 uid, u32 gid, i64 and u32 its time of change in seconds since 1970 and nanoseconds, u32 and u32
// the major and minor number of a device, text target of a link.
constexpr std::uint32_t kModeBits = 07777;

enum class NoteKind : std::uint8_t {
    NotMounted = 1,     ///< the whole disk
    JournalIgnored = 2, ///< the disk could be mounted only without its journal: its last writes are not seen
    Unreadable = 3,     ///< and so not compared: a directory's names, a file's content or what it is
    SeenBefore = 4,     ///< a directory that is its own ancestor, or stands in two places; not followed
    TooDeep = 5,        ///< not followed
    PathTooLong = 6,    ///< of some names in this directory, which are left out
    TooManyNames = 7,   ///< a directory; not compared
    TooManyDirectories = 8,
    BadName = 9,          ///< the directory has a name that can be none, or one twice; left out
    OtherFileSystem = 10, ///< not followed
    TooManyEntries = 11,  ///< from here on entries are counted only
    PackagesUnreadable = 12,
    FactsCut = 13, ///< there are more processes or sockets than there is room for
};

enum class SocketKind : std::uint8_t { Tcp = 1, Tcp6 = 2, Udp = 3, Udp6 = 4, Unix = 5 };

} // namespace bulkhead::diff_stream
