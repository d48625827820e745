// SPDX-License-Identifier: Apache-2.0
#include "memcap/capturer.hpp"

#include "memory/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace bulkhead::memcap {

namespace {

using memory::kPage;
using memory::RunKind;

constexpr std::uint64_t kPagesAtOnce = 256;
/// Room for what the guest dirties between prepare and capture.
constexpr Bytes kSlack = 16 * kMiB;
constexpr Bytes kSlackShare = 8;
/// More runs than there were must not make the vector grow in the pause.
constexpr std::size_t kSpareRuns = 64 * 1024;

} // namespace

Capturer::Capturer(Emulator emulator, ParentImage parent, UniqueFd output, CaptureTask task)
    : m_emulator(std::move(emulator))
    , m_parent(std::move(parent))
    , m_output(std::move(output))
    , m_task(std::move(task)) {}

Result<std::uint64_t> Capturer::findAddress() const {
    const auto vmas = m_emulator.maps();
    if (!vmas) {
        return fail(vmas.error());
    }
    const auto addresses = findRam(*vmas, m_task.ram, m_task.mapped);
    if (!addresses) {
        return fail(addresses.error());
    }
    if (addresses->size() == 1) {
        return addresses->front();
    }
    // libvirt makes memory of its own of the same size that nobody uses. What is in use has pages.
    std::vector<std::uint64_t> used;
    for (const std::uint64_t address : *addresses) {
        std::vector<PageRun> runs;
        if (auto found = m_emulator.privatePages(address, m_task.ram, runs); !found) {
            return fail(found.error());
        }
        if (!runs.empty()) {
            used.push_back(address);
        }
    }
    if (used.size() != 1) {
        return fail(ErrorCode::WrongState, "the emulator has " + std::to_string(addresses->size()) +
                                               " mappings that could be the guest's memory of " +
                                               std::to_string(m_task.ram) + " bytes, " + std::to_string(used.size()) +
                                               " of them in use");
    }
    return used.front();
}

Status Capturer::checkSize(std::uint64_t pages) const {
    if (pages * kPage > m_task.maxPrivate) {
        return fail(ErrorCode::LimitExceeded, "the emulator has " + formatBytes(pages * kPage) +
                                                  " of private memory; at most " + formatBytes(m_task.maxPrivate) +
                                                  " may be captured");
    }
    return {};
}

Result<memory::PreparedCapture> Capturer::prepare() {
    auto prepared = makeReady();
    return prepared ? prepared : fail(reasonFor(prepared.error()));
}

Error Capturer::reasonFor(const Error& error) const {
    // Of an ended process the kernel says many things; that it has ended is what matters.
    if (error.code == ErrorCode::HostFailure || error.code == ErrorCode::NotFound) {
        if (auto alive = m_emulator.alive(kEndingTime); !alive) {
            return alive.error();
        }
    }
    return error;
}

Result<memory::PreparedCapture> Capturer::makeReady() {
    const auto address = findAddress();
    if (!address) {
        return fail(address.error());
    }
    m_address = *address;
    m_runs.clear();
    if (auto found = m_emulator.privatePages(m_address, m_task.ram, m_runs); !found) {
        return fail(found.error());
    }
    const std::uint64_t pages = countPages(m_runs);
    if (auto fits = checkSize(pages); !fits) {
        return fail(fits.error());
    }
    // At worst all of it is written. Better no room now than when the guest has stood still for it.
    if (pages > 0 && ::fallocate(m_output.get(), 0, 0, static_cast<off_t>(pages * kPage)) != 0 && errno != EOPNOTSUPP) {
        const int error = errno;
        return memory::failWriting("cannot take " + formatBytes(pages * kPage) + " of disk space for the memory delta",
                                   error);
    }
    const Bytes wanted = pages * kPage + pages * kPage / kSlackShare + kSlack;
    if (auto reserved = m_buffer.reserve(m_task.ram, wanted); !reserved) {
        return fail(reserved.error());
    }
    m_runs.reserve(m_runs.size() * 2 + kSpareRuns);
    return memory::PreparedCapture{pages, m_buffer.ready()};
}

Result<memory::CapturedPages> Capturer::capture() {
    auto captured = copyPages();
    return captured ? captured : fail(reasonFor(captured.error()));
}

