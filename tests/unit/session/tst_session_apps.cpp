// SPDX-License-Identifier: Apache-2.0
// .desktop files of any kind, lists of apps, what is started how, and settings.
#include "base/escaping.hpp"
#include "protocol/session_limits.hpp"
#include "session/app_list.hpp"
#include "session/desktop_file.hpp"
#include "session/launcher.hpp"
#include "session/settings.hpp"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::session;

namespace {

const QByteArray kEditor = "[Desktop Entry]\nType=Application\nName=Editor\nExec=editor %F\n";

std::optional<DesktopEntry> parse(const QByteArray& text, const std::vector<std::string>& desktops = {}) {
    return parseDesktopFile(std::string_view(text.constData(), static_cast<std::size_t>(text.size())), desktops);
}

} // namespace

class TestSessionApps : public QObject {
    Q_OBJECT

private slots:
    void readsAnEntry() {
        const auto entry = parse("# a comment\n\n[Desktop Entry]\r\nType = Application\r\nName=Text\\sEditor\n"
                                 "Name[de]=Texteditor\nComment=Edits\\ntext\nCategories=Utility;TextEditor;\n"
                                 "Exec=editor %F\nTryExec=editor\nTerminal=false\n");
        QVERIFY(entry);
        QCOMPARE(entry->name, std::string("Text Editor"));
        QCOMPARE(entry->comment, std::string("Edits text")); // a line break has no place in a list
        QCOMPARE(entry->categories, std::string("Utility;TextEditor"));
        QCOMPARE(entry->tryExec, std::string("editor"));
        QVERIFY(!entry->isHidden);
    }

    void judges_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("verdict"); // shown, hidden, none
        QTest::newRow("plain") << kEditor << "shown";
        QTest::newRow("not to be displayed") << kEditor + "NoDisplay=true\n"
                                             << "hidden";
        QTest::newRow("hidden") << kEditor + "Hidden=true\n"
                                << "hidden";
        QTest::newRow("hidden and nothing else")
            << QByteArray("[Desktop Entry]\nType=Application\nHidden=true\n") << "hidden";
        QTest::newRow("only for others") << kEditor + "OnlyShowIn=KDE;\n"
                                         << "hidden";
        QTest::newRow("for us too") << kEditor + "OnlyShowIn=KDE;Ours;\n"
                                    << "shown";
        QTest::newRow("not for us") << kEditor + "NotShowIn=Ours;\n"
                                    << "hidden";
        QTest::newRow("a link") << QByteArray(kEditor).replace("Application", "Link") << "none";
        QTest::newRow("no type") << QByteArray(kEditor).replace("Type", "Tpye") << "none";
        QTest::newRow("no name") << QByteArray(kEditor).replace("Name=Editor", "Name=") << "none";
        QTest::newRow("blank name") << QByteArray(kEditor).replace("Name=Editor", "Name=\\s\\t\\n") << "none";
        QTest::newRow("nothing to run") << QByteArray(kEditor).replace("Exec", "X-Exec") << "none";
        QTest::newRow("run by the bus") << QByteArray(kEditor).replace("Exec=editor %F", "DBusActivatable=true")
                                        << "shown";
        QTest::newRow("actions do not count")
            << kEditor + "[Desktop Action new]\nNoDisplay=true\nName=Other\nType=Link\n"
            << "shown";
        QTest::newRow("only an action") << QByteArray(kEditor).replace("Desktop Entry", "Desktop Action x") << "none";
        QTest::newRow("an action first") << "[Desktop Action x]\nName=No\nHidden=true\n" + kEditor << "shown";
        QTest::newRow("a second group") << kEditor + "[Desktop Entry]\nHidden=true\n"
                                        << "shown";
        QTest::newRow("twice the same key") << kEditor + "Name=Other\n"
                                            << "shown";
        QTest::newRow("empty") << QByteArray() << "none";
        QTest::newRow("binary") << QByteArray(4096, '\xFF') << "none";
        QTest::newRow("zeros") << kEditor + QByteArray(4096, '\0') << "shown";
        QTest::newRow("one long line") << kEditor + "Comment=" + QByteArray(400'000, 'x') << "shown";
        QTest::newRow("ten megabytes") << kEditor + QByteArray(10'000'000, '\n') << "none";
        QTest::newRow("no line end") << kEditor + "Hidden=true"
                                     << "hidden";
        QTest::newRow("open group") << QByteArray("[Desktop Entry\nType=Application\nName=a\nExec=b\n") << "none";
    }
    void judges() {
        QFETCH(QByteArray, text);
        QFETCH(QString, verdict);
        const auto entry = parse(text, {"Ours"});
        QCOMPARE(entry ? (entry->isHidden ? "hidden" : "shown") : "none", verdict);
        if (entry && !entry->isHidden) {
            QCOMPARE(entry->name, std::string("Editor"));
        }
    }

