// SPDX-License-Identifier: Apache-2.0
#include "inspect/inspect.hpp"

#include "inspect/disks.hpp"
#include "inspect/packages.hpp"
#include "inspect/report.hpp"
#include "inspect/walk.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <sys/statvfs.h>
#include <utility>

namespace bulkhead::inspect {

using namespace diff_stream;

namespace {

/// Both sides of one disk.
struct Pair {
    Disk disk;
    DiskState state = DiskState::NotGiven;
    std::array<UniqueFd, 2> tops;
};

void say(const std::string& text) {
    static_cast<void>(std::fprintf(stderr, "bulkhead-agent inspect: %s\n", text.c_str()));
}

Pair openPair(Disk disk, const std::string& folder, Report& report) {
    Pair pair{.disk = disk};
    const std::string suffix = disk == Disk::System ? "-system" : "-home";
    const std::array<std::string, 2> names{findDisk("a" + suffix), findDisk("b" + suffix)};
    if (names[0].empty() || names[1].empty()) {
        pair.state = !names[0].empty() ? DiskState::OnlyA : !names[1].empty() ? DiskState::OnlyB : DiskState::NotGiven;
        return pair;
    }
    pair.state = DiskState::Compared;
    for (std::size_t side = 0; side < 2; ++side) {
        const Side which = side == 0 ? Side::A : Side::B;
        int why = 0;
        auto mounted = mountDisk(folder, names[side], why);
        if (!mounted) {
            say(mounted.error().message);
            report.note(NoteKind::NotMounted, disk, which, why, {});
            pair.state = DiskState::Unreadable;
            continue;
        }
        if (mounted->isWithoutJournal) {
            report.note(NoteKind::JournalIgnored, disk, which, 0, {});
        }
        pair.tops[side] = std::move(mounted->top);
    }
    return pair;
}

/// Of the file system, in bytes: no more can be on it that is worth reading twice.
std::uint64_t sizeOf(int top) {
    struct statvfs info {};
    return ::fstatvfs(top, &info) == 0 ? std::uint64_t{info.f_blocks} * info.f_frsize : 0;
}

} // namespace

int inspectDisks(bool isDeep, int output) {
    std::signal(SIGPIPE, SIG_IGN); // NOLINT(cert-err33-c): cannot fail for SIGPIPE
    const auto folder = makePrivateFolder();
    if (!folder) {
        say(folder.error().message);
        return 1;
    }
    Report report(sinkTo(output), What::Difference, isDeep);
    std::array<Pair, 2> pairs{openPair(Disk::System, *folder, report), openPair(Disk::Home, *folder, report)};
    const Pair& system = pairs[0];
    if (system.state == DiskState::Compared) {
        comparePackages(system.tops[0].get(), system.tops[1].get(), report);
    }
    for (const Pair& pair : pairs) {
        report.diskIs(pair.disk, pair.state);
        if (pair.state == DiskState::Compared) {
            WalkOptions options{.disk = pair.disk, .isDeep = isDeep};
            options.limits.contentBytes = 4 * (sizeOf(pair.tops[0].get()) + sizeOf(pair.tops[1].get()));
            compareTrees(pair.tops[0].get(), pair.tops[1].get(), options, report);
        }
    }
    return report.end() ? 0 : 1;
}

} // namespace bulkhead::inspect
