// SPDX-License-Identifier: Apache-2.0
// Which files a viewer that was taken over can still reach: in a child, since what is given up is given up for good.
#include "viewer/file_access.hpp"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/landlock.h>
#include <map>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::viewer;

namespace {

/// The kernel has no Landlock, and giveUpFiles() says so.
constexpr int kNotConfined = 200;

bool hasLandlock() {
    return ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
}

/// The errno of opening the file once the others are given up; 0: it opened.
int opened(const FileAccess& access, const QString& path, int flags) {
    const QByteArray name = path.toLocal8Bit();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto confined = giveUpFiles(access);
        if (!confined || !*confined) {
            ::_exit(kNotConfined);
        }
        errno = 0;
        ::_exit(::open(name.constData(), flags | O_CLOEXEC, 0600) < 0 ? errno : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

class TestViewerFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() {
        QVERIFY(QDir(m_home.path()).mkpath(".config/fontconfig"));
        QVERIFY(QDir(m_home.path()).mkpath(".ssh"));
        for (const char* file : {".bashrc", ".ssh/id_ed25519", ".Xauthority", ".config/fontconfig/fonts.conf"}) {
            QFile made(m_home.filePath(file));
            QVERIFY(made.open(QIODevice::WriteOnly));
        }
    }

    void files_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("flags");
        QTest::addColumn<int>("answer");
        const QString home = m_home.path() + '/';
        QTest::newRow("the user's shell, written") << home + ".bashrc" << (O_WRONLY | O_APPEND) << EACCES;
        QTest::newRow("the user's shell, read") << home + ".bashrc" << O_RDONLY << EACCES;
        QTest::newRow("a key") << home + ".ssh/id_ed25519" << O_RDONLY << EACCES;
        QTest::newRow("a new file") << home + "new" << (O_WRONLY | O_CREAT) << EACCES;
        QTest::newRow("a program at login") << home + ".config/autostart.desktop" << (O_WRONLY | O_CREAT) << EACCES;
        QTest::newRow("the home, listed") << m_home.path() << (O_RDONLY | O_DIRECTORY) << EACCES;
        QTest::newRow("a file for all") << QDir::tempPath() + "/bulkhead-viewer-test" << (O_WRONLY | O_CREAT) << EACCES;
        QTest::newRow("the store, listed") << QStringLiteral("/var/lib") << (O_RDONLY | O_DIRECTORY) << EACCES;
        QTest::newRow("the system, written") << QStringLiteral("/etc/hostname") << O_WRONLY << EACCES;
        QTest::newRow("the key to the X server") << home + ".Xauthority" << O_RDONLY << 0;
        QTest::newRow("that key, written") << home + ".Xauthority" << O_WRONLY << EACCES;
        QTest::newRow("fonts") << home + ".config/fontconfig/fonts.conf" << O_RDONLY << 0;
        QTest::newRow("fonts, written") << home + ".config/fontconfig/fonts.conf" << O_WRONLY << EACCES;
        QTest::newRow("the system") << QStringLiteral("/etc/passwd") << O_RDONLY << 0;
        QTest::newRow("nothing, written") << QStringLiteral("/dev/null") << O_WRONLY << 0;
    }
    void files() {
        QFETCH(QString, file);
        QFETCH(int, flags);
        QFETCH(int, answer);
        const auto access = filesOfAViewer([this](const char* name) {
            return qstrcmp(name, "HOME") == 0 ? m_home.path().toStdString() : std::string();
        });
        QCOMPARE(opened(access, file, flags), hasLandlock() ? answer : kNotConfined);
    }
    void variables_sayWhereThingsAre() {
        const std::map<std::string, std::string> set{{"HOME", "/people/x"},
                                                     {"XAUTHORITY", "/run/key"},
                                                     {"XDG_CONFIG_HOME", "/cfg"},
                                                     {"XDG_DATA_DIRS", "/a:relative::/b"},
                                                     {"XDG_RUNTIME_DIR", "/run/user/1"}};
        const auto access = filesOfAViewer([&](const char* name) {
            const auto found = set.find(name);
            return found == set.end() ? std::string() : found->second;
        });
        const auto has = [](const std::vector<std::string>& list, const char* path) {
            return std::find(list.begin(), list.end(), path) != list.end();
        };
        for (const char* path : {"/run/key", "/cfg/fontconfig", "/a", "/b", "/people/x/.local/share/icons"}) {
            QVERIFY2(has(access.readable, path), path);
        }
        for (const char* path : {"/people/x/.Xauthority", "/people/x", "/cfg", "relative", "", "/", "/run/user/1"}) {
            QVERIFY2(!has(access.readable, path) && !has(access.writable, path), path);
        }
        QVERIFY(has(access.writable, "/run/user/1/dconf"));
    }
    void noVariables_areNoFoldersAtTheRoot() {
        const auto access = filesOfAViewer([](const char*) { return std::string(); });
        for (const std::string& path : access.readable) {
            QVERIFY2(path.find("/.") == std::string::npos && path != "/fontconfig", path.c_str());
        }
        QCOMPARE(opened(access, QStringLiteral("/var"), O_RDONLY | O_DIRECTORY), hasLandlock() ? EACCES : kNotConfined);
    }

private:
    QTemporaryDir m_home;
};

QTEST_GUILESS_MAIN(TestViewerFiles)
#include "tst_viewer_files.moc"
