// SPDX-License-Identifier: Apache-2.0
#include "menu/folder.hpp"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <cstdlib>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead::menu;

namespace {
constexpr const char* kEditor = "org.bulkhead.work.editor.desktop";
constexpr const char* kMail = "org.bulkhead.work.mail.desktop";
const std::vector<App> kApps{{"editor", "Editor", "Utility"}, {"mail", "Mail", "Network"}};
using Names = std::vector<std::string>;
} // namespace

/// The folder of the user's entries, in which others have theirs.
class TestMenuFolder : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_dir;

    [[nodiscard]] QString path(const QString& name) const { return m_dir->filePath(name); }
    [[nodiscard]] Folder folder() const { return Folder(m_dir->path().toStdString()); }
    [[nodiscard]] QStringList names() const {
        return QDir(m_dir->path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::System | QDir::NoDotAndDotDot);
    }
    [[nodiscard]] QByteArray textOf(const QString& name) const {
        QFile file(path(name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("unreadable");
    }
    void put(const QString& name, const QByteArray& text) const {
        QFile file(path(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }
    [[nodiscard]] struct stat about(const QString& name) const {
        struct stat result {};
        ::lstat(path(name).toUtf8(), &result);
        return result;
    }

private Q_SLOTS:
    void init() { m_dir = std::make_unique<QTemporaryDir>(); }

    void itIsMade_whenThereIsSomethingToPutInIt() {
        Folder deep(path("share/applications").toStdString());
        QVERIFY(deep.removeAll("work").has_value());
        QVERIFY(!deep.hasEntries("work"));
        QCOMPARE(names(), QStringList());
        QVERIFY(deep.agree("work", kApps).has_value());
        QVERIFY(QFile::exists(path("share/applications/" + QString(kMail))));
    }

    void newChangedAndUnwanted() {
        const mode_t before = ::umask(0077);
        auto changes = folder().agree("work", kApps);
        ::umask(before);
        QVERIFY(changes.has_value());
        QCOMPARE(changes->present, (Names{"editor", "mail"}));
        QCOMPARE(changes->written, 2U);
        QCOMPARE(names(), (QStringList{kEditor, kMail}));
        QCOMPARE(about(kMail).st_mode & 07777U, 0644U);
        QCOMPARE(textOf(kMail), QByteArray::fromStdString(entryText("work", kApps[1])));
        QVERIFY(folder().hasEntries("work"));

        const auto inode = about(kMail).st_ino;
        changes = folder().agree("work", {{"editor", "Better editor", ""}, kApps[1], {"files", "Files", ""}});
        QCOMPARE(changes->written, 2U);
        QCOMPARE(changes->removed, 0U);
        QVERIFY(textOf(kEditor).contains("Name=Better editor (work)\n"));
        QCOMPARE(about(kMail).st_ino, inode); // what is right is not written again

        changes = folder().agree("work", {kApps[1]});
        QCOMPARE(changes->removed, 2U);
        QCOMPARE(names(), QStringList{kMail});
        changes = folder().removeAll("work");
        QCOMPARE(changes->removed, 1U);
        QCOMPARE(changes->present, Names());
        QCOMPARE(names(), QStringList());
        QVERIFY(!folder().hasEntries("work"));
    }

    void otherDomains_areNotTouched() {
        const std::vector<App> one{{"editor", "Editor", ""}};
        QVERIFY(folder().agree("work", one).has_value());
        QVERIFY(folder().agree("work2", one).has_value());
        QVERIFY(folder().agree("wor", one).has_value());
        QVERIFY(folder().removeAll("work").has_value());
        QCOMPARE(names(), (QStringList{"org.bulkhead.wor.editor.desktop", "org.bulkhead.work2.editor.desktop"}));
    }

    void foreignFiles_stay_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("without our key") << QByteArray("[Desktop Entry]\nName=Mine\n");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("another domain's") << QByteArray("[Desktop Entry]\nX-Bulkhead-Domain=vault\n");
        QTest::newRow("key beyond what is read")
            << QByteArray("[Desktop Entry]\n") + QByteArray(70000, '#') + "\nX-Bulkhead-Domain=work\n";
    }
    void foreignFiles_stay() {
        QFETCH(QByteArray, text);
        put(kMail, text);
        QVERIFY(!folder().hasEntries("work"));
        auto changes = folder().agree("work", kApps);
        QVERIFY(changes.has_value());
        QCOMPARE(changes->blocked, Names{kMail});
        QCOMPARE(changes->present, Names{"editor"});
        QVERIFY(folder().removeAll("work").has_value());
        QCOMPARE(names(), QStringList{kMail});
        QCOMPARE(textOf(kMail), text);
    }

    void filesOfOtherNames_stay() {
        const QByteArray ours = QByteArray::fromStdString(entryText("work", kApps[0]));
        put("my-copy.desktop", ours);
        put("org.bulkhead.work.editor.desktop.bak", ours);
        QVERIFY(folder().removeAll("work").has_value());
        QCOMPARE(names().size(), 2);
    }

    void links_areNotFollowed() {
        const QTemporaryDir elsewhere;
        const QString target = elsewhere.filePath("target");
        {
            QFile file(target);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(entryText("work", {"mail", "Old", ""})));
        }
        QVERIFY(QFile::link(target, path(kMail)));
        QVERIFY(QFile::link(elsewhere.filePath("nothing"), path(kEditor)));
        QVERIFY(QFile::link(target, path("org.bulkhead.work.gone.desktop")));
        // Where the next file is drafted, too.
        QVERIFY(QFile::link(target, path(".org.bulkhead.work.new")));
        QVERIFY(!folder().hasEntries("work"));
        const auto changes = folder().agree("work", {kApps[0], kApps[1], {"files", "Files", ""}});
        QVERIFY(changes.has_value());
        QCOMPARE(changes->blocked, (Names{kEditor, kMail}));
        QCOMPARE(changes->present, Names{"files"});
        QVERIFY(folder().removeAll("work").has_value());
        QCOMPARE(names(), (QStringList{kEditor, "org.bulkhead.work.gone.desktop", kMail}));
        QFile file(target);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QVERIFY(file.readAll().contains("Name=Old (work)"));
        QVERIFY(!QFile::exists(elsewhere.filePath("nothing")));
    }

    void whatIsNoFile_staysAndHoldsNothingUp() {
        QCOMPARE(::mkfifo(path(kMail).toUtf8(), 0600), 0);
        QVERIFY(QDir(m_dir->path()).mkdir(kEditor));
        const auto changes = folder().agree("work", kApps);
        QVERIFY(changes.has_value());
        QCOMPARE(changes->blocked.size(), 2U);
        QCOMPARE(names().size(), 2);
    }

    void remainsOfAKilledProcess_areReplaced() {
        put(".org.bulkhead.work.new", "half");
        QVERIFY(folder().agree("work", kApps).has_value());
        QCOMPARE(names(), (QStringList{kEditor, kMail}));
    }

    void hostileIds_areLeftOut() {
        const auto changes =
            folder().agree("work", {{"../evil", "A", ""}, {"-h", "B", ""}, {"", "C", ""}, {"a/b", "D", ""}, kApps[1]});
        QVERIFY(changes.has_value());
        QCOMPARE(changes->present, Names{"mail"});
        QCOMPARE(names(), QStringList{kMail});
    }

    void tooMany_areRefused() {
        std::vector<App> apps;
        for (std::size_t i = 0; i <= kMostEntries; ++i) {
            apps.push_back({"app" + std::to_string(i), "App", ""});
        }
        QVERIFY(!folder().agree("work", apps).has_value());
        QCOMPARE(names(), QStringList());
        apps.pop_back();
        QCOMPARE(folder().agree("work", apps)->written, kMostEntries);
    }

    void strangeDomains_areRefused() {
        for (const char* domain : {"", "disp-1", "../x", "a.b"}) {
            const auto changes = folder().agree(domain, kApps);
            QVERIFY(!changes.has_value());
            QCOMPARE(changes.error().code, std::string("InvalidArgument"));
            QVERIFY(!folder().hasEntries(domain));
        }
        QCOMPARE(names(), QStringList());
    }

    /// A reader sees one text or the other, never a part of one, and never no file.
    void changes_areWhole() {
        const std::vector<App> kLong{{"mail", std::string(40, 'x'), "Office"}};
        const std::vector<App> kShort{{"mail", "y", ""}};
        QVERIFY(folder().agree("work", kShort).has_value());
        const QByteArray longText = QByteArray::fromStdString(entryText("work", kLong[0]));
        const QByteArray shortText = QByteArray::fromStdString(entryText("work", kShort[0]));
        std::atomic<bool> isDone = false;
        std::thread writer([&] {
            for (int i = 0; i < 300; ++i) {
                (void)folder().agree("work", i % 2 == 0 ? kLong : kShort);
            }
            isDone = true;
        });
        QByteArray strange;
        while (!isDone) {
            const QByteArray text = textOf(kMail);
            if (text != longText && text != shortText) {
                strange = text;
            }
        }
        writer.join();
        QCOMPARE(strange, QByteArray());
    }

    void atATime_theyTakeTurns() {
        std::vector<std::thread> threads;
        std::atomic<int> failures = 0;
        for (int number = 0; number < 3; ++number) {
            threads.emplace_back([&, number] {
                for (int i = 0; i < 20; ++i) {
                    failures += folder().agree("work", {{"mail", "Mail" + std::to_string(number), ""}}) ? 0 : 1;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        QCOMPARE(failures.load(), 0);
        QCOMPARE(names(), QStringList{kMail});
    }

    void aFolderThatIsNone_isAFailureWithItsPath() {
        put("file", "");
        for (const char* name : {"file", "file/below"}) {
            const auto changes = Folder(path(name).toStdString()).agree("work", kApps);
            QVERIFY(!changes.has_value());
            QVERIFY2(changes.error().message.find(path(name).toStdString()) != std::string::npos,
                     changes.error().message.c_str());
        }
        QVERIFY(!Folder({}).agree("work", kApps).has_value());
    }

    void userFolder_isThatOfTheSpecification() {
        const QByteArray home = qgetenv("HOME");
        qputenv("HOME", "/srv/somebody");
        qputenv("XDG_DATA_HOME", "/data");
        QCOMPARE(userFolder().string(), std::string("/data/applications"));
        for (const char* ignored : {"", "relative"}) {
            qputenv("XDG_DATA_HOME", ignored);
            QCOMPARE(userFolder().string(), std::string("/srv/somebody/.local/share/applications"));
        }
        qunsetenv("XDG_DATA_HOME");
        qunsetenv("HOME");
        QVERIFY(userFolder().empty());
        qputenv("HOME", home);
    }
};

QTEST_APPLESS_MAIN(TestMenuFolder)
#include "tst_menu_folder.moc"
