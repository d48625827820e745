// SPDX-License-Identifier: Apache-2.0
#include "memory/delta_file.hpp"
#include "memory/memory_capture.hpp"
#include "memory/memory_image.hpp"
#include "stopped_process.hpp"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::memory;
using test::StoppedProcess;

namespace {

constexpr Bytes kRam = 32 * kMiB;
constexpr std::uint64_t kPages = kRam / kPage;

void fill(char* memory, std::uint64_t page, std::uint64_t count, char with) {
    std::memset(memory + page * kPage, with, count * kPage);
}

std::string readAll(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    return bytes.str();
}

/// Shows a failed Result's message.
template <class T> bool good(const Result<T>& result) {
    if (!result) {
        qWarning("%s: %s", std::string(nameOf(result.error().code)).c_str(), result.error().message.c_str());
    }
    return result.has_value();
}

} // namespace

class TestMemoryCapture : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_folder;

    std::filesystem::path path(const char* name) const { return m_folder->filePath(name).toStdString(); }

    CaptureSpec specOf(const StoppedProcess& process) const {
        CaptureSpec spec;
        spec.helper = BULKHEAD_MEMCAP;
        spec.emulator = process.pid();
        spec.ram = kRam;
        spec.output = path("delta");
        return spec;
    }
    Result<FinishedCapture> capture(const CaptureSpec& spec) const {
        auto capture = MemoryCapture::start(spec);
        if (!capture) {
            return fail(capture.error());
        }
        if (const auto prepared = capture->prepare(); !prepared) {
            return fail(prepared.error());
        }
        if (const auto captured = capture->capture(); !captured) {
            return fail(captured.error());
        }
        return capture->finish();
    }
    ComposeSpec composeOf(const std::optional<MemoryImage>& parent, std::vector<DeltaStep> deltas) const {
        ComposeSpec spec;
        spec.ram = kRam;
        if (parent) {
            spec.parent = parent->file;
            spec.parentDigest = parent->digest;
        }
        spec.deltas = std::move(deltas);
        spec.folder = m_folder->path().toStdString();
        spec.access = {0444, ::getuid(), ::getgid()};
        spec.sync = false; // nobody pulls the plug
        return spec;
    }
    /// An image with data in two places, made as all images are.
    MemoryImage makeParent() const {
        StoppedProcess source(kRam, std::nullopt, {[](char* memory) {
                                  fill(memory, 10, 100, 'p');
                                  fill(memory, 5000, 50, 'q');
                              }});
        source.change();
        auto spec = specOf(source);
        spec.output = path("parent.delta");
        if (!good(capture(spec))) {
            throw std::runtime_error("no parent delta");
        }
        const auto image = composeImage(composeOf(std::nullopt, {{spec.output, std::string(zeroParent())}}));
        if (!good(image)) {
            throw std::runtime_error("no parent image");
        }
        return *image;
    }
    CaptureSpec specOf(const StoppedProcess& process, const MemoryImage& image) const {
        auto spec = specOf(process);
        spec.mappedImage = image.file;
        spec.parent = CaptureParent{image.file, image.digest};
        return spec;
    }

    /// Our child that is not the stopped process.
    static pid_t helperOf(const StoppedProcess& process) {
        std::istringstream children(readAll("/proc/self/task/" + std::to_string(::gettid()) + "/children"));
        for (pid_t child = 0; children >> child;) {
            if (child != process.pid()) {
                return child;
            }
        }
        return -1;
    }

