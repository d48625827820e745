// SPDX-License-Identifier: Apache-2.0
#include "base/unique_fd.hpp"
#include "diff_lines.hpp"
#include "inspect/disks.hpp"
#include "inspect/facts_text.hpp"
#include "inspect/inspect.hpp"
#include "inspect/names.hpp"
#include "inspect/packages.hpp"
#include "inspect/walk.hpp"

#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::diff_stream;
using namespace bulkhead::inspect;
using bulkhead::tests::DiffLines;

namespace {

/// Two trees, removed at the end whatever is in them.
class Trees {
public:
    Trees() {
        m_folder.setAutoRemove(false);
        ::mkdir(a().c_str(), 0755);
        ::mkdir(b().c_str(), 0755);
    }
    ~Trees() { QProcess::execute("rm", {"-rf", "--one-file-system", m_folder.path()}); }
    [[nodiscard]] std::string a() const { return m_folder.path().toStdString() + "/a"; }
    [[nodiscard]] std::string b() const { return m_folder.path().toStdString() + "/b"; }
    [[nodiscard]] std::string of(char side) const { return side == 'a' ? a() : b(); }

    /// In both when `sides` is "ab".
    void file(const char* sides, const std::string& path, const std::string& content, mode_t mode = 0644) const {
        for (const char* side = sides; *side != '\0'; ++side) {
            const UniqueFd fd(::open((of(*side) + "/" + path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
            if (!fd || ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
                ::fchmod(fd.get(), mode) != 0) {
                throw std::runtime_error("cannot write " + path);
            }
        }
    }
    void folder(const char* sides, const std::string& path, mode_t mode = 0755) const {
        for (const char* side = sides; *side != '\0'; ++side) {
            if (::mkdir((of(*side) + "/" + path).c_str(), 0755) != 0 ||
                ::chmod((of(*side) + "/" + path).c_str(), mode) != 0) {
                throw std::runtime_error("cannot make " + path);
            }
        }
    }
    void link(const char* sides, const std::string& path, const std::string& target) const {
        for (const char* side = sides; *side != '\0'; ++side) {
            if (::symlink(target.c_str(), (of(*side) + "/" + path).c_str()) != 0) {
                throw std::runtime_error("cannot link " + path);
            }
        }
    }

private:
    QTemporaryDir m_folder;
};

std::string streamOf(const Trees& trees, const WalkOptions& options = {}) {
    std::string bytes;
    Report report(
        [&](std::string_view piece) {
            bytes += piece;
            return true;
        },
        What::Difference, options.isDeep);
    const UniqueFd a(::open(trees.a().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const UniqueFd b(::open(trees.b().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    comparePackages(a.get(), b.get(), report);
    report.diskIs(options.disk, DiskState::Compared);
    compareTrees(a.get(), b.get(), options, report);
    report.end();
    return bytes;
}

/// What a client makes of it; a stream that it refuses is a fault.
DiffLines compared(const Trees& trees, const WalkOptions& options = {}) {
    DiffLines lines;
    client::DiffParser parser(What::Difference, lines);
    auto done = parser.take(streamOf(trees, options));
    done = done ? parser.finish() : done;
    if (!done) {
        throw std::runtime_error(done.error().message);
    }
    return lines;
}

QString noteLine(NoteKind kind, Side side, const QString& path) {
    return QString("%1 %2 ").arg(static_cast<int>(kind)).arg(static_cast<int>(side)) + path;
}

Packages packagesOf(const std::string& text, std::size_t piece) {
    StatusReader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        reader.take(std::string_view(text).substr(at, piece));
    }
    return reader.finish();
}

/// Pages that this process has had at once since the last reset, in KiB; 0: not known.
long peakMemory() {
    QFile status("/proc/self/status");
    if (status.open(QIODevice::ReadOnly)) {
        for (const QByteArray& line : status.readAll().split('\n')) {
            if (line.startsWith("VmHWM:")) {
                return line.mid(6).simplified().split(' ').first().toLong();
            }
        }
    }
    return 0;
}

bool isRoot() {
    return ::geteuid() == 0;
}

} // namespace

class TestInspect : public QObject {
    Q_OBJECT

private slots:
    // ---- the walk ---------------------------------------------------------------------------------------------------
    void changes() {
        const Trees trees;
        QStringList expected;
        const auto expect = [&](const char* line) { expected.append(line); };
        trees.folder("a", "became-file");
        trees.file("a", "became-file/inside", "x");
        trees.file("b", "became-file", "x");
        expect("~ became-file mode type");
        expect("- became-file/inside");
        trees.file("a", "became-folder", "x");
        trees.folder("b", "became-folder");
        trees.file("b", "became-folder/inside", "x");
        expect("~ became-folder mode type");
        expect("+ became-folder/inside");
        trees.file("a", "content", "one two");
        trees.file("b", "content", "one TWO");
        expect("~ content content");
        trees.folder("ab", "folder");
        trees.file("ab", "folder/same", "same");
        trees.file("b", "folder/new", ""); // changes the folder's mtime, which is nothing to tell
        expect("+ folder/new");
        trees.folder("a", "folder-mode", 0700);
        trees.folder("b", "folder-mode", 0755);
        expect("~ folder-mode mode");
        trees.link("a", "link", "one");
        trees.link("b", "link", "two");
        expect("~ link target");
        trees.file("a", "longer", "one");
        trees.file("b", "longer", "one and more", 04755);
        expect("~ longer content mode");
        trees.folder("b", "new");
        trees.folder("b", "new/in");
        trees.file("b", "new/in/file", "x");
        expect("+ new");
        expect("+ new/in");
        expect("+ new/in/file");
        trees.folder("a", "old");
        trees.link("a", "old/link", "/nowhere");
        expect("- old");
        expect("- old/link");
        trees.file("ab", "same", "same");
        if (isRoot()) {
            trees.file("ab", "z-owner", "x");
            QCOMPARE(::chown((trees.b() + "/z-owner").c_str(), 1, 2), 0);
            expect("~ z-owner owner");
        }
        const DiffLines lines = compared(trees);
        QCOMPARE(lines.files, expected);
        QCOMPARE(lines.notes, QStringList());
        QCOMPARE(lines.sum.added + lines.sum.removed + lines.sum.changed, lines.entries.size());
        QCOMPARE(lines.disks, QStringList("0 1"));
        QVERIFY(lines.sum.directories > 4 && lines.sum.names > 10 && lines.sum.bytes > 0);
    }

    void states() {
        const Trees trees;
        trees.file("b", "file", "12345", 04711);
        trees.link("b", "link", "/etc/shadow");
        const DiffLines lines = compared(trees, {.disk = Disk::Home});
        const client::DiffEntry& file = lines.entries.at(0);
        QVERIFY(file.disk == Disk::Home && !file.before && file.after->type == FileType::File);
        QCOMPARE(file.after->size, 5U);
        QCOMPARE(file.after->mode, 04711U);
        QCOMPARE(file.after->uid, ::geteuid());
        QVERIFY(file.after->mtime > 1'000'000'000);
        QCOMPARE(lines.entries.at(1).after->target, std::string("/etc/shadow"));
        QVERIFY(lines.entries.at(1).after->type == FileType::Link);
    }

    void untouchedIsNotRead_butDeepIs() {
        const Trees trees;
        const std::string content(300'000, 'x');
        trees.file("a", "one", content);
        // One inode on both sides is what forks of one base look like.
        QCOMPARE(::link((trees.a() + "/one").c_str(), (trees.b() + "/one").c_str()), 0);
        DiffLines lines = compared(trees);
        QCOMPARE(lines.files, QStringList());
        QCOMPARE(lines.sum.bytes, 0U);
        lines = compared(trees, {.isDeep = true});
        QCOMPARE(lines.files, QStringList());
        QCOMPARE(lines.sum.bytes, 600'000U);
    }

    void holesCostNothing() {
        const Trees trees;
        trees.file("ab", "huge", "");
        QCOMPARE(::truncate((trees.a() + "/huge").c_str(), off_t{1} << 40), 0);
        QCOMPARE(::truncate((trees.b() + "/huge").c_str(), off_t{1} << 40), 0);
        QCOMPARE(compared(trees).files, QStringList());
        const UniqueFd fd(::open((trees.b() + "/huge").c_str(), O_WRONLY | O_CLOEXEC));
        QCOMPARE(::pwrite(fd.get(), "x", 1, (off_t{1} << 39) + 5), ssize_t{1});
        const DiffLines lines = compared(trees);
        QCOMPARE(lines.files, QStringList("~ huge content"));
        QVERIFY(lines.sum.bytes < 1'000'000);
    }

    void namesAreBytes() {
        const Trees trees;
        QStringList expected;
        trees.folder("b", "a");
        for (const std::string name : {"a/z", "a-b", "\x1b[31mred", "line\nbreak", "\xff\xfe", "日本語",
                                       "\xe2\x80\xae right", "sp ace", "'\"$(x)`"}) {
            trees.file("b", name, "");
            expected.append("+ " + DiffLines::latin(name));
        }
        DiffLines lines = compared(trees);
        // What is in a folder comes before its siblings, although "-" is less than "/".
        QVERIFY(lines.files.indexOf("+ a/z") < lines.files.indexOf("+ a-b"));
        QVERIFY(lines.files.removeOne("+ a"));
        expected.sort();
        lines.files.sort();
        QCOMPARE(lines.files, expected);
    }

    void onlyFilesAndFoldersAreOpened() {
        const Trees trees;
        trees.link("ab", "shadow", "/etc/shadow");
        trees.file("a", "was-file", "x");
        trees.link("b", "was-file", "/etc/shadow");
        trees.link("b", "all", "/");
        for (const char side : {'a', 'b'}) {
            QCOMPARE(::mkfifo((trees.of(side) + "/fifo").c_str(), 0600), 0); // opening it to read would wait for ever
        }
        QCOMPARE(::mkfifo((trees.b() + "/new-fifo").c_str(), 0600), 0);
        const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        const std::string path = trees.b() + "/socket";
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        QCOMPARE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        QStringList expected{"+ all", "+ new-fifo", "+ socket", "~ was-file mode type"};
        if (isRoot() && ::mknod((trees.a() + "/zero").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) {
            QCOMPARE(::mknod((trees.b() + "/zero").c_str(), S_IFCHR | 0600, makedev(1, 8)), 0);
            expected.append("~ zero device");
        }
        const DiffLines lines = compared(trees, {.isDeep = true});
        QCOMPARE(lines.files, expected);
        QCOMPARE(lines.notes, QStringList());
        QCOMPARE(lines.sum.bytes, 0U);
    }

    void fileCapabilities() {
        const Trees trees;
        trees.file("ab", "ping", "x");
        // Version 2, CAP_NET_RAW permitted and effective.
        const std::array<unsigned char, 20> capability{1, 0, 0, 2, 0, 0x20};
        if (isRoot()) {
            QCOMPARE(::setxattr((trees.b() + "/ping").c_str(), "security.capability", capability.data(),
                                capability.size(), 0),
                     0);
            QCOMPARE(compared(trees).files, QStringList("~ ping attributes"));
        } else {
            QCOMPARE(compared(trees).files, QStringList());
        }
    }

    void unreadable() {
        const Trees trees;
        trees.file("a", "file", "one", 0);
        trees.file("b", "file", "two", 0);
        trees.folder("ab", "folder", 0);
        trees.folder("b", "other", 0);
        // The rights of files mean nothing to root.
        const uid_t self = ::geteuid();
        if (isRoot()) {
            for (const std::string& top : {trees.a(), trees.b()}) {
                QCOMPARE(::chmod(QFileInfo(QString::fromStdString(top)).path().toLocal8Bit().constData(), 0755), 0);
            }
            QCOMPARE(::seteuid(65534), 0);
        }
        const DiffLines lines = compared(trees);
        QCOMPARE(::seteuid(self), 0);
        QCOMPARE(lines.files, QStringList("+ other"));
        QCOMPARE(lines.notes, QStringList({noteLine(NoteKind::Unreadable, Side::A, "file"),
                                           noteLine(NoteKind::Unreadable, Side::A, "folder"),
                                           noteLine(NoteKind::Unreadable, Side::B, "folder"),
                                           noteLine(NoteKind::Unreadable, Side::B, "other")}));
    }

    void limits() {
        const Trees trees;
        trees.folder("ab", "many");
        for (int i = 0; i < 4; ++i) {
            trees.file("b", "many/" + std::to_string(i), "");
        }
        trees.folder("b", "one");
        trees.folder("b", "one/two");
        trees.folder("b", "one/two/three");
        trees.file("b", "z", "");
        WalkOptions options;
        options.limits.namesInDirectory = 3;
        options.limits.levels = 2;
        DiffLines lines = compared(trees, options);
        QCOMPARE(lines.files, QStringList({"+ one", "+ one/two", "+ one/two/three", "+ z"}));
        QCOMPARE(lines.notes, QStringList({noteLine(NoteKind::TooManyNames, Side::B, "many"),
                                           noteLine(NoteKind::TooDeep, Side::B, "one/two/three")}));
        options.limits = {};
        options.limits.nameBytes = 40; // enough for the top only
        lines = compared(trees, options);
        QCOMPARE(lines.notes.first(), noteLine(NoteKind::TooManyNames, Side::B, "many"));
        QVERIFY(lines.files.contains("+ z"));
    }

    void pathsTooLong() {
        const Trees trees;
        const std::string name(255, 'n');
        UniqueFd at(::open(trees.b().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (int i = 0; i < 20; ++i) { // 5120 bytes
            QCOMPARE(::mkdirat(at.get(), name.c_str(), 0755), 0);
            at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        }
        const DiffLines lines = compared(trees);
        QCOMPARE(lines.files.size(), 16);
        QCOMPARE(lines.notes.size(), 1);
        QVERIFY(lines.notes.first().startsWith(noteLine(NoteKind::PathTooLong, Side::B, "nnn")));
    }

    void directoryInItself() {
        SeenDirectories seen;
        QVERIFY(seen.enter(2) == SeenDirectories::Answer::New);
        QVERIFY(seen.enter(4096 + 2) == SeenDirectories::Answer::New);
        QVERIFY(seen.enter(2) == SeenDirectories::Answer::Seen);
        if (!isRoot()) {
            return; // only root can mount, and no program can make such a link
        }
        const Trees trees;
        trees.folder("ab", "folder");
        trees.folder("ab", "folder/again");
        trees.file("ab", "folder/z", "x");
        QCOMPARE(::unshare(CLONE_NEWNS), 0);
        QCOMPARE(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
        const std::string loop = trees.b() + "/folder/again";
        QCOMPARE(::mount((trees.b() + "/folder").c_str(), loop.c_str(), nullptr, MS_BIND, nullptr), 0);
        const std::string other = trees.a() + "/other";
        trees.folder("ab", "other");
        QCOMPARE(::mount("none", other.c_str(), "tmpfs", 0, "mode=0755"), 0);
        const DiffLines lines = compared(trees);
        ::umount(other.c_str());
        ::umount(loop.c_str());
        QCOMPARE(lines.files, QStringList());
        QCOMPARE(lines.notes, QStringList({noteLine(NoteKind::SeenBefore, Side::B, "folder/again"),
                                           noteLine(NoteKind::OtherFileSystem, Side::A, "other")}));
    }

    void manyFiles_inLittleMemory() {
        constexpr int kFolders = 100;
        constexpr int kFiles = 2000;
        const Trees trees;
        for (int folder = 0; folder < kFolders; ++folder) {
            const std::string name = "folder-" + std::to_string(folder);
            trees.folder("b", name);
            const UniqueFd at(::open((trees.b() + "/" + name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            for (int i = 0; i < kFiles; ++i) {
                const std::string file = "a-file-with-some-name-" + std::to_string(i);
                QCOMPARE(::mknodat(at.get(), file.c_str(), S_IFREG | 0644, 0), 0);
            }
        }
        DiffLines lines;
        lines.keepsEntries = false;
        client::DiffParser parser(What::Difference, lines);
        QFile reset("/proc/self/clear_refs"); // the peak counts from here
        QVERIFY(reset.open(QIODevice::WriteOnly | QIODevice::Unbuffered) && reset.write("5") == 1);
        const long before = peakMemory();
        std::size_t bytes = 0;
        bool isGood = true;
        Report report(
            [&](std::string_view piece) {
                bytes += piece.size();
                isGood = isGood && parser.take(piece).has_value();
                return true;
            },
            What::Difference, false);
        const UniqueFd a(::open(trees.a().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        const UniqueFd b(::open(trees.b().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        report.diskIs(Disk::System, DiskState::Compared);
        compareTrees(a.get(), b.get(), {}, report);
        report.end();
        QVERIFY(isGood && parser.finish().has_value());
        QCOMPARE(lines.count, std::size_t{kFolders} * (kFiles + 1));
        const long grown = peakMemory() - before;
        qInfo("200,000 files: %zu bytes of records, %ld KiB of memory more than before", bytes, grown);
#ifndef __SANITIZE_ADDRESS__ // which keeps what was freed
        QVERIFY2(grown < 16 * 1024, "a walk holds more than the names of open directories");
#endif
    }

    void reader_leaves() {
        const Trees trees;
        for (int i = 0; i < 3000; ++i) {
            trees.file("b", std::to_string(i), "");
        }
        int pieces = 0;
        Report report([&](std::string_view) { return ++pieces < 2; }, What::Difference, false);
        const UniqueFd a(::open(trees.a().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        const UniqueFd b(::open(trees.b().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        report.diskIs(Disk::System, DiskState::Compared);
        compareTrees(a.get(), b.get(), {}, report);
        QVERIFY(report.isBroken());
        QVERIFY(!report.end());
        QCOMPARE(pieces, 2);
    }

    // ---- packages ---------------------------------------------------------------------------------------------------
    void packages_data() {
        QTest::addColumn<QByteArray>("status");
        QTest::addColumn<QStringList>("packages");
        const auto row = [](const char* name, const char* status, const QStringList& packages) {
            QTest::newRow(name) << QByteArray(status) << packages;
        };
        row("one", "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2-3\n",
            {"a:amd64 1:2-3"});
        row("no line break at the end", "Package: a\nStatus: install ok installed\nVersion: 1", {"a: 1"});
        row("two, and a description",
            "Package: b\nStatus: install ok installed\nVersion: 2\nDescription: x\n Version: 9\n .\n Package: z\n\n\n"
            "Package: a\nStatus: hold ok half-configured\nVersion: 1\n",
            {"a: 1", "b: 2"});
        row("removed, its configuration is left", "Package: a\nStatus: deinstall ok config-files\nVersion: 1\n", {});
        row("never there", "Package: a\nStatus: unknown ok not-installed\nVersion: 1\n", {});
        row("no version", "Package: a\nStatus: install ok installed\n", {});
        row("no status", "Package: a\nVersion: 1\n", {});
        row("two architectures",
            "Package: a\nStatus: install ok installed\nArchitecture: i386\nVersion: 1\n\n"
            "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n",
            {"a:amd64 1", "a:i386 1"});
        row("nonsense", "\n\n:\n x\nPackage\n: : :\n", {});
        row("empty", "", {});
    }
    void packages() {
        QFETCH(QByteArray, status);
        QFETCH(QStringList, packages);
        for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
            QStringList found;
            for (const auto& [key, version] : packagesOf(status.toStdString(), piece)) {
                found.append(QString::fromStdString(key.first + ":" + key.second + " " + version));
            }
            QCOMPARE(found, packages);
        }
    }

    void packages_hostile() {
        StatusReader reader;
        const std::string good = "\n\nPackage: a\nStatus: install ok installed\nVersion: 1\n\n";
        reader.take("Package: " + std::string(300, 'x') + "\nStatus: install ok installed\nVersion: 1\n");
        reader.take(good + "Conffiles: " + std::string(10'000'000, 'y'));
        reader.take("\nPackage: zero\nStatus: install ok installed\nVersion: 1" + std::string(1, '\0') + "\n");
        QCOMPARE(reader.finish().size(), std::size_t{1});
        QVERIFY(!reader.isWhole());
    }

    void packages_compared() {
        const Trees trees;
        for (const char* folder : {"var", "var/lib", "var/lib/dpkg"}) {
            trees.folder("ab", folder);
        }
        const auto package = [](const char* name, const char* version) {
            return std::string("Package: ") + name +
                   "\nStatus: install ok installed\nArchitecture: all\nVersion: " + version + "\n\n";
        };
        trees.file("a", "var/lib/dpkg/status", package("same", "1") + package("gone", "2") + package("up", "3"));
        trees.file("b", "var/lib/dpkg/status", package("up", "4") + package("same", "1") + package("new", "5"));
        DiffLines lines = compared(trees);
        QCOMPARE(lines.packages, QStringList({"gone:all 2 -> ", "new:all  -> 5", "up:all 3 -> 4"}));
        QCOMPARE(lines.sum.packagesAdded, 1U);
        // A link could lead anywhere.
        QCOMPARE(::unlink((trees.b() + "/var/lib/dpkg/status").c_str()), 0);
        trees.link("b", "var/lib/dpkg/status", trees.a() + "/var/lib/dpkg/status");
        lines = compared(trees);
        QCOMPARE(lines.packages, QStringList());
        QCOMPARE(lines.notes, QStringList(noteLine(NoteKind::PackagesUnreadable, Side::B, "var/lib/dpkg/status")));
    }

    // ---- disks ------------------------------------------------------------------------------------------------------
    void disks_areFoundByTheirSerial() {
        const Trees trees;
        for (const char* disk : {"vda", "vdb", "vdc"}) {
            trees.folder("a", disk);
        }
        trees.file("a", "vda/serial", "");
        trees.file("a", "vdc/serial", "a-home");
        trees.file("a", "vdb/serial", "a-home-too\n");
        QCOMPARE(findDisk("a-home", trees.a()), std::string("vdc"));
        QCOMPARE(findDisk("a-home-too", trees.a()), std::string("vdb"));
        QCOMPARE(findDisk("b-home", trees.a()), std::string());
        QCOMPARE(findDisk("a-home", trees.a() + "/none"), std::string());
    }

    // ---- facts ------------------------------------------------------------------------------------------------------
    void facts() {
        const UniqueFd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        QVERIFY(::bind(tcp.get(), any, size) == 0 && ::listen(tcp.get(), 1) == 0);
        QCOMPARE(::getsockname(tcp.get(), any, &size), 0);
        const Trees trees;
        const std::string path = trees.a() + "/a socket";
        const UniqueFd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
        path.copy(name.sun_path, sizeof name.sun_path - 1);
        QVERIFY(::bind(local.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                ::listen(local.get(), 1) == 0);

        const UniqueFd output(::memfd_create("facts", MFD_CLOEXEC));
        QCOMPARE(reportFacts(output.get()), 0);
        QFile file;
        QVERIFY(file.open(::dup(output.get()), QIODevice::ReadOnly, QFileDevice::AutoCloseHandle));
        QVERIFY(file.seek(0));
        const QByteArray bytes = file.readAll();
        QVERIFY(static_cast<std::size_t>(bytes.size()) <= kLongestFacts);
        DiffLines lines;
        client::DiffParser parser(What::Facts, lines);
        const auto done = parser.take({bytes.data(), static_cast<std::size_t>(bytes.size())});
        QVERIFY2(done && parser.finish(), done ? "cut" : done.error().message.c_str());

        const auto self = static_cast<std::uint32_t>(::getpid());
        const auto process = std::find_if(lines.processes.begin(), lines.processes.end(),
                                          [&](const auto& one) { return one.pid == self; });
        const auto hasSocket = [&](SocketKind kind, const std::string& where, std::uint16_t port) {
            return std::any_of(lines.sockets.begin(), lines.sockets.end(), [&](const auto& one) {
                return one.kind == kind && one.address == where && one.port == port && one.pid == self;
            });
        };
        if (process == lines.processes.end()) {
            QVERIFY(lines.isCut); // a machine with thousands of them
        } else {
            QVERIFY(process->command.find("tst_inspect") != std::string::npos || process->isCut);
            QCOMPARE(process->parent, static_cast<std::uint32_t>(::getppid()));
            QCOMPARE(process->uid, ::getuid());
            QVERIFY(process->startedAt > 1'000'000'000);
        }
        QVERIFY(lines.isCut || hasSocket(SocketKind::Tcp, "127.0.0.1", ntohs(address.sin_port)));
        QVERIFY(lines.isCut || hasSocket(SocketKind::Unix, path, 0));
    }

    void stat_data() {
        QTest::addColumn<QByteArray>("stat");
        QTest::addColumn<qlonglong>("parent"); // -1: refused
        QTest::addColumn<qulonglong>("start");
        const QByteArray rest = " 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4711 21 22\n";
        QTest::newRow("usual") << QByteArray("9 (bash) S 2" + rest) << 2LL << 4711ULL;
        QTest::newRow("a name with brackets") << QByteArray("9 (a) R 7 (b)) S 2" + rest) << 2LL << 4711ULL;
        QTest::newRow("no bracket") << QByteArray("9 bash S 2" + rest) << -1LL << 0ULL;
        QTest::newRow("short") << QByteArray("9 (bash) S 2 3") << -1LL << 0ULL;
        QTest::newRow("no number") << QByteArray("9 (bash) S x" + rest) << -1LL << 0ULL;
        QTest::newRow("empty") << QByteArray() << -1LL << 0ULL;
    }
    void stat() {
        QFETCH(QByteArray, stat);
        QFETCH(qlonglong, parent);
        QFETCH(qulonglong, start);
        const auto parsed = parseStat(std::string_view(stat.data(), static_cast<std::size_t>(stat.size())));
        QCOMPARE(parsed.has_value(), parent >= 0);
        if (parsed) {
            QCOMPARE(static_cast<qlonglong>(parsed->parent), parent);
            QCOMPARE(static_cast<qulonglong>(parsed->startTicks), start);
        }
    }

    void sockets_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<QString>("address"); // empty: none
        QTest::addColumn<int>("port");
        const auto row = [](const char* name, SocketKind kind, const char* line, const char* address, int port) {
            QTest::newRow(name) << static_cast<int>(kind) << QByteArray(line) << QString(address) << port;
        };
        row("tcp", SocketKind::Tcp, " 0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 1000 0 4711 1 0 100 0", "127.0.0.1",
            8080);
        row("a connection", SocketKind::Tcp, " 0: 0100007F:1F90 0100007F:1234 01 0:0 00:0 0 1000 0 4711 1", "", 0);
        row("tcp6", SocketKind::Tcp6,
            " 0: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 9 1",
            "::1", 22);
        row("udp", SocketKind::Udp, " 5: 00000000:0044 00000000:0000 07 0:0 00:0 0 0 0 12 2", "0.0.0.0", 68);
        row("a title", SocketKind::Tcp, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when", "", 0);
        row("an address cut", SocketKind::Tcp, " 0: 0100007:1F90 00000000:0000 0A 0:0 00:0 0 1000 0 4711 1", "", 0);
        row("a port too large", SocketKind::Tcp, " 0: 0100007F:11F90 00000000:0000 0A 0:0 00:0 0 1 0 4711 1", "", 0);
        row("unix", SocketKind::Unix, "ffff: 00000002 00000000 00010000 0001 01 4711 /run/a b", "/run/a b", 0);
        row("abstract", SocketKind::Unix, "ffff: 00000002 00000000 00010000 0001 01 4711 @x", "@x", 0);
        row("unix, connected", SocketKind::Unix, "ffff: 00000003 00000000 00000000 0001 03 4711 /run/a", "", 0);
        row("unix without a path", SocketKind::Unix, "ffff: 00000002 00000000 00010000 0001 01 4711", "", 0);
        row("empty", SocketKind::Unix, "", "", 0);
    }
    void sockets() {
        QFETCH(int, kind);
        QFETCH(QByteArray, line);
        QFETCH(QString, address);
        QFETCH(int, port);
        const auto parsed = parseSocket(static_cast<SocketKind>(kind), line.toStdString());
        QCOMPARE(parsed.has_value(), !address.isEmpty());
        if (parsed) {
            QCOMPARE(QString::fromStdString(parsed->address), address);
            QCOMPARE(static_cast<int>(parsed->port), port);
        }
    }
};

QTEST_GUILESS_MAIN(TestInspect)
#include "tst_inspect.moc"
