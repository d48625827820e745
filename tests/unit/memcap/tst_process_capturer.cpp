// SPDX-License-Identifier: Apache-2.0
#include "imaging/process_memory_capturer.hpp"
#include "memory/delta_file.hpp"
#include "memory/image_chunks.hpp"
#include "memory/memory_image.hpp"
#include "stopped_process.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::memory;
using test::StoppedProcess;

namespace {

constexpr Bytes kRam = 32 * kMiB;

void fill(char* memory, std::uint64_t page, std::uint64_t count, char with) {
    std::memset(memory + page * kPage, with, count * kPage);
}

} // namespace

class TestProcessCapturer : public QObject {
    Q_OBJECT

private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void whole_hasItsDigestAndItsChunks() {
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) { fill(memory, 7, 300, 'b'); }});
        process.change();
        const auto digest = m_capturer.captureWhole(process.pid(), kRam, path("memory"));
        QVERIFY2(digest, digest ? "" : digest.error().message.c_str());
        QCOMPARE(::chmod(path("memory").c_str(), 0444), 0);
        QVERIFY(verifyImage(path("memory"), *digest, kRam));
        QVERIFY(ImageChunks::load(path("memory.chunks"), *digest, kRam));
        QCOMPARE(std::distance(std::filesystem::directory_iterator(path("")), {}), 2);
    }
    void running_onlyWhatChangedIsStored() {
        StoppedProcess source(kRam, std::nullopt, {[](char* memory) { fill(memory, 7, 300, 'b'); }});
        source.change();
        const auto digest = m_capturer.captureWhole(source.pid(), kRam, path("memory"));
        QVERIFY(digest);
        StoppedProcess child(
            kRam, path("memory"),
            {[](char* memory) { fill(memory, 8, 2, 'c'); }, [](char* memory) { fill(memory, 4000, 1, 'd'); }});
        child.change();
        auto capture =
            m_capturer.prepare({child.pid(), kRam, core::MemoryImageRef{path("memory"), *digest}, path("delta")});
        QVERIFY2(capture, capture ? "" : capture.error().message.c_str());
        child.change(); // it runs until it is told to stand still
        const auto copied = (*capture)->copy();
        QVERIFY2(copied, copied ? "" : copied.error().message.c_str());
        const auto written = (*capture)->finish();
        QVERIFY2(written, written ? "" : written.error().message.c_str());
        capture->reset();
        const auto delta = DeltaReader::open(path("delta"));
        QVERIFY(delta);
        QCOMPARE(delta->index().parent, *digest);
        QVERIFY(delta->index().runs == (std::vector<Run>{{8, 2, RunKind::Data}, {4000, 1, RunKind::Data}}));
    }
    void unfinished_leavesNothing_data() {
        QTest::addColumn<bool>("copied");
        QTest::newRow("prepared") << false;
        QTest::newRow("copied") << true;
    }
    void unfinished_leavesNothing() {
        QFETCH(bool, copied);
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) { fill(memory, 7, 30, 'b'); }});
        process.change();
        auto capture = m_capturer.prepare({process.pid(), kRam, std::nullopt, path("delta")});
        QVERIFY(capture);
        QVERIFY(!copied || (*capture)->copy());
        capture->reset();
        QVERIFY(!std::filesystem::exists(path("delta")));
    }
    void privateMemory_isWhatItChanged() {
        StoppedProcess process(kRam, std::nullopt, {[](char* memory) { fill(memory, 0, 4000, 'b'); }});
        const auto before = m_capturer.privateMemory(process.pid());
        QVERIFY2(before, before ? "" : before.error().message.c_str());
        process.change();
        const auto after = m_capturer.privateMemory(process.pid());
        QVERIFY(after);
        QVERIFY(*after >= *before + 4000 * kPage);
        QVERIFY(*after < *before + 4200 * kPage);
        const pid_t pid = process.pid();
        process.kill();
        QCOMPARE(m_capturer.privateMemory(pid).error().code, ErrorCode::NotFound);
        QCOMPARE(m_capturer.prepare({pid, kRam, std::nullopt, path("delta")}).error().code, ErrorCode::NotFound);
        QVERIFY(!std::filesystem::exists(path("delta")));
    }

private:
    [[nodiscard]] std::filesystem::path path(const char* name) const { return m_folder->filePath(name).toStdString(); }

    std::unique_ptr<QTemporaryDir> m_folder;
    imaging::ProcessMemoryCapturer m_capturer{BULKHEAD_MEMCAP};
};

QTEST_GUILESS_MAIN(TestProcessCapturer)
#include "tst_process_capturer.moc"