    void textsAreBounded() {
        const auto entry = parse("[Desktop Entry]\nType=Application\nExec=x\nName=" + QByteArray("ä").repeated(5000) +
                                 "\nComment=\xFF\x1B" + QByteArray(5000, 'c') + "\nCategories=" +
                                 QByteArray("Category;").repeated(500) + "\nTryExec=" + QByteArray(9000, 'p') + "\n");
        QVERIFY(entry);
        QCOMPARE(entry->name.size(), std::size_t{256});
        QCOMPARE(entry->comment.size(), std::size_t{512});
        QVERIFY(entry->categories.size() <= 256 && entry->categories.ends_with("Category"));
        QVERIFY(entry->tryExec.empty());
        QVERIFY(isValidUtf8(entry->name) && isValidUtf8(entry->comment));
    }

    void anyBytesAreFine() {
        std::mt19937 random(3);
        const QByteArray alphabet = "[]=\n\r\\;# \xFF\xC3\xA4"
                                    "ab[Desktop Entry]\nType=Application\nName=x\nExec=y\n";
        std::uniform_int_distribution<qsizetype> pick(0, alphabet.size() - 1);
        for (int i = 0; i < 3000; ++i) {
            QByteArray text = i % 2 == 0 ? kEditor : QByteArray();
            for (int j = 0; j < 200; ++j) {
                text += alphabet[pick(random)];
            }
            if (const auto entry = parse(text)) {
                QVERIFY(isValidUtf8(entry->name) && isValidUtf8(entry->comment) && isValidUtf8(entry->categories));
            }
        }
    }

    void listsFolders() {
        QTemporaryDir folder;
        const auto write = [&](const QString& path, const QByteArray& text) {
            QDir().mkpath(QFileInfo(folder.filePath(path)).path());
            QFile file(folder.filePath(path));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text);
        };
        write("user/mine.desktop", QByteArray(kEditor).replace("Editor", "Mine"));
        write("user/both.desktop", QByteArray(kEditor).replace("Editor", "The user's"));
        write("user/gone.desktop", "[Desktop Entry]\nType=Application\nHidden=true\n");
        write("system/both.desktop", QByteArray(kEditor).replace("Editor", "The system's"));
        write("system/gone.desktop", kEditor);
        write("system/zz.desktop", kEditor + "TryExec=tool\n");
        write("system/needs.desktop", kEditor + "TryExec=not-there\n");
        write("system/needs2.desktop", kEditor + "TryExec=/not/there\n");
        write("system/bad name.desktop", kEditor);
        write("system/" + QString(140, 'l') + ".desktop", kEditor);
        write("system/.dot.desktop", kEditor);
        write("system/readme.txt", kEditor);
        write("system/huge.desktop", kEditor + QByteArray(10'000'000, '\n'));
        QVERIFY(QDir(folder.path()).mkpath("system/folder.desktop"));
        QCOMPARE(::mkfifo(folder.filePath("system/pipe.desktop").toLocal8Bit().constData(), 0600), 0);
        QVERIFY(QFile::link(folder.filePath("user/mine.desktop"), folder.filePath("system/linked.desktop")));
        QVERIFY(QFile::link("/nowhere", folder.filePath("system/dangling.desktop")));
        write("bin/tool", "x");
        QVERIFY(QFile(folder.filePath("bin/tool")).setPermissions(QFile::ReadOwner | QFile::ExeOwner));

        AppPlaces places;
        places.folders = {folder.filePath("user").toStdString(), folder.filePath("absent").toStdString(),
                          folder.filePath("system").toStdString()};
        places.programs = {folder.filePath("bin").toStdString()};
        QStringList found;
        for (const AppEntry& app : listApps(places)) {
            found << QString::fromStdString(app.id + "=" + app.entry.name);
        }
        QCOMPARE(found, (QStringList{"both=The user's", "linked=Mine", "mine=Mine", "zz=Editor"}));

