// SPDX-License-Identifier: Apache-2.0
#include "process/run.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;

class TestReadonlyPreload : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string path(const std::string& name) const { return m_folder.path().toStdString() + "/" + name; }

    std::string openOf(const std::string& function, const std::string& file, const std::string& access,
                       const std::optional<std::string>& folder) const {
        process::ProcessSpec spec;
        spec.program = BULKHEAD_OPEN_FLAGS;
        spec.arguments = {function, file, access};
        spec.environment = {"LD_PRELOAD=" BULKHEAD_READONLY_LIBRARY};
        if (folder) {
            spec.environment.push_back("BULKHEAD_READONLY_DIR=" + *folder);
        }
        spec.workingDirectory = m_folder.path().toStdString();
        const auto result = process::run(spec);
        return result ? result->output + result->error : result.error().message;
    }

private slots:
    void initTestCase() {
        for (const char* folder : {"images", "images/deep", "images-other", "outside"}) {
            std::filesystem::create_directory(path(folder));
        }
        for (const char* file : {"images/a.ram", "images/deep/b.ram", "images-other/c.ram", "outside/d.ram"}) {
            std::ofstream(path(file)) << "x";
        }
        std::filesystem::create_symlink("../outside/d.ram", path("images/out.ram"));
        std::filesystem::create_symlink("a.ram", path("images/in.ram"));
        std::filesystem::create_symlink("images", path("link"));
    }

    void everyFunction_data() {
        QTest::addColumn<QByteArray>("function");
        for (const char* function :
             {"open", "open64", "openat", "openat64", "__open_2", "__open64_2", "__openat_2", "__openat64_2"}) {
            QTest::newRow(function) << QByteArray(function);
        }
    }
    void everyFunction() {
        QFETCH(QByteArray, function);
        const std::string name = function.toStdString();
        QCOMPARE(openOf(name, path("images/a.ram"), "rdwr", path("images")), std::string("rdonly"));
        QCOMPARE(openOf(name, path("outside/d.ram"), "rdwr", path("images")), std::string("rdwr"));
        QCOMPARE(openOf(name, path("outside/d.ram"), "rdonly", path("images")), std::string("rdonly"));
        QCOMPARE(openOf(name, path("images/none"), "rdwr", path("images")), "errno " + std::to_string(ENOENT));
    }

    void path_data() {
        QTest::addColumn<QByteArray>("file");
        QTest::addColumn<QByteArray>("access");
        QTest::addColumn<QByteArray>("folder");
        QTest::addColumn<QByteArray>("opened");
        const auto row = [](const char* name, const char* file, const char* access, const char* folder,
                            const char* opened) {
            QTest::newRow(name) << QByteArray(file) << QByteArray(access) << QByteArray(folder) << QByteArray(opened);
        };
        row("deeper", "/images/deep/b.ram", "rdwr", "/images", "rdonly");
        row("folder with slashes", "/images/a.ram", "rdwr", "/images//", "rdonly");
        row("slashes", "/images///a.ram", "rdwr", "/images", "rdonly");
        row("dots inside", "/images/deep/../a.ram", "rdwr", "/images", "rdonly");
        row("link inside", "/images/in.ram", "rdwr", "/images", "rdonly");
        row("existing, with create", "/images/a.ram", "creat", "/images", "rdonly");
        row("for reading", "/images/a.ram", "rdonly", "/images", "rdonly");
        row("for writing only", "/images/a.ram", "wronly", "/images", "wronly");
        row("dots to outside", "/images/../outside/d.ram", "rdwr", "/images", "rdwr");
        row("dots out and back", "/images/../images/a.ram", "rdwr", "/images", "rdwr");
        row("link to outside", "/images/out.ram", "rdwr", "/images", "rdwr");
        row("by another name", "/link/a.ram", "rdwr", "/images", "rdwr");
        row("name with the same start", "/images-other/c.ram", "rdwr", "/images", "rdwr");
        row("folder that is not there", "/images/a.ram", "rdwr", "/nowhere", "rdwr");
        row("folder is a link", "/link/a.ram", "rdwr", "/link", "rdonly");
    }
    void path() {
        QFETCH(QByteArray, file);
        QFETCH(QByteArray, access);
        QFETCH(QByteArray, folder);
        QFETCH(QByteArray, opened);
        const std::string base = m_folder.path().toStdString();
        QCOMPARE(openOf("open64", base + file.toStdString(), access.toStdString(), base + folder.toStdString()),
                 opened.toStdString());
    }
    void noFolder_changesNothing() {
        QCOMPARE(openOf("open64", path("images/a.ram"), "rdwr", std::nullopt), std::string("rdwr"));
        for (const char* folder : {"", "/", "images", "//"}) {
            QCOMPARE(openOf("open64", path("images/a.ram"), "rdwr", folder), std::string("rdwr"));
        }
    }
    void newFile_isMadeWithItsMode() {
        for (const char* function : {"open", "open64", "openat", "openat64"}) {
            const std::string file = path(std::string("images/new-") + function);
            QCOMPARE(openOf(function, file, "creat", path("images")), std::string("rdwr"));
            struct stat status {};
            QCOMPARE(::stat(file.c_str(), &status), 0);
            QCOMPARE(status.st_mode & 07777U, 0600U); // 0640 less the umask of run()
        }
    }
    void library_needsOnlyLibc() {
        process::ProcessSpec spec;
        spec.program = "/usr/bin/objdump";
        spec.arguments = {"-p", BULKHEAD_READONLY_LIBRARY};
        spec.environment = process::toolEnvironment();
        const auto result = process::run(spec);
        QVERIFY(result);
        std::istringstream lines(result->output);
        std::vector<std::string> needed;
        for (std::string word; lines >> word;) {
            if (word == "NEEDED") {
                lines >> word;
                needed.push_back(word);
            }
        }
        QCOMPARE(needed, std::vector<std::string>{"libc.so.6"});
    }
};

QTEST_GUILESS_MAIN(TestReadonlyPreload)
#include "tst_readonly_preload.moc"
