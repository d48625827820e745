// SPDX-License-Identifier: Apache-2.0
#include "memory/delta_file.hpp"
#include "memory/image_chunks.hpp"
#include "memory/memory_image.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::memory;

namespace {

constexpr Bytes kRam = 8 * kMiB;

/// Pages as "number -> byte that fills it"; 0 is a zero run.
using Pages = std::map<std::uint64_t, char>;

std::string readFile(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    return bytes.str();
}

void apply(std::string& memory, const Pages& pages) {
    for (const auto& [page, with] : pages) {
        memory.replace(page * kPage, kPage, kPage, with);
    }
}

} // namespace

class TestMemoryImage : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_folder;

    std::filesystem::path folder() const { return m_folder->path().toStdString(); }

    DeltaStep makeDelta(const char* name, const std::string& parent, const Pages& pages, Bytes ram = kRam) const {
        const auto file = folder() / name;
        const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
        DeltaIndex index{ram, parent, {}};
        std::string data;
        for (const auto& [page, with] : pages) {
            index.append(page, 1, with == 0 ? RunKind::Zero : RunKind::Data);
            data.append(with == 0 ? 0 : kPage, with);
        }
        DeltaWriter writer(fd.get(), name);
        if (!writer.begin(index) || !writer.add(data) || !writer.finish()) {
            throw std::runtime_error("no delta");
        }
        return {file, parent};
    }
    ComposeSpec specOf(std::vector<DeltaStep> deltas, const std::optional<MemoryImage>& parent = std::nullopt) const {
        ComposeSpec spec;
        spec.ram = kRam;
        if (parent) {
            spec.parent = parent->file;
            spec.parentDigest = parent->digest;
        }
        spec.deltas = std::move(deltas);
        spec.folder = folder() / "images";
        spec.access = {0444, ::getuid(), ::getgid()};
        return spec;
    }
    std::size_t filesInImages() const {
        const std::filesystem::directory_iterator files(folder() / "images");
        return static_cast<std::size_t>(std::distance(begin(files), end(files)));
    }
    /// Refused with `reason`, and nothing is left of it.
    void expectRefusal(const ComposeSpec& spec, const char* reason) const {
        const std::size_t before = filesInImages();
        const auto image = composeImage(spec);
        QVERIFY(!image);
        QVERIFY2(image.error().message.find(reason) != std::string::npos, image.error().message.c_str());
        QCOMPARE(filesInImages(), before);
    }
    static void flip(const std::filesystem::path& file, Bytes at) {
        ::chmod(file.c_str(), 0644);
        const UniqueFd fd(::open(file.c_str(), O_RDWR));
        char byte = 0;
        QCOMPARE(::pread(fd.get(), &byte, 1, static_cast<off_t>(at)), ssize_t{1});
        byte = static_cast<char>(byte ^ 1);
        QCOMPARE(::pwrite(fd.get(), &byte, 1, static_cast<off_t>(at)), ssize_t{1});
        ::chmod(file.c_str(), 0444);
    }

