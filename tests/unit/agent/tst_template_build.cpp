// SPDX-License-Identifier: Apache-2.0
#include "build/apt_sources.hpp"
#include "build/cpio.hpp"
#include "build/initramfs.hpp"
#include "build/options.hpp"

#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>

using namespace bulkhead;
using namespace bulkhead::imaging::build;

namespace {

constexpr const char* kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) {
        result.push_back(word.data());
    }
    return result;
}

} // namespace

class TestTemplateBuild : public QObject {
    Q_OBJECT

private slots:
    void selectsDebian_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("deb822");
        QTest::addColumn<QByteArray>("expected"); ///< formatted; "!CODE": refused
        const auto line = [](const QByteArray& rest) {
            return QByteArray("deb [signed-by=") + kKeyring + "] " + rest + "\n";
        };
        const QByteArray main = "deb http://mirror.example/debian bookworm main contrib\n";
        const QByteArray mainOut = line("http://mirror.example/debian bookworm main contrib");
        QTest::newRow("one line") << main << false << mainOut;
        QTest::newRow("comments and sources")
            << main +
                   "# deb http://x.example/debian bookworm main\ndeb-src http://mirror.example/debian bookworm main\n"
            << false << mainOut;
        QTest::newRow("security and updates")
            << main + "deb http://m.example/debian-security bookworm-security main # why\ndeb http://m.example/debian "
                      "bookworm-updates main\n"
            << false
            << mainOut + line("http://m.example/debian-security bookworm-security main") +
                   line("http://m.example/debian bookworm-updates main");
        QTest::newRow("options") << QByteArray("deb [ arch=amd64,i386 signed-by=") + kKeyring +
                                        " ] https://m.example/debian bookworm main\n"
                                 << false << line("https://m.example/debian bookworm main");
        QTest::newRow("third parties")
            << main + "deb [signed-by=/etc/apt/keyrings/docker.gpg] https://d.example/linux/debian bookworm main\n"
                      "deb https://d.example/linux/debian bookworm stable\n"
                      "deb http://n.example/debian nodistro main\n"
                      "deb http://m.example/debian trixie main\n"
                      "deb http://m.example/debian bookworm-backports main\n"
                      "deb [arch=arm64] http://m.example/debian bookworm main\n"
                      "deb cdrom:[Debian]/ bookworm main\n"
                      "deb file:/srv/debian bookworm main\n"
            << false << mainOut;
        QTest::newRow("nothing left") << QByteArray("deb http://m.example/debian trixie main\n") << false
                                      << QByteArray("!NotFound");
        QTest::newRow("only updates") << QByteArray("deb http://m.example/debian bookworm-updates main\n") << false
                                      << QByteArray("!NotFound");
        for (const char* const option : {"trusted=yes", "allow-insecure=yes", "Trusted=Yes", "allow-weak=true"}) {
            QTest::newRow(option) << QByteArray("deb [") + option + "] http://m.example/debian bookworm main\n"
                                  << false << QByteArray("!InvalidArgument");
        }
        QTest::newRow("trusted third party") << main + "deb [trusted=yes] http://x.example/ ./\n" << false << mainOut;
        QTest::newRow("deb822") << QByteArray("Types: deb deb-src\n# a comment\nURIs: http://m.example/debian\nSuites: "
                                              "bookworm bookworm-updates\nComponents: main\nSigned-By: ") +
                                       kKeyring + "\n"
                                << true
                                << line("http://m.example/debian bookworm main") +
                                       line("http://m.example/debian bookworm-updates main");
        QTest::newRow("deb822, two stanzas, one disabled")
            << QByteArray("Types: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\n\n"
                          "Enabled: no\nTypes: deb\nURIs: http://b.example/debian\nSuites: bookworm\n"
                          "Components: main\n")
            << true << line("http://a.example/debian bookworm main");
        QTest::newRow("deb822, continued lines")
            << QByteArray("Types: deb\nURIs:\n http://a.example/debian\n http://b.example/debian\nSuites: bookworm\n"
                          "Components: main\n non-free-firmware\n")
            << true
            << line("http://a.example/debian bookworm main non-free-firmware") +
                   line("http://b.example/debian bookworm main non-free-firmware");
        QTest::newRow("deb822, key inline") << QByteArray("Types: deb\nURIs: http://a.example/debian\nSuites: "
                                                          "bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP "
                                                          "PUBLIC KEY BLOCK-----\n .\n")
                                            << true << QByteArray("!NotFound");
        QTest::newRow("deb822, trusted") << QByteArray("Types: deb\nURIs: http://a.example/debian\nSuites: bookworm\n"
                                                       "Components: main\nTrusted: yes\n")
                                         << true << QByteArray("!InvalidArgument");
        QTest::newRow("empty") << QByteArray() << true << QByteArray("!NotFound");
    }
    void selectsDebian() {
        QFETCH(QByteArray, text);
        QFETCH(bool, deb822);
        QFETCH(QByteArray, expected);
        const auto sources =
            deb822 ? parseDeb822Sources(text.toStdString(), "file") : parseOneLineSources(text.toStdString(), "file");
        const auto selected = selectDebianSources(sources, "bookworm");
        if (expected.startsWith('!')) {
            QVERIFY(!selected);
            QCOMPARE("!" + QByteArray::fromStdString(std::string(nameOf(selected.error().code))), expected);
        } else {
            QVERIFY2(selected.has_value(), selected ? "" : selected.error().message.c_str());
            QCOMPARE(QByteArray::fromStdString(formatSources(*selected)), expected);
        }
    }

    void readsTheHost() {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "etc/apt/sources.list.d");
        std::filesystem::create_directories(root / "var/lib/apt/lists");
        std::ofstream(root / "etc/apt/sources.list") << "deb http://m.example/debian bookworm main\n";
        std::ofstream(root / "etc/apt/sources.list.d/a.sources")
            << "Types: deb\nURIs: http://s.example/debian-security/\nSuites: bookworm-security\nComponents: main\n";
        std::ofstream(root / "etc/apt/sources.list.d/b.list") << "deb http://other.example/debian bookworm main\n";
        std::ofstream(root / "etc/apt/sources.list.d/c.list.disabled")
            << "deb http://off.example/debian bookworm main\n";
        std::ofstream(root / "var/lib/apt/lists/m.example_debian_dists_bookworm_InRelease")
            << "Hash: SHA256\n\nOrigin: Debian\nLabel: Debian\n";
        std::ofstream(root / "var/lib/apt/lists/other.example_debian_dists_bookworm_InRelease")
            << "Hash: SHA256\n\nOrigin: Other\nLabel: Other\n";
        std::vector<std::string> uris;
        const HostSources host = readHostSources(root);
        for (const AptSource& source : host.sources) {
            uris.push_back(source.uri);
        }
        QVERIFY(host.unreadable.empty());
        QCOMPARE(uris, (std::vector<std::string>{"http://m.example/debian", "http://s.example/debian-security/"}));
    }

    void namesSourcesThatItCannotRead() {
        const QTemporaryDir folder;
        const std::filesystem::path root(folder.path().toStdString());
        std::filesystem::create_directories(root / "etc/apt/sources.list.d/odd.list"); // root reads every file
        std::filesystem::create_symlink("/no/such", root / "etc/apt/sources.list");
        const HostSources host = readHostSources(root);
        QVERIFY(host.sources.empty());
        QCOMPARE(host.unreadable.size(), std::size_t{2});
        QVERIFY(host.unreadable[0].find("etc/apt/sources.list (No such file") != std::string::npos);
        QVERIFY(host.unreadable[1].find("odd.list (no regular file") != std::string::npos);
    }

    void keepsPasswordsOutOfTheTemplate_data() {
        QTest::addColumn<QByteArray>("uri");
        QTest::addColumn<QByteArray>("written");
        QTest::addColumn<QByteArray>("auth"); // "-": refused
        const auto row = [](const QByteArray& scheme, const char* rest, const char* written, const char* login) {
            const QByteArray to = scheme + "://" + written;
            const bool isPlain = QByteArray(login).isEmpty() || QByteArray(login) == "-";
            QTest::newRow(rest) << scheme + "://" + rest << to
                                << (isPlain ? QByteArray(login) : "machine " + to + " login " + login + "\n");
        };
        row("http", "m.example/debian", "m.example/debian", "");
        row("http", "me:s3cret@m.example:81/debian", "m.example:81/debian", "me password s3cret");
        row("https", "me:a%40b%23c@m.example/debian", "m.example/debian", "me password a@b#c");
        row("https", "token@m.example/debian", "m.example/debian", "token");
        row("http", "m.example/@debian", "m.example/@debian", "");
        row("http", "a:b@c@m.example/debian", "m.example/debian", "a password b@c");
        row("http", "me:a%20b@m.example/debian", "m.example/debian", "-");
        row("http", "me:a%0Amachine@m.example/debian", "m.example/debian", "-");
    }
    void keepsPasswordsOutOfTheTemplate() {
        QFETCH(QByteArray, uri);
        QFETCH(QByteArray, written);
        QFETCH(QByteArray, auth);
        const std::string text =
            "deb " + uri.toStdString() + " bookworm main\ndeb " + uri.toStdString() + " bookworm-updates main\n";
        const auto selected = selectDebianSources(parseOneLineSources(text, "f"), "bookworm");
        QVERIFY(selected);
        QCOMPARE(selected->size(), std::size_t{2});
        const QByteArray sources = QByteArray::fromStdString(formatSources(*selected));
        QVERIFY2(sources.contains(" " + written + " bookworm main\n"), sources);
        const auto got = formatAuth(*selected);
        QCOMPARE(got.has_value(), auth != "-");
        if (got) {
            QCOMPARE(QByteArray::fromStdString(*got), auth);
        } else {
            QVERIFY2(got.error().message.starts_with("f:1: "), got.error().message.c_str());
            QVERIFY(got.error().message.find("me:") == std::string::npos);
        }
    }

    void takesAptOptions() {
        const AptOptions options = selectAptOptions("Acquire::http::Proxy \"http://p.example:3128\";\n"
                                                    "Acquire::Check-Valid-Until \"false\";\n"
                                                    "APT::Get::AllowUnauthenticated \"true\";\n"
                                                    "Acquire::https::Proxy \"x\";Evil \"y\";\n"
                                                    "Acquire::AllowInsecureRepositories \"1\";\n"
                                                    "Acquire::http::Proxy::m.example \"DIRECT\";\n");
        QCOMPARE(options.forBuild, (std::vector<std::string>{"Acquire::http::Proxy \"http://p.example:3128\";",
                                                             "Acquire::Check-Valid-Until \"false\";",
                                                             "Acquire::http::Proxy::m.example \"DIRECT\";"}));
        QCOMPARE(options.forTemplate, (std::vector<std::string>{"Acquire::Check-Valid-Until \"false\";"}));
    }

    void checksOptions_data() {
        QTest::addColumn<QStringList>("extra");
        QTest::addColumn<bool>("valid");
        QTest::newRow("plain") << QStringList{"--package", "git"} << true;
        QTest::newRow("g++") << QStringList{"--package", "g++"} << true;
        QTest::newRow("an option as a package") << QStringList{"--package", "--hook-dir=/x"} << false;
        QTest::newRow("a file as a package") << QStringList{"--package", "./x.deb"} << false;
        QTest::newRow("two in one") << QStringList{"--package", "git,curl"} << false;
        QTest::newRow("a shell") << QStringList{"--package", "a;b"} << false;
        QTest::newRow("upper case") << QStringList{"--package", "Git"} << false;
        QTest::newRow("a suite with a path") << QStringList{"--suite", "../x"} << false;
        QTest::newRow("no kernel") << QStringList{"--kernel", "git"} << false;
        QTest::newRow("relative output") << QStringList{"--output", "out"} << false;
        QTest::newRow("tiny disk") << QStringList{"--system-size", "1000"} << false;
        QTest::newRow("odd disk") << QStringList{"--system-size", "2147483649"} << false;
        QTest::newRow("disk with a unit") << QStringList{"--system-size", "8GiB"} << false;
        QTest::newRow("no value") << QStringList{"--package"} << false;
        QTest::newRow("systemd") << QStringList{"--init", "systemd", "--files", "/f", "--session", "/s"} << true;
        QTest::newRow("unknown init") << QStringList{"--init", "runit"} << false;
        QTest::newRow("relative files") << QStringList{"--files", "desktop"} << false;
        QTest::newRow("relative session") << QStringList{"--session", "s"} << false;
        QTest::newRow("name") << QStringList{"--name", "my-template"} << true;
        QTest::newRow("a name that ends a line") << QStringList{"--name", "a\nb"} << false;
        QTest::newRow("a name with a path") << QStringList{"--name", "../x"} << false;
        QTest::newRow("unknown") << QStringList{"--shell", "x"} << false;
    }
    void checksOptions() {
        QFETCH(QStringList, extra);
        QFETCH(bool, valid);
        std::vector<std::string> words{"--output",      "/out",      "--agent",  "/agent",
                                       "--suite",       "bookworm",  "--kernel", "linux-image-cloud-amd64",
                                       "--system-size", "8589934592"};
        for (const QString& word : extra) {
            words.push_back(word.toStdString());
        }
        const auto parsed = parseOptions(pointers(words));
        QCOMPARE(parsed.has_value(), valid);
        if (!valid) {
            QCOMPARE(int(parsed.error().code), int(ErrorCode::InvalidArgument));
        }
    }

    void ordersModules() {
        const ModuleIndex index("kernel/drivers/virtio/virtio-pci.ko: kernel/b.ko kernel/a.ko\n"
                                "kernel/a.ko:\nkernel/b.ko: kernel/a.ko\n",
                                "kernel/fs/ext4/ext4.ko\n");
        QCOMPARE(*index.filesFor("virtio_pci"),
                 (std::vector<std::string>{"kernel/a.ko", "kernel/b.ko", "kernel/drivers/virtio/virtio-pci.ko"}));
        QVERIFY(index.filesFor("ext4")->empty());
        QVERIFY(!index.filesFor("none"));
    }

    void cpioIsReadByCpio() {
        CpioWriter writer;
        writer.addDirectory("dir");
        writer.addFile("dir/file", "hello", 0644);
        writer.addFile("run", std::string(1001, 'x'), 0755);
        const std::string archive = writer.finish();
        QCOMPARE(archive.size() % 4, std::size_t{0});
        const QTemporaryDir folder;
        QProcess cpio;
        cpio.setWorkingDirectory(folder.path());
        cpio.start("cpio", {"--extract", "--quiet"});
        cpio.write(archive.data(), qint64(archive.size()));
        cpio.closeWriteChannel();
        QVERIFY(cpio.waitForFinished());
        QVERIFY2(cpio.exitCode() == 0, cpio.readAllStandardError().constData());
        QFile file(folder.filePath("dir/file"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), QByteArray("hello"));
        QCOMPARE(QFileInfo(folder.filePath("run")).size(), qint64{1001});
        QVERIFY(QFileInfo(folder.filePath("run")).isExecutable());
    }

    void initramfsNamesWhatIsMissing() {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::ofstream(root / "agent") << "\x7f"
                                         "ELF";
        std::ofstream(root / "modules.dep") << "kernel/virtio_pci.ko:\n";
        std::ofstream(root / "modules.builtin") << "\n";
        std::filesystem::create_directory(root / "kernel");
        std::ofstream(root / "kernel/virtio_pci.ko") << "module";
        const auto made = makeInitramfs(root / "agent", root, false);
        QVERIFY(!made);
        QVERIFY2(made.error().message.find("virtio_console") != std::string::npos, made.error().message.c_str());
        std::ofstream(root / "modules.builtin") << "kernel/virtio_console.ko\nkernel/virtio_blk.ko\nkernel/"
                                                   "crc32c_generic.ko\nkernel/ext4.ko\nkernel/qemu_fw_cfg.ko\n";
        const auto whole = makeInitramfs(root / "agent", root, false);
        QVERIFY(whole);
        QVERIFY(whole->find("early /lib/virtio_pci.ko\n") != std::string::npos);
        QVERIFY(whole->find("hand-over") == std::string::npos);
        QVERIFY(makeInitramfs(root / "agent", root, true)->find("hand-over") != std::string::npos);
        QVERIFY(!makeInitramfs(root / "modules.dep", root, false));
    }
};

QTEST_GUILESS_MAIN(TestTemplateBuild)
#include "tst_template_build.moc"