private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void cleanup() { m_folder.reset(); }

    void coldBooted_theImageIsTheMemory() {
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) {
                                   fill(memory, 0, 1, 'a');
                                   fill(memory, 7, 300, 'b');
                                   memory[20 * kMiB + 5] = 'c';
                                   fill(memory, 6000, 10, '\0'); // touched, but zero
                                   fill(memory, kPages - 1, 1, 'z');
                               }});
        process.change();
        const auto finished = capture(specOf(process));
        QVERIFY(good(finished));
        QCOMPARE(finished->delta.dataPages, 303ULL);
        QCOMPARE(finished->delta.zeroPages, 0ULL);
        QVERIFY(finished->samePages >= 10);
        QCOMPARE(std::filesystem::file_size(path("delta")), finished->delta.size);
        struct stat status {};
        QCOMPARE(::stat(path("delta").c_str(), &status), 0);
        QCOMPARE(status.st_mode & 07777U, 0600U);

        const auto image = composeImage(composeOf(std::nullopt, {{path("delta"), std::string(zeroParent())}}));
        QVERIFY(good(image));
        QVERIFY(readAll(image->file) == process.memory());
        QVERIFY(good(verifyImage(image->file, image->digest, kRam)));
        QCOMPARE(::stat(image->file.c_str(), &status), 0);
        QCOMPARE(status.st_mode & 07777U, 0444U);
        // Holes stay holes: 303 pages are 1.2 MiB of 32.
        QVERIFY2(image->allocated < 2 * kMiB, std::to_string(image->allocated).c_str());
    }
    void startedFromAnImage_onlyWhatChangedIsStored() {
        const MemoryImage parent = makeParent();
        StoppedProcess process(kRam, parent.file, {[](char* memory) {
                                   fill(memory, 10, 5, '\0');   // zeros where the parent has data
                                   fill(memory, 15, 5, 'p');    // written, but the same
                                   fill(memory, 5049, 2, 'n');  // half on the parent's data, half behind
                                   fill(memory, 8000, 1, '\0'); // zeros over zeros
                                   [[maybe_unused]] const volatile char seen = memory[5010 * kPage];
                               }});
        process.change();
        const auto finished = capture(specOf(process, parent));
        QVERIFY(good(finished));
        QCOMPARE(finished->delta.dataPages, 2ULL);
        QCOMPARE(finished->delta.zeroPages, 5ULL);
        QCOMPARE(finished->samePages, 6ULL);
        auto reader = DeltaReader::open(path("delta"));
        QVERIFY(good(reader));
        const std::vector<Run> expected{{10, 5, RunKind::Zero}, {5049, 2, RunKind::Data}};
        QVERIFY(reader->index().runs == expected);
        QCOMPARE(reader->index().parent, parent.digest);

        const auto image = composeImage(composeOf(parent, {{path("delta"), parent.digest}}));
        QVERIFY(good(image));
        QVERIFY(readAll(image->file) == process.memory());
        QVERIFY(image->allocated < 2 * kMiB);
    }
    void againFromTheSameProcess_eachDeltaIsSmall() {
        StoppedProcess process(kRam, std::nullopt,
                               {[](char* memory) { fill(memory, 100, 2000, 'a'); },
                                [](char* memory) { fill(memory, 200, 3, 'b'); },
                                [](char* memory) {
                                    fill(memory, 201, 2, '\0');
                                    // Given back: it is zero again, and not private any more.
                                    ::madvise(memory + 1000 * kPage, 100 * kPage, MADV_DONTNEED);
                                }});
        std::optional<MemoryImage> last;
        std::vector<DeltaStep> steps;
        const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{{2000, 0}, {3, 0}, {0, 102}};
        for (std::size_t i = 0; i < expected.size(); ++i) {
            process.change();
            auto spec = specOf(process);
            spec.output = path(("delta" + std::to_string(i)).c_str());
            if (last) {
                spec.parent = CaptureParent{last->file, last->digest};
            }
            const auto finished = capture(spec);
            QVERIFY(good(finished));
            QCOMPARE(finished->delta.dataPages, expected[i].first);
            QCOMPARE(finished->delta.zeroPages, expected[i].second);
            steps.push_back({spec.output, last ? last->digest : std::string(zeroParent())});
            const auto image = composeImage(composeOf(last, {steps.back()}));
            QVERIFY(good(image));
            QVERIFY(readAll(image->file) == process.memory());
            last = *image;
        }
        // All at once gives the very same image.
        QVERIFY(std::filesystem::remove(last->file));
        const auto image = composeImage(composeOf(std::nullopt, steps));
        QVERIFY(good(image));
        QCOMPARE(image->digest, last->digest);
        QVERIFY(readAll(image->file) == process.memory());
    }
    void generations_eachFromTheImageOfTheLast() {
        MemoryImage parent = makeParent();
        for (int generation = 0; generation < 3; ++generation) {
            StoppedProcess process(kRam, parent.file, {[generation](char* memory) {
                                       fill(memory, 12 + static_cast<std::uint64_t>(generation), 3,
                                            static_cast<char>('0' + generation));
                                   }});
            process.change();
            auto spec = specOf(process, parent);
            spec.output = path(("generation" + std::to_string(generation)).c_str());
            const auto finished = capture(spec);
            QVERIFY(good(finished));
            QCOMPARE(finished->delta.dataPages, 3ULL);
            const auto image = composeImage(composeOf(parent, {{spec.output, parent.digest}}));
            QVERIFY(good(image));
            QVERIFY(readAll(image->file) == process.memory());
            parent = *image;
        }
    }
    void mappingInSeveralParts_isOne() {
        const MemoryImage parent = makeParent();
        for (const bool fromImage : {false, true}) {
            StoppedProcess process(kRam, fromImage ? std::optional(parent.file) : std::nullopt, {[](char* memory) {
                                       // Other flags make other parts.
                                       ::madvise(memory + 4 * kMiB, 2 * kMiB, MADV_DONTDUMP);
                                       ::madvise(memory + 16 * kMiB, kMiB, MADV_DONTFORK);
                                       fill(memory, 4 * kMiB / kPage - 2, 4, 'x');
                                       fill(memory, kPages - 3, 3, 'y');
                                   }});
            process.change();
            auto spec = fromImage ? specOf(process, parent) : specOf(process);
            spec.output = path(fromImage ? "from-image" : "cold");
            QVERIFY(good(capture(spec)));
            const auto image =
                composeImage(composeOf(fromImage ? std::optional(parent) : std::nullopt,
                                       {{spec.output, fromImage ? parent.digest : std::string(zeroParent())}}));
            QVERIFY(good(image));
            QVERIFY(readAll(image->file) == process.memory());
        }
    }
    void pagedOut_isCapturedToo() {
        // Where there is no swap space the pages just stay.
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) {
                                   fill(memory, 50, 500, 's');
                                   ::madvise(memory + 50 * kPage, 500 * kPage, MADV_PAGEOUT);
                               }});
        process.change();
        const auto finished = capture(specOf(process));
        QVERIFY(good(finished));
        QCOMPARE(finished->delta.dataPages, 500ULL);
        const auto image = composeImage(composeOf(std::nullopt, {{path("delta"), std::string(zeroParent())}}));
        QVERIFY(good(image));
        QVERIFY(readAll(image->file) == process.memory());
    }
    void moreThanWasPrepared_isTakenToo() {
        StoppedProcess process(kRam, std::nullopt,
                               {[](char* memory) { fill(memory, 3, 1, 'a'); },
                                [](char* memory) {
                                    for (std::uint64_t page = 0; page < kPages; page += 2) {
                                        fill(memory, page, 1, static_cast<char>('a' + page % 25));
                                    }
                                }});
        process.change();
        auto running = MemoryCapture::start(specOf(process));
        QVERIFY(good(running));
        const auto prepared = running->prepare();
        QVERIFY(good(prepared));
        QVERIFY(prepared->pages >= 1);
        QVERIFY(prepared->capacity >= 16 * kMiB);
        process.change();
        const auto captured = running->capture();
        QVERIFY(good(captured));
        QVERIFY(captured->pages >= kPages / 2);
        const std::string memory = process.memory();
        process.kill(); // what was captured does not need it any more
        QVERIFY(good(running->finish()));
        const auto image = composeImage(composeOf(std::nullopt, {{path("delta"), std::string(zeroParent())}}));
        QVERIFY(good(image));
        QVERIFY(readAll(image->file) == memory);
    }
    void nothingTouched_givesAnEmptyDelta() {
        StoppedProcess process(kRam, std::nullopt, {});
        const auto finished = capture(specOf(process));
        QVERIFY(good(finished));
        QCOMPARE(finished->delta.dataPages + finished->delta.zeroPages, 0ULL);
        QCOMPARE(finished->delta.size, Bytes{kDeltaHeaderSize + kDeltaTrailerSize});
        const auto image = composeImage(composeOf(std::nullopt, {{path("delta"), std::string(zeroParent())}}));
        QVERIFY(good(image));
        QCOMPARE(image->allocated, Bytes{0});
    }

    void processThatEnds_data() {
        QTest::addColumn<int>("phase");
        QTest::newRow("before the start") << 0;
        QTest::newRow("before prepare") << 1;
        QTest::newRow("before capture") << 2;
    }
    void processThatEnds() {
        QFETCH(int, phase);
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) { fill(memory, 3, 100, 'a'); }});
        process.change();
        auto spec = specOf(process);
        const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0U)));
        spec.emulatorPidfd = pidfd.get();
        const auto endAt = [&](int now) {
            if (phase == now) {
                process.kill();
            }
        };
        endAt(0);
        auto running = MemoryCapture::start(spec);
        QVERIFY(good(running));
        endAt(1);
        Result<CapturedPages> captured = fail(ErrorCode::HostFailure, "");
        const auto prepared = running->prepare();
        if (phase == 2) {
            QVERIFY(good(prepared));
            endAt(2);
            captured = running->capture();
        } else {
            QVERIFY(!prepared);
            captured = fail(prepared.error());
        }
        QVERIFY(!captured);
        QVERIFY2(captured.error().code == ErrorCode::NotFound, captured.error().message.c_str());
        QVERIFY2(captured.error().message.find("has ended") != std::string::npos, captured.error().message.c_str());
        // It is of no use any more, and says so.
        QCOMPARE(running->finish().error().code, ErrorCode::WrongState);
        { const MemoryCapture last = std::move(*running); }
        QVERIFY(!std::filesystem::exists(path("delta")));
    }
    void numberOfAnEndedProcess_isNotFound() {
        pid_t pid = -1;
        {
            StoppedProcess process(kRam, std::nullopt, {});
            pid = process.pid();
        }
        StoppedProcess other(kRam, std::nullopt, {});
        auto spec = specOf(other);
        spec.emulator = pid;
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::NotFound);
        QVERIFY(!std::filesystem::exists(path("delta")));
    }
    void numberAndDescriptorOfTwoProcesses_areRefused() {
        StoppedProcess process(kRam, std::nullopt, {});
        StoppedProcess other(kRam, std::nullopt, {});
        auto spec = specOf(process);
        const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, other.pid(), 0U)));
        spec.emulatorPidfd = pidfd.get();
        auto running = MemoryCapture::start(spec);
        QVERIFY(good(running));
        QCOMPARE(running->prepare().error().code, ErrorCode::InvalidArgument);
        // Nor is any other descriptor taken for one of a process.
        const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        spec.emulatorPidfd = null.get();
        spec.output = path("other");
        auto third = MemoryCapture::start(spec);
        QVERIFY(good(third));
        QCOMPARE(third->prepare().error().code, ErrorCode::InvalidArgument);
    }
    void otherSizeOrImage_isNotFound() {
        const MemoryImage parent = makeParent();
        StoppedProcess cold(kRam, std::nullopt, {});
        auto spec = specOf(cold);
        spec.ram = kRam * 2;
        QCOMPARE(capture(spec).error().code, ErrorCode::NotFound);
        spec = specOf(cold, parent);
        const auto finished = capture(spec);
        QCOMPARE(finished.error().code, ErrorCode::NotFound);
        QVERIFY(finished.error().message.find(parent.file.string()) != std::string::npos);
        // Started from an image, captured as if booted cold: there is no such memory.
        StoppedProcess warm(kRam, parent.file, {});
        QCOMPARE(capture(specOf(warm)).error().code, ErrorCode::NotFound);
        // A copy of the image is another file.
        std::filesystem::copy_file(parent.file, path("copy"));
        spec = specOf(warm, parent);
        spec.mappedImage = path("copy");
        QCOMPARE(capture(spec).error().code, ErrorCode::NotFound);
    }
    void specWithoutSense_isRefused() {
        StoppedProcess process(kRam, std::nullopt, {});
        auto spec = specOf(process);
        spec.ram = kRam + 1;
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::InvalidArgument);
        spec = specOf(process);
        spec.emulator = -1;
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::InvalidArgument);
        spec = specOf(process);
        spec.mappedImage = path("image");
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::InvalidArgument);
        spec = specOf(process);
        spec.parent = CaptureParent{path("image"), "abc"};
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::InvalidArgument);
        spec.parent->digest = std::string(64, 'a');
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::NotFound);
        spec = specOf(process);
        spec.helper = path("no-helper");
        QVERIFY(!MemoryCapture::start(spec));
        QVERIFY(!std::filesystem::exists(path("delta")));
        std::ofstream(path("delta")) << "mine";
        spec = specOf(process);
        QCOMPARE(MemoryCapture::start(spec).error().code, ErrorCode::AlreadyExists);
        QCOMPARE(readAll(path("delta")), std::string("mine"));
    }
    void moreThanAllowed_isRefused() {
        StoppedProcess process(
            kRam, std::nullopt,
            {[](char* memory) { fill(memory, 0, 100, 'a'); }, [](char* memory) { fill(memory, 1000, 2000, 'b'); }});
        process.change();
        auto spec = specOf(process);
        spec.maxPrivate = 50 * kPage;
        QCOMPARE(capture(spec).error().code, ErrorCode::LimitExceeded);
        // Grown meanwhile.
        spec.maxPrivate = 1000 * kPage;
        auto running = MemoryCapture::start(spec);
        QVERIFY(good(running));
        QVERIFY(good(running->prepare()));
        process.change();
        QCOMPARE(running->capture().error().code, ErrorCode::LimitExceeded);
    }
    void fullDisk_isSeenBeforeThePause() {
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) { fill(memory, 0, 2000, 'a'); }});
        process.change();
        rlimit old{};
        QCOMPARE(::getrlimit(RLIMIT_FSIZE, &old), 0);
        const rlimit small{kMiB, old.rlim_max};
        QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
        auto running = MemoryCapture::start(specOf(process));
        ::setrlimit(RLIMIT_FSIZE, &old); // the helper has it
        QVERIFY(good(running));
        const auto prepared = running->prepare();
        QVERIFY(!prepared);
        QCOMPARE(prepared.error().code, ErrorCode::NoSpace);
    }
    void fullDisk_isSeenAtTheEnd() {
        StoppedProcess process(
            kRam, std::nullopt,
            {[](char* memory) { fill(memory, 0, 10, 'a'); }, [](char* memory) { fill(memory, 0, 2000, 'b'); }});
        process.change();
        rlimit old{};
        QCOMPARE(::getrlimit(RLIMIT_FSIZE, &old), 0);
        const rlimit small{kMiB, old.rlim_max};
        QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
        auto running = MemoryCapture::start(specOf(process));
        ::setrlimit(RLIMIT_FSIZE, &old);
        QVERIFY(good(running));
        QVERIFY(good(running->prepare()));
        process.change();
        QVERIFY(good(running->capture()));
        QCOMPARE(running->finish().error().code, ErrorCode::NoSpace);
        { const MemoryCapture last = std::move(*running); }
        QVERIFY(!std::filesystem::exists(path("delta")));
    }
    void parentThatChanges_isAnError() {
        const MemoryImage parent = makeParent();
        StoppedProcess process(kRam, parent.file, {[](char* memory) { fill(memory, 5000, 3, 'a'); }});
        process.change();
        auto running = MemoryCapture::start(specOf(process, parent));
        QVERIFY(good(running));
        QVERIFY(good(running->prepare()));
        QVERIFY(good(running->capture()));
        QCOMPARE(::chmod(parent.file.c_str(), 0644), 0);
        QCOMPARE(::truncate(parent.file.c_str(), kMiB), 0);
        const auto finished = running->finish();
        QVERIFY(!finished);
        QVERIFY2(finished.error().message.find("changed") != std::string::npos, finished.error().message.c_str());
    }
    void phasesOutOfOrder_areRefused() {
        StoppedProcess process(kRam, std::nullopt, {});
        auto running = MemoryCapture::start(specOf(process));
        QVERIFY(good(running));
        QCOMPARE(running->capture().error().code, ErrorCode::WrongState);
        auto spec = specOf(process);
        spec.output = path("second");
        auto second = MemoryCapture::start(spec);
        QVERIFY(good(second));
        QVERIFY(good(second->prepare()));
        QCOMPARE(second->prepare().error().code, ErrorCode::WrongState);
    }
    void helperThatHangsOrTalksNonsense_data() {
        QTest::addColumn<QByteArray>("script");
        QTest::addColumn<ErrorCode>("code");
        QTest::addColumn<QByteArray>("reason");
        QTest::newRow("hangs") << QByteArray("exec sleep 1000") << ErrorCode::TimedOut << QByteArray("no end of");
        QTest::newRow("ends") << QByteArray("exit 0") << ErrorCode::HostFailure << QByteArray("ended during");
        QTest::newRow("nonsense") << QByteArray("echo hello; exec cat >/dev/null") << ErrorCode::HostFailure
                                  << QByteArray("makes no sense: hello");
        QTest::newRow("two lines") << QByteArray("printf 'a\\nb\\n'; exec cat >/dev/null") << ErrorCode::HostFailure
                                   << QByteArray("more than one line");
        QTest::newRow("no line end") << QByteArray("yes | tr -d '\\n'") << ErrorCode::HostFailure
                                     << QByteArray("more than one line");
        QTest::newRow("error") << QByteArray("echo error NoSpace it is full; exec cat >/dev/null") << ErrorCode::NoSpace
                               << QByteArray("it is full");
    }
    void helperThatHangsOrTalksNonsense() {
        QFETCH(QByteArray, script);
        QFETCH(ErrorCode, code);
        QFETCH(QByteArray, reason);
        StoppedProcess process(kRam, std::nullopt, {});
        std::ofstream(path("helper")) << "#!/bin/sh\n" << script.constData() << "\n";
        QCOMPARE(::chmod(path("helper").c_str(), 0700), 0);
        auto spec = specOf(process);
        spec.helper = path("helper");
        CaptureLimits limits;
        limits.prepare = code == ErrorCode::TimedOut ? std::chrono::milliseconds(50) : limits.prepare;
        auto running = MemoryCapture::start(spec, limits);
        QVERIFY(good(running));
        const auto prepared = running->prepare();
        QVERIFY(!prepared);
        QCOMPARE(prepared.error().code, code);
        QVERIFY2(QByteArray(prepared.error().message.c_str()).contains(reason), prepared.error().message.c_str());
    }
    void cancelled_endsTheCallThatRuns() {
        StoppedProcess process(kRam, std::nullopt, {});
        std::ofstream(path("helper")) << "#!/bin/sh\nexec sleep 1000\n";
        QCOMPARE(::chmod(path("helper").c_str(), 0700), 0);
        auto spec = specOf(process);
        spec.helper = path("helper");
        auto running = MemoryCapture::start(spec);
        QVERIFY(good(running));
        {
            const std::jthread other([&] { running->cancel(); });
            QCOMPARE(running->prepare().error().code, ErrorCode::Cancelled);
        }
        // Beforehand counts too.
        auto second = MemoryCapture::start([&] {
            auto changed = specOf(process);
            changed.output = path("second");
            return changed;
        }());
        QVERIFY(good(second));
        QVERIFY(good(second->prepare()));
        second->cancel();
        QCOMPARE(second->capture().error().code, ErrorCode::Cancelled);
    }
    /// What the helper may do is what it needs: looked at from outside, in every phase.
    void helper_givesUpItsRights() {
        if (BULKHEAD_HAS_SECCOMP == 0) {
            return; // the sanitizers' system calls are not those of the filter
        }
        StoppedProcess process(kRam, std::nullopt, {});
        auto running = MemoryCapture::start(specOf(process));
        QVERIFY(good(running));
        QVERIFY(good(running->prepare()));
        const pid_t helper = helperOf(process);
        QVERIFY(helper > 0);
        const auto field = [&](const char* name) {
            const std::string status = readAll("/proc/" + std::to_string(helper) + "/status");
            const auto at = status.find(std::string(name) + ":\t");
            const auto begin = at + std::strlen(name) + 2;
            return at == std::string::npos ? std::string() : status.substr(begin, status.find('\n', begin) - begin);
        };
        const std::string none = "0000000000000000";
        const std::string ptrace = ::getuid() == 0 ? "0000000000080000" : none;
        QCOMPARE(field("Seccomp"), std::string("2"));
        QCOMPARE(field("NoNewPrivs"), std::string("1"));
        QCOMPARE(field("CapEff"), ptrace);
        QCOMPARE(field("CapPrm"), ptrace);
        QCOMPARE(field("CapInh"), none);
        QCOMPARE(field("CapAmb"), none);
        if (::getuid() == 0) {
            QCOMPARE(field("CapBnd"), none);
        }
        QVERIFY(good(running->capture()));
        QCOMPARE(field("CapEff"), none);
        QCOMPARE(field("CapPrm"), none);
        if (::getuid() == 0) { // it is not dumpable, so nobody else may look
            const std::filesystem::directory_iterator open("/proc/" + std::to_string(helper) + "/fd");
            // 0 to 2, the process, the output; what it opened itself: maps and pagemap.
            QCOMPARE(std::distance(begin(open), end(open)), std::ptrdiff_t{7});
        }
        QVERIFY(good(running->finish()));
    }
    /// Nobody waits for it any more: it ends by itself, and leaves nothing running.
    void dropped_endsTheHelper() {
        StoppedProcess process(kRam, std::nullopt, {});
        // Those that ended count, too, until somebody has collected them.
        const auto children = [] {
            QFile list(QString("/proc/self/task/%1/children").arg(::getpid()));
            return list.open(QIODevice::ReadOnly) ? list.readAll() : QByteArray("?");
        };
        const QByteArray before = children();
        {
            auto running = MemoryCapture::start(specOf(process));
            QVERIFY(good(running));
            QVERIFY(good(running->prepare()));
            QVERIFY(children() != before);
        }
        QVERIFY(!std::filesystem::exists(path("delta")));
        QCOMPARE(children(), before);
    }
};

QTEST_GUILESS_MAIN(TestMemoryCapture)
#include "tst_memory_capture.moc"
