// SPDX-License-Identifier: Apache-2.0
#include "imaging/digest.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/file_tree.hpp"
#include "imaging/sparse_copy.hpp"
#include "imaging/template_builder.hpp"
#include "imaging/template_manifest.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
namespace fs = std::filesystem;

class TestImaging : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_root = m_temporary->path().toStdString();
    }

    void digest_isBlake2b() {
        std::ofstream(m_root / "abc") << "abc";
        // b2sum -l 256
        QCOMPARE(*digestOfFile(m_root / "abc"),
                 std::string("bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"));
        QVERIFY(!digestOfFile(m_root / "absent"));
    }

    void sparseCopy_keepsContentAndHoles() {
        const UniqueFd from =
            sparseFile("from", 3 * kGiB + 5, {{0, "head"}, {kGiB + 12345, "middle"}, {3 * kGiB + 1, "tail"}});
        const UniqueFd to = newFile("to");
        const auto copied = copySparse(from.get(), to.get(), "x", 4 * kGiB);
        QVERIFY2(copied, copied ? "" : copied.error().message.c_str());
        QCOMPARE(copied->size, 3 * kGiB + 5);
        QCOMPARE(readAt(to, 0, 5), std::string("head\0", 5));
        QCOMPARE(readAt(to, kGiB + 12345, 6), std::string("middle"));
        QCOMPARE(readAt(to, 3 * kGiB + 1, 4), std::string("tail"));
        struct stat status {};
        QCOMPARE(::fstat(to.get(), &status), 0);
        QCOMPARE(static_cast<Bytes>(status.st_size), 3 * kGiB + 5);
        QVERIFY(status.st_blocks * 512 <= 4 * 65536);
        QCOMPARE(contentDigest(to.get(), "x", 4 * kGiB)->digest, copied->digest);
    }
    void contentDigest_dependsOnContentOnly() {
        const std::string zeros(300'000, '\0');
        const UniqueFd written = sparseFile("a", kMiB, {{0, zeros}, {500'000, "x"}});
        const UniqueFd holes = sparseFile("b", kMiB, {{500'000, "x"}});
        const UniqueFd moved = sparseFile("c", kMiB, {{600'000, "x"}});
        const UniqueFd longer = sparseFile("d", kMiB + 1, {{500'000, "x"}});
        const UniqueFd empty = sparseFile("e", kMiB, {});
        const auto digest = [](const UniqueFd& fd) { return contentDigest(fd.get(), "f", kGiB)->digest; };
        QCOMPARE(digest(written), digest(holes));
        QVERIFY(digest(holes) != digest(moved));
        QVERIFY(digest(holes) != digest(longer));
        QVERIFY(digest(holes) != digest(empty));
    }
    void sparseCopy_refusesTooMuch() {
        const UniqueFd from = sparseFile("from", kMiB, {});
        QCOMPARE(copySparse(from.get(), -1, "vmlinuz", kMiB - 1).error().code, ErrorCode::LimitExceeded);
    }

    void removeTree_doesNotFollowLinks() {
        fs::create_directories(m_root / "tree/a/b");
        fs::create_directories(m_root / "outside");
        std::ofstream(m_root / "outside/kept") << "x";
        fs::create_directory_symlink(m_root / "outside", m_root / "tree/a/link");
        fs::create_symlink(m_root / "outside/kept", m_root / "tree/file");
        fs::create_symlink("nowhere", m_root / "tree/dangling");
        QCOMPARE(::mkfifo((m_root / "tree/fifo").c_str(), 0600), 0);
        QVERIFY(removeTree(m_root / "tree"));
        QVERIFY(!fs::exists(m_root / "tree"));
        QVERIFY(fs::exists(m_root / "outside/kept"));
        QVERIFY(removeTree(m_root / "tree"));
        QVERIFY(removeTree(m_root / "absent/inside"));
        fs::create_directory_symlink(m_root / "outside", m_root / "link");
        QVERIFY(removeTree(m_root / "link"));
        QVERIFY(fs::exists(m_root / "outside/kept"));
    }
    void setAccess_refusesLinksAndSecondNames() {
        std::ofstream(m_root / "file") << "x";
        fs::create_symlink(m_root / "file", m_root / "link");
        const Access access{0400, ::geteuid(), ::getegid()};
        QVERIFY(!setAccess(m_root / "link", access));
        QCOMPARE(setAccess(m_root / "absent", access).error().code, ErrorCode::NotFound);
        QVERIFY(setAccess(m_root / "file", access));
        fs::create_hard_link(m_root / "file", m_root / "second");
        QVERIFY(!setAccess(m_root / "file", access));
        QVERIFY(!setAccess(m_root, access));
    }
    void ensureFolder_refusesALink() {
        fs::create_directory(m_root / "real");
        fs::create_directory_symlink(m_root / "real", m_root / "link");
        QVERIFY(!ensureFolder(m_root / "link", {0700, ::geteuid(), ::getegid()}));
    }

    void space_ruleOf95Percent_data() {
        QTest::addColumn<qulonglong>("available");
        QTest::addColumn<qulonglong>("needed");
        QTest::addColumn<bool>("good");
        QTest::newRow("plenty") << 50ULL << 10ULL << true;
        QTest::newRow("just below") << 50ULL << 44ULL << true;
        QTest::newRow("just at") << 50ULL << 45ULL << false;
        QTest::newRow("more than there is") << 50ULL << 51ULL << false;
        QTest::newRow("full already") << 5ULL << 0ULL << false;
        QTest::newRow("absurd") << 50ULL << ~0ULL << false;
    }
    void space_ruleOf95Percent() {
        QFETCH(qulonglong, available);
        QFETCH(qulonglong, needed);
        QFETCH(bool, good);
        const SpaceProbe probe = [&](const fs::path&) -> Result<Space> { return Space{100 * kGiB, available * kGiB}; };
        const Bytes amount = needed > 100 ? ~Bytes{0} : needed * kGiB;
        const Status status = checkSpace(probe, "/x", amount, "making a home disk");
        QCOMPARE(status.has_value(), good);
        if (!good) {
            QCOMPARE(status.error().code, ErrorCode::NoSpace);
        }
    }
    void space_messageHasTheNumbers() {
        const SpaceProbe probe = [](const fs::path&) -> Result<Space> { return Space{100 * kGiB, 2 * kGiB}; };
        QCOMPARE(checkSpace(probe, "/var/lib/x", kGiB, "making a home disk").error().message,
                 std::string(
                     "making a home disk needs 1 GiB, but the disk of /var/lib/x has 2 GiB of 100 GiB free and may be "
                     "filled to 95 % only; free some space"));
    }
    void space_ofAFolderThatIsNotThereYet() {
        const auto space = fileSystemSpace(m_root / "not/yet/there");
        QVERIFY(space);
        QVERIFY(space->total > 0);
    }

    void manifest_roundTrip() {
        core::InstalledTemplate installed;
        installed.name = "minimal";
        installed.version = std::string(32, 'a');
        installed.definitionHash = "d";
        installed.builtAt = 1'700'000'000;
        installed.sizeOnDisk = 5;
        installed.systemSize = 8 * kGiB;
        installed.homeSize = kGiB;
        installed.init = core::TemplateInit::Systemd;
        installed.heads = 8;
        installed.artefacts = {{"root.img", "00"}, {"vmlinuz", "11"}};
        const auto back = readManifest(writeManifest(installed), "m");
        QVERIFY2(back, back ? "" : back.error().message.c_str());
        QCOMPARE(writeManifest(*back), writeManifest(installed));
        QCOMPARE(back->systemSize, 8 * kGiB);
        QCOMPARE(back->heads, 8U);
        QCOMPARE(nameOf(back->init), nameOf(core::TemplateInit::Systemd));
        QCOMPARE(back->artefacts, installed.artefacts);
    }
    void manifest_ofBeforeThereWereDesktops() {
        const auto old = readManifest("format = 1\nname = \"minimal\"\nversion = \"a\"\ndefinition_hash = \"d\"\n"
                                      "built_at = 1\nsize_on_disk = 1\nsystem_size = 1\nhome_size = 1\n[artefacts]\n",
                                      "m");
        QVERIFY2(old, old ? "" : old.error().message.c_str());
        QCOMPARE(nameOf(old->init), nameOf(core::TemplateInit::Agent));
        QCOMPARE(old->heads, 0U);
    }
    void manifest_refuses_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("empty") << QByteArray("");
        QTest::newRow("not TOML") << QByteArray("\x01");
        QTest::newRow("later format") << QByteArray("format = 2\n");
        QTest::newRow("missing keys") << QByteArray("format = 1\nname = \"x\"\n");
        QTest::newRow("wrong type") << QByteArray(
            "format = 1\nname = 3\nversion = \"\"\ndefinition_hash = \"\"\nbuilt_at = 1\n"
            "size_on_disk = 1\nsystem_size = -1\nhome_size = 1\n[artefacts]\n");
        const QByteArray whole = "format = 1\nname = \"m\"\nversion = \"a\"\ndefinition_hash = \"d\"\nbuilt_at = 1\n"
                                 "size_on_disk = 1\nsystem_size = 1\nhome_size = 1\n";
        QTest::newRow("too many heads") << whole + "heads = 17\n[artefacts]\n";
        QTest::newRow("unknown first process") << whole + "init = \"runit\"\n[artefacts]\n";
    }
    void manifest_refuses() {
        QFETCH(QByteArray, text);
        QVERIFY(!readManifest(text.toStdString(), "m"));
    }

    void progress_data() {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<QByteArray>("phase");
        QTest::addColumn<double>("fraction");
        QTest::newRow("full") << QByteArray("PHASE packages 0.25 Installing packages")
                              << QByteArray("Installing packages") << 0.25;
        QTest::newRow("no text") << QByteArray("PHASE disk 1") << QByteArray("disk") << 1.0;
        QTest::newRow("escaped") << QByteArray("PHASE x 0 a\x1b[2J") << QByteArray("a\\x1b[2J") << 0.0;
        for (const char* bad : {"", "PHASE", "PHASE x", "PHASE x y z", "PHASE x 1.5 z", "PHASE x -1 z", "PHASE x nan z",
                                "PHASE x inf z", "STEP x 0.5 z", "PHASE  0.5 z"}) {
            QTest::newRow(bad) << QByteArray(bad) << QByteArray() << -1.0;
        }
    }
    void progress() {
        QFETCH(QByteArray, line);
        QFETCH(QByteArray, phase);
        QFETCH(double, fraction);
        const auto step = parseBuildProgress(line.toStdString());
        QCOMPARE(step.has_value(), fraction >= 0);
        if (step) {
            QCOMPARE(QByteArray::fromStdString(step->phase), phase);
            QCOMPARE(step->fraction, fraction);
        }
    }

private:
    UniqueFd newFile(const char* name) const {
        return UniqueFd(::open((m_root / name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    }
    UniqueFd sparseFile(const char* name, Bytes size, const std::vector<std::pair<Bytes, std::string>>& pieces) const {
        UniqueFd fd = newFile(name);
        [[maybe_unused]] int result = ::ftruncate(fd.get(), static_cast<off_t>(size));
        for (const auto& [offset, text] : pieces) {
            [[maybe_unused]] const auto written =
                ::pwrite(fd.get(), text.data(), text.size(), static_cast<off_t>(offset));
        }
        return fd;
    }
    static std::string readAt(const UniqueFd& fd, Bytes offset, std::size_t size) {
        std::string text(size, '?');
        const auto got = ::pread(fd.get(), text.data(), size, static_cast<off_t>(offset));
        return got == static_cast<ssize_t>(size) ? text : "short";
    }

    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_root;
};

QTEST_GUILESS_MAIN(TestImaging)
#include "tst_imaging.moc"