        QCOMPARE(findApp(places, "both"), std::optional(folder.filePath("user/both.desktop").toStdString()));
        QCOMPARE(findApp(places, "zz"), std::optional(folder.filePath("system/zz.desktop").toStdString()));
        for (const char* const id : {"nope", "../system/zz", "bad name", "", ".dot", "huge", "pipe"}) {
            QVERIFY2(!findApp(places, id), id);
        }
    }

    void knowsIds() {
        QVERIFY(protocol::isAppId("org.mozilla.Firefox_2-x"));
        QVERIFY(protocol::isAppId(std::string(128, 'a')));
        QVERIFY(!protocol::isAppId(std::string(129, 'a')));
        QVERIFY(!protocol::isAppId("a/b"));
        QVERIFY(!protocol::isAppId("a b"));
        QVERIFY(!protocol::isAppId(std::string_view("a\0b", 3)));
    }

    void startsPrograms() {
        QTemporaryDir folder;
        const std::string out = folder.filePath("out").toStdString();
        // A descriptor that would be inherited, and signals that we do not care for.
        const int leak = ::open("/dev/null", O_RDONLY);
        QVERIFY(leak > STDERR_FILENO);
        std::signal(SIGPIPE, SIG_IGN);
        const std::string script = "{ ls -l /proc/self/fd | sed 's/.* //' | grep -v '^[0-9]*$' | grep -v /proc/ ; "
                                   "ps -o sid= -p $$; echo $$; grep SigIgn /proc/self/status; } > " +
                                   out + ".new && mv " + out + ".new " + out;
        QCOMPARE(startProgram({"sh", "-c", script}), 0);
        QTRY_VERIFY(QFile::exists(QString::fromStdString(out)));
        ::close(leak);
        std::ifstream file(out);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) {
            lines.push_back(line);
        }
        QVERIFY(lines.size() >= 3);
        QCOMPARE(lines.back(), std::string("SigIgn:\t0000000000000000"));
        const auto isNull = [](const std::string& line) { return line == "/dev/null"; };
        QCOMPARE(std::count_if(lines.begin(), lines.end(), isNull), 1); // standard input, and not the other one
        QCOMPARE(std::stoi(lines[lines.size() - 3]), std::stoi(lines[lines.size() - 2])); // leads its session
        QCOMPARE(startProgram({"/not/there"}), ENOENT);
        QCOMPARE(startProgram({"/etc/passwd"}), EACCES);
        QCOMPARE(startProgram({}), EINVAL);
    }

    void keyboards_data() {
        QTest::addColumn<QStringList>("fields");
        QTest::addColumn<QStringList>("command");
        QTest::newRow("nothing") << QStringList{"", "", "", ""} << QStringList{};
        QTest::newRow("a layout") << QStringList{"", "de", "", ""}
                                  << QStringList{"setxkbmap", "-layout", "de", "-variant", ""};
        QTest::newRow("all") << QStringList{"pc105", "us,de", ",nodeadkeys", "grp:alt_shift_toggle,compose:ralt"}
                             << QStringList{"setxkbmap",
                                            "-model",
                                            "pc105",
                                            "-layout",
                                            "us,de",
                                            "-variant",
                                            ",nodeadkeys",
                                            "-option",
                                            "",
                                            "-option",
                                            "grp:alt_shift_toggle,compose:ralt"};
        QTest::newRow("an option of ours") << QStringList{"", "-print", "", ""} << QStringList{"refused"};
        QTest::newRow("a path") << QStringList{"", "../../x", "", ""} << QStringList{"refused"};
        QTest::newRow("a command") << QStringList{"", "de;reboot", "", ""} << QStringList{"refused"};
        QTest::newRow("too long") << QStringList{"", QString(300, 'a'), "", ""} << QStringList{"refused"};
    }
    void keyboards() {
        QFETCH(QStringList, fields);
        QFETCH(QStringList, command);
        Settings settings;
        settings.set_keyboard_model(fields[0].toStdString());
        settings.set_keyboard_layout(fields[1].toStdString());
        settings.set_keyboard_variant(fields[2].toStdString());
        settings.set_keyboard_options(fields[3].toStdString());
        QStringList got;
        if (const auto words = keyboardCommand(settings)) {
            for (const std::string& word : *words) {
                got << QString::fromStdString(word);
            }
        } else {
            got << "refused";
        }
        QCOMPARE(got, command);
    }

    void locales_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("used");
        QTest::newRow("always there") << "C.UTF-8"
                                      << "C.UTF-8";
        QTest::newRow("not here") << "xx_XX.UTF-8"
                                  << "C.UTF-8";
        QTest::newRow("none") << ""
                              << "refused";
        QTest::newRow("a path") << "../../tmp/x"
                                << "refused";
        QTest::newRow("two lines") << "C\nLD_PRELOAD=x"
                                   << "refused";
        QTest::newRow("too long") << QString(65, 'a') << "refused";
    }
    void locales() {
        QFETCH(QString, name);
        QTEST(QString::fromStdString(localeOf(name.toStdString()).value_or("refused")), "used");
    }

    void dpiReplacesDpi() {
        QCOMPARE(withDpi("", 96), std::string("Xft.dpi:\t96\n"));
        QCOMPARE(withDpi("a: 1\nXft.dpi: 80\nXft.hinting: 1", 120),
                 std::string("a: 1\nXft.hinting: 1\nXft.dpi:\t120\n"));
    }
};

QTEST_GUILESS_MAIN(TestSessionApps)
#include "tst_session_apps.moc"