private slots:
    void init() {
        m_folder = std::make_unique<QTemporaryDir>();
        std::filesystem::create_directory(folder() / "images");
    }
    void cleanup() { m_folder.reset(); }

    void chain_isTheSumOfItsDeltas() {
        const Pages first{{1, 'a'}, {2, 'b'}, {100, 'c'}, {2047, 'd'}};
        const Pages second{{2, 0}, {3, 'e'}, {100, 'f'}};
        const Pages third{{1, 0}, {3, 'g'}, {2000, 'h'}};
        std::string memory(kRam, '\0');
        apply(memory, first);
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), first)}));
        QVERIFY(one);
        QVERIFY(readFile(one->file) == memory);
        apply(memory, second);
        const auto two = composeImage(specOf({makeDelta("2", one->digest, second)}, *one));
        QVERIFY(two);
        QVERIFY(readFile(two->file) == memory);
        apply(memory, third);
        const auto step = makeDelta("3", two->digest, third);
        const auto three = composeImage(specOf({step}, *two));
        QVERIFY(three);
        QVERIFY(readFile(three->file) == memory);
        QCOMPARE(three->file, imagePath(folder() / "images", three->digest));
        // Whatever it is made of, the same content has the same name.
        const auto again = composeImage(specOf({{folder() / "2", one->digest}, step}, *one));
        QVERIFY(again);
        QCOMPARE(again->digest, three->digest);
        QCOMPARE(filesInImages(), std::size_t{6}); // each with its list of chunks
        // The parents are as they were.
        QVERIFY(verifyImage(one->file, one->digest, kRam));
        QVERIFY(verifyImage(two->file, two->digest, kRam));
    }
    void holes_areKeptAndMade() {
        Pages first;
        for (std::uint64_t page = 256; page < 1280; ++page) {
            first[page] = 'x';
        }
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), first)}));
        QVERIFY(one);
        QVERIFY2(one->allocated >= 4 * kMiB && one->allocated < 5 * kMiB, std::to_string(one->allocated).c_str());
        Pages second;
        for (std::uint64_t page = 256; page < 1024; ++page) {
            second[page] = 0;
        }
        const auto two = composeImage(specOf({makeDelta("2", one->digest, second)}, *one));
        QVERIFY(two);
        QVERIFY2(two->allocated <= 2 * kMiB, std::to_string(two->allocated).c_str());
        struct stat status {};
        QCOMPARE(::stat(two->file.c_str(), &status), 0);
        QCOMPARE(static_cast<Bytes>(status.st_size), kRam);
        QCOMPARE(status.st_mode & 07777U, 0444U);
    }
    void noDeltas_isACopyWithTheSameName() {
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), {{5, 'a'}})}));
        QVERIFY(one);
        const auto copy = composeImage(specOf({}, *one));
        QVERIFY(copy);
        QCOMPARE(copy->file, one->file);
        QCOMPARE(filesInImages(), std::size_t{2});
    }
    void existingImage_keepsItsInode() {
        const auto step = makeDelta("1", std::string(zeroParent()), {{5, 'a'}});
        const auto one = composeImage(specOf({step}));
        QVERIFY(one);
        struct stat before {};
        struct stat after {};
        QCOMPARE(::stat(one->file.c_str(), &before), 0);
        QVERIFY(composeImage(specOf({step})));
        QCOMPARE(::stat(one->file.c_str(), &after), 0);
        QCOMPARE(after.st_ino, before.st_ino);
    }

    void refusals() {
        const auto first = makeDelta("1", std::string(zeroParent()), {{5, 'a'}});
        const auto one = composeImage(specOf({first}));
        QVERIFY(one);
        const auto good = makeDelta("2", one->digest, {{6, 'b'}});

        expectRefusal(specOf({first}, *one), "belongs to image");
        expectRefusal(specOf({good}), "belongs to image");
        // What the caller believes is not what the file says.
        expectRefusal(specOf({{first.file, one->digest}}, *one), "is a delta of image");
        expectRefusal(specOf({good, {first.file, std::string(64, 'c')}}, *one), "is a delta of image");
        expectRefusal(specOf({makeDelta("other", one->digest, {{6, 'b'}}, kRam * 2)}, *one), "is of a guest with");
        auto spec = specOf({good}, *one);
        spec.ram = kRam / 2;
        expectRefusal(spec, "is of a guest with");
        spec.ram = kRam + 1;
        expectRefusal(spec, "whole pages");
        spec = specOf({good}, *one);
        spec.parent = folder() / "none";
        expectRefusal(spec, "no memory image");
        spec = specOf({{folder() / "gone", one->digest}}, *one);
        expectRefusal(spec, "no memory delta");
    }
    void damagedParentOrDelta_isNamed() {
        const auto first = makeDelta("1", std::string(zeroParent()), {{5, 'a'}});
        const auto one = composeImage(specOf({first}));
        QVERIFY(one);
        const auto step = makeDelta("2", one->digest, {{6, 'b'}});
        flip(step.file, 80 + 16 + 100);
        expectRefusal(specOf({step}, *one), (step.file.string() + " is damaged").c_str());

        flip(one->file, 5 * kPage);
        const auto verified = verifyImage(one->file, one->digest, kRam);
        QVERIFY(!verified);
        QVERIFY(verified.error().message.find("is damaged") != std::string::npos);
        // Damage beside what changes is found at once …
        expectRefusal(specOf({makeDelta("near", one->digest, {{7, 'b'}})}, *one), " is damaged at byte 0");
        // … elsewhere it is in the new image as well, which has the name of what it should be …
        const auto other = makeDelta("3", one->digest, {{1000, 'b'}});
        const auto image = composeImage(specOf({other}, *one));
        QVERIFY(image);
        QVERIFY(verifyImage(image->file, image->digest, kRam).error().message.find("is damaged") != std::string::npos);
        // … and without its list of chunks, or with a damaged one, it is read and found.
        flip(chunksPath(one->file), 40);
        expectRefusal(specOf({other}, *one), (one->file.string() + " is damaged").c_str());
        std::filesystem::remove(chunksPath(one->file));
        expectRefusal(specOf({other}, *one), (one->file.string() + " is damaged").c_str());
    }
    void listOfChunks_isOnlyAShortcut() {
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), {{5, 'a'}, {900, 'b'}})}));
        QVERIFY(one);
        const auto step = makeDelta("2", one->digest, {{5, 0}, {901, 'c'}});
        const auto with = composeImage(specOf({step}, *one));
        QVERIFY(with);
        const std::string list = readFile(chunksPath(with->file));
        QVERIFY(removeImage(with->file));
        QVERIFY(removeImage(with->file)); // not there any more
        QCOMPARE(filesInImages(), std::size_t{2});
        std::filesystem::remove(chunksPath(one->file));
        auto spec = specOf({step}, *one);
        spec.sync = false;
        const auto without = composeImage(spec);
        QVERIFY(without);
        QVERIFY(syncImage(without->file));
        QCOMPARE(without->digest, with->digest);
        QCOMPARE(readFile(chunksPath(without->file)), list);
    }
    void listOfChunks_isStrict_data() {
        QTest::addColumn<int>("at");
        QTest::addColumn<QByteArray>("bytes");
        QTest::newRow("magic") << 0 << QByteArray("X");
        QTest::newRow("no memory") << 8 << QByteArray(8, '\0');
        QTest::newRow("too much memory") << 8 << QByteArray(8, '\xff');
        QTest::newRow("chunk size") << 16 << QByteArray("\1");
        QTest::newRow("more entries") << 24 << QByteArray("\3");
        QTest::newRow("entries without end") << 24 << QByteArray(8, '\xff');
        QTest::newRow("unsorted") << 32 << QByteArray("\x7f");
        QTest::newRow("beyond") << 72 << QByteArray(8, '\xff');
        QTest::newRow("cut") << 100 << QByteArray();
    }
    void listOfChunks_isStrict() {
        QFETCH(int, at);
        QFETCH(QByteArray, bytes);
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), {{5, 'a'}, {900, 'b'}})}));
        QVERIFY(one);
        std::string list = readFile(chunksPath(one->file));
        QCOMPARE(list.size(), std::size_t{32 + 2 * 40});
        const auto good = ImageChunks::decode(list);
        QVERIFY(good);
        QCOMPARE(good->encode(), list);
        QCOMPARE(good->digest(), one->digest);
        if (bytes.isEmpty()) {
            list.resize(static_cast<std::size_t>(at));
        } else {
            list.replace(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes.size()), bytes.toStdString());
        }
        QVERIFY(!ImageChunks::decode(list));
    }
    void verify_seesSizeModeAndKind() {
        const auto one = composeImage(specOf({makeDelta("1", std::string(zeroParent()), {{5, 'a'}})}));
        QVERIFY(one);
        QVERIFY(verifyImage(one->file, one->digest, kRam));
        QVERIFY(!verifyImage(one->file, std::string(64, 'a'), kRam));
        QVERIFY(!verifyImage(one->file, one->digest, kRam * 2));
        QCOMPARE(verifyImage(folder() / "none", one->digest, kRam).error().code, ErrorCode::NotFound);
        std::filesystem::create_symlink(one->file, folder() / "link");
        QVERIFY(!verifyImage(folder() / "link", one->digest, kRam));
        QCOMPARE(::chmod(one->file.c_str(), 0644), 0);
        QVERIFY(verifyImage(one->file, one->digest, kRam).error().message.find("writable") != std::string::npos);
        QCOMPARE(::truncate(one->file.c_str(), kRam - kPage), 0);
        QCOMPARE(::chmod(one->file.c_str(), 0444), 0);
        QVERIFY(verifyImage(one->file, one->digest, kRam).error().message.find("instead of") != std::string::npos);
    }
    void fullDisk_leavesNothing() {
        const auto step = makeDelta("1", std::string(zeroParent()), {{5, 'a'}, {2000, 'b'}});
        // Files larger than this fail with EFBIG, as near to a full disk as one gets without one of its own.
        const auto before = std::signal(SIGXFSZ, SIG_IGN);
        rlimit old{};
        QCOMPARE(::getrlimit(RLIMIT_FSIZE, &old), 0);
        const rlimit small{4 * kMiB, old.rlim_max};
        QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
        const auto image = composeImage(specOf({step}));
        ::setrlimit(RLIMIT_FSIZE, &old);
        std::signal(SIGXFSZ, before);
        QVERIFY(!image);
        QCOMPARE(filesInImages(), std::size_t{0});
    }
};

QTEST_GUILESS_MAIN(TestMemoryImage)
#include "tst_memory_image.moc"