Result<memory::CapturedPages> Capturer::copyPages() {
    const auto begin = std::chrono::steady_clock::now();
    // The mapping is still where it was: nothing else could be told from the page map.
    const auto address = findAddress();
    if (!address) {
        return fail(address.error());
    }
    m_address = *address;
    m_runs.clear();
    if (auto found = m_emulator.privatePages(m_address, m_task.ram, m_runs); !found) {
        return fail(found.error());
    }
    const std::uint64_t pages = countPages(m_runs);
    if (auto fits = checkSize(pages); !fits) {
        return fail(fits.error());
    }
    if (auto copied = m_emulator.copy(m_address, m_runs, m_buffer.data()); !copied) {
        return fail(copied.error());
    }
    const auto duration = std::chrono::steady_clock::now() - begin;
    return memory::CapturedPages{pages, std::chrono::duration_cast<std::chrono::microseconds>(duration)};
}

Status Capturer::compareRun(const PageRun& run, const char* pages, memory::DeltaIndex& index) {
    for (std::uint64_t done = 0; done < run.count;) {
        const std::uint64_t count = std::min(kPagesAtOnce, run.count - done);
        const auto parent = m_parent.read((run.first + done) * kPage, count * kPage);
        if (!parent) {
            return fail(parent.error());
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::string_view page(pages + (done + i) * kPage, kPage);
            if (page == parent->substr(i * kPage, kPage)) {
                ++m_samePages;
            } else {
                index.append(run.first + done + i, 1, memory::isZero(page) ? RunKind::Zero : RunKind::Data);
            }
        }
        done += count;
    }
    return {};
}

Status Capturer::compareGap(std::uint64_t first, std::uint64_t end, memory::DeltaIndex& index) {
    while (!m_task.mapped && first < end) {
        const auto extent = m_parent.dataAfter(first * kPage);
        if (!extent) {
            return fail(extent.error());
        }
        first = std::max(first, extent->begin / kPage);
        if (extent->begin == extent->end || first >= end) {
            break; // holes up to there
        }
        const std::uint64_t count = std::min({kPagesAtOnce, end - first, (extent->end + kPage - 1) / kPage - first});
        const auto parent = m_parent.read(first * kPage, count * kPage);
        if (!parent) {
            return fail(parent.error());
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            if (!memory::isZero(parent->substr(i * kPage, kPage))) {
                index.append(first + i, 1, RunKind::Zero);
            }
        }
        first += count;
    }
    return {};
}

Result<memory::DeltaIndex> Capturer::compare() {
    memory::DeltaIndex index{m_task.ram, m_task.parent, {}};
    const char* pages = m_buffer.data();
    std::uint64_t next = 0;
    for (const PageRun& run : m_runs) {
        auto done = compareGap(next, run.first, index);
        if (done) {
            done = compareRun(run, pages, index);
        }
        if (!done) {
            return fail(done.error());
        }
        pages += run.count * kPage;
        next = run.first + run.count;
    }
    if (auto done = compareGap(next, m_task.ram / kPage, index); !done) {
        return fail(done.error());
    }
    return index;
}

Result<memory::WrittenDelta> Capturer::write(const memory::DeltaIndex& index) {
    memory::DeltaWriter writer(m_output.get(), "the memory delta");
    if (auto begun = writer.begin(index); !begun) {
        return fail(begun.error());
    }
    // A data run can reach over several captured ones only where these are neighbours, which they never are.
    auto captured = m_runs.begin();
    const char* pages = m_buffer.data();
    for (const memory::Run& run : index.runs) {
        if (run.kind != RunKind::Data) {
            continue;
        }
        while (captured->first + captured->count <= run.first) {
            pages += captured->count * kPage;
            ++captured;
        }
        const char* const begin = pages + (run.first - captured->first) * kPage;
        // In pieces, which stay in the processor's cache between the digest and the kernel.
        for (std::uint64_t done = 0; done < run.count; done += kPagesAtOnce) {
            const std::uint64_t count = std::min(kPagesAtOnce, run.count - done);
            if (auto added = writer.add({begin + done * kPage, count * kPage}); !added) {
                return fail(added.error());
            }
        }
    }
    return writer.finish();
}

Result<memory::FinishedCapture> Capturer::finish() {
    m_samePages = 0;
    const auto index = compare();
    if (!index) {
        return fail(index.error());
    }
    // What was taken beforehand for the worst case; finish() of the writer cuts the file in any case.
    if (::ftruncate(m_output.get(), static_cast<off_t>(index->fileSize())) != 0) {
        return memory::failWriting("cannot give the memory delta its size", errno);
    }
    auto delta = write(*index);
    m_buffer.drop();
    if (auto same = m_parent.unchanged(); !same) {
        return fail(same.error());
    }
    if (!delta) {
        return fail(delta.error());
    }
    return memory::FinishedCapture{std::move(*delta), m_samePages};
}

} // namespace bulkhead::memcap
