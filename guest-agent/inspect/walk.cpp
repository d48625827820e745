// SPDX-License-Identifier: Apache-2.0
#include "inspect/walk.hpp"

#include "base/unique_fd.hpp"
#include "inspect/content.hpp"
#include "inspect/names.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::inspect {

using namespace diff_stream;

namespace {

bool isDirectory(const FileState* state) {
    return state != nullptr && S_ISDIR(state->info.st_mode);
}

bool isSameTime(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/// Nothing has touched it since both sides were one.
bool isUntouched(const struct stat& a, const struct stat& b) {
    return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mode == b.st_mode && a.st_uid == b.st_uid &&
           a.st_gid == b.st_gid && a.st_rdev == b.st_rdev && isSameTime(a.st_mtim, b.st_mtim) &&
           isSameTime(a.st_ctim, b.st_ctim);
}

class Walk {
public:
    Walk(const WalkOptions& options, Report& report)
        : m_options(options)
        , m_report(report)
        , m_budget{options.limits.nameBytes} {}

    void begin(int a, int b) {
        std::array<Opened, 2> top;
        const std::array<int, 2> given{a, b};
        for (std::size_t side = 0; side < 2; ++side) {
            // A description of its own: the caller's has a position that others may have moved.
            top[side].fd.reset(::openat(given[side], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            struct stat info {};
            if (!top[side].fd || ::fstat(top[side].fd.get(), &info) != 0) {
                note(NoteKind::Unreadable, side, errno);
                return;
            }
            m_device[side] = info.st_dev;
            m_seen[side].enter(info.st_ino);
        }
        descend(top);
    }

private:
    /// A directory of one side; not open: it is not there.
    struct Opened {
        UniqueFd fd;
        Names names;
    };
    struct Present {
        std::optional<FileState> a;
        std::optional<FileState> b;
        [[nodiscard]] std::optional<FileState>& of(std::size_t side) { return side == 0 ? a : b; }
        [[nodiscard]] const FileState* pointer(std::size_t side) const {
            const auto& state = side == 0 ? a : b;
            return state ? &*state : nullptr;
        }
    };

    void note(NoteKind kind, std::size_t side, int errorNumber) {
        m_report.note(kind, m_options.disk, side == 0 ? Side::A : Side::B, errorNumber, m_path);
    }

    /// False: it is not known what is in it.
    bool readNames(Opened& directory, std::size_t side) {
        int why = 0;
        std::size_t odd = 0;
        switch (directory.names.read(directory.fd.get(), m_options.limits.namesInDirectory, m_budget, why, odd)) {
        case Names::Outcome::Failed:
            note(NoteKind::Unreadable, side, why);
            return false;
        case Names::Outcome::TooMany:
            note(NoteKind::TooManyNames, side, 0);
            return false;
        case Names::Outcome::Done:
            break;
        }
        if (odd != 0) {
            note(NoteKind::BadName, side, 0);
        }
        m_report.countDirectory();
        m_report.countNames(directory.names.size());
        return true;
    }

    /// What is in the directories at m_path. At least one of them is open.
    void descend(std::array<Opened, 2>& directories) {
        for (std::size_t side = 0; side < 2; ++side) {
            if (directories[side].fd && !readNames(directories[side], side)) {
                return;
            }
        }
        m_report.tick();
        const Names& ofA = directories[0].names;
        const Names& ofB = directories[1].names;
        const std::size_t length = m_path.size();
        bool isTooLong = false;
        for (std::size_t a = 0, b = 0; (a < ofA.size() || b < ofB.size()) && !m_report.isBroken();) {
            const int order = a == ofA.size() ? 1 : b == ofB.size() ? -1 : std::strcmp(ofA.at(a), ofB.at(b));
            const char* const name = order <= 0 ? ofA.at(a) : ofB.at(b);
            const std::size_t nameLength = std::strlen(name);
            if (length + 1 + nameLength <= kLongestPath) {
                m_path += length == 0 ? "" : "/";
                m_path += name;
                visit(directories, name, order <= 0, order >= 0);
                m_path.resize(length);
            } else if (!std::exchange(isTooLong, true)) {
                note(NoteKind::PathTooLong, order <= 0 ? 0 : 1, 0);
            }
            a += order <= 0 ? 1U : 0U;
            b += order >= 0 ? 1U : 0U;
            if ((++m_visits % 256) == 0) {
                m_report.tick();
            }
        }
    }

    bool look(const Opened& directory, const char* name, std::size_t side, std::optional<FileState>& state) {
        FileState seen;
        if (::fstatat(directory.fd.get(), name, &seen.info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
            // The kernel itself finds that a directory would be its own ancestor. (Links are not followed.)
            note(errno == ELOOP ? NoteKind::SeenBefore : NoteKind::Unreadable, side, errno == ELOOP ? 0 : errno);
            return false;
        }
        if (S_ISLNK(seen.info.st_mode)) {
            seen.target.resize(kLongestTarget);
            const ssize_t size = ::readlinkat(directory.fd.get(), name, seen.target.data(), seen.target.size());
            if (size < 0) {
                note(NoteKind::Unreadable, side, errno);
                return false;
            }
            seen.target.resize(static_cast<std::size_t>(size));
        }
        state = std::move(seen);
        return true;
    }

    void visit(std::array<Opened, 2>& directories, const char* name, bool inA, bool inB) {
        Present present;
        if ((inA && !look(directories[0], name, 0, present.a)) || (inB && !look(directories[1], name, 1, present.b))) {
            return;
        }
        std::array<Opened, 2> below;
        bool mayDescend = true;
        for (std::size_t side = 0; side < 2; ++side) {
            if (isDirectory(present.pointer(side))) {
                mayDescend = open(directories[side], name, side, below[side]) && mayDescend;
            }
        }
        const std::uint32_t what = inA && inB ? differences(directories, name, present, below) : 0;
        if (!inA || !inB || what != 0) {
            m_report.entry(m_options.disk, m_path, present.pointer(0), present.pointer(1), what);
        }
        if (mayDescend && (below[0].fd || below[1].fd)) {
            ++m_level;
            descend(below);
            --m_level;
        }
    }

    /// False: it is not to be followed, which was said.
    bool open(const Opened& parent, const char* name, std::size_t side, Opened& directory) {
        if (m_level >= m_options.limits.levels) {
            note(NoteKind::TooDeep, side, 0);
            return false;
        }
        directory.fd.reset(
            ::openat(parent.fd.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        struct stat info {};
        if (!directory.fd || ::fstat(directory.fd.get(), &info) != 0) {
            note(NoteKind::Unreadable, side, errno);
            return false;
        }
        if (info.st_dev != m_device[side]) {
            note(NoteKind::OtherFileSystem, side, 0);
            return false;
        }
        switch (m_seen[side].enter(info.st_ino)) {
        case SeenDirectories::Answer::New:
            return true;
        case SeenDirectories::Answer::Seen:
            note(NoteKind::SeenBefore, side, 0);
            return false;
        case SeenDirectories::Answer::Full:
            note(NoteKind::TooManyDirectories, side, 0);
            return false;
        }
        return false;
    }

    /// Bits of what changed of something that is there on both sides.
    std::uint32_t differences(const std::array<Opened, 2>& directories, const char* name, const Present& present,
                              const std::array<Opened, 2>& below) {
        const struct stat& a = present.a->info;
        const struct stat& b = present.b->info;
        std::uint32_t what = 0;
        what |= (a.st_mode & kModeBits) != (b.st_mode & kModeBits) ? kMode : 0;
        what |= a.st_uid != b.st_uid || a.st_gid != b.st_gid ? kOwner : 0;
        if (typeOf(a) != typeOf(b)) {
            return what | kType;
        }
        what |= present.a->target != present.b->target ? kTarget : 0;
        const bool isOne = !m_options.isDeep && isUntouched(a, b);
        if (S_ISREG(a.st_mode)) {
            return isOne ? what : what | differencesOfFiles(directories, name, a, b);
        }
        if (S_ISDIR(a.st_mode) && !isOne && below[0].fd && below[1].fd) {
            what |= attributesOf(below[0].fd.get()) != attributesOf(below[1].fd.get()) ? kAttributes : 0;
        }
        if ((S_ISCHR(a.st_mode) || S_ISBLK(a.st_mode)) && a.st_rdev != b.st_rdev) {
            what |= kDevice;
        }
        return what;
    }

    std::uint32_t differencesOfFiles(const std::array<Opened, 2>& directories, const char* name, const struct stat& a,
                                     const struct stat& b) {
        const std::uint32_t bySize = a.st_size != b.st_size ? kContent : 0;
        const std::array<const struct stat*, 2> expected{&a, &b};
        std::array<UniqueFd, 2> files;
        for (std::size_t side = 0; side < 2; ++side) {
            files[side].reset(
                ::openat(directories[side].fd.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
            struct stat info {};
            if (!files[side] || ::fstat(files[side].get(), &info) != 0) {
                note(NoteKind::Unreadable, side, errno);
                return bySize;
            }
            if (!S_ISREG(info.st_mode) || info.st_ino != expected[side]->st_ino) {
                note(NoteKind::Unreadable, side, ESTALE); // only on a file system that somebody else changes
                return bySize;
            }
        }
        std::uint32_t what = bySize;
        if (bySize == 0 && a.st_size > 0) {
            const auto answer = m_content.compare(files[0].get(), files[1].get(), static_cast<std::uint64_t>(a.st_size),
                                                  m_contentLeft, m_report);
            for (std::size_t side = 0; side < 2; ++side) {
                if (const int why = side == 0 ? answer.errorOfA : answer.errorOfB; why != 0) {
                    note(NoteKind::Unreadable, side, why);
                }
            }
            const bool isKnown = answer.errorOfA == 0 && answer.errorOfB == 0;
            what |= isKnown && !answer.isSame ? kContent : 0;
        }
        return what | (attributesOf(files[0].get()) != attributesOf(files[1].get()) ? kAttributes : 0);
    }

    const WalkOptions& m_options;
    Report& m_report;
    NameBudget m_budget;
    ContentComparer m_content;
    std::uint64_t m_contentLeft = m_options.limits.contentBytes;
    std::array<SeenDirectories, 2> m_seen;
    std::array<dev_t, 2> m_device{};
    std::string m_path;
    std::size_t m_level = 0;
    std::uint64_t m_visits = 0;
};

} // namespace

void compareTrees(int a, int b, const WalkOptions& options, Report& report) {
    Walk(options, report).begin(a, b);
}

} // namespace bulkhead::inspect
