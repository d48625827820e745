// SPDX-License-Identifier: Apache-2.0
#include "menu/entry.hpp"

#include <QFile>
#include <QFileInfo>
#include <QHash>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <string>

using namespace bulkhead::menu;

namespace {

QStringList linesOf(const std::string& text) {
    return QString::fromStdString(text).split('\n', Qt::SkipEmptyParts);
}

QChar next(const QString& text, qsizetype& at) {
    return ++at < text.size() ? text[at] : QChar('?');
}

/// What a reader of the file makes of a value of type string.
QString unescaped(const QString& value) {
    QString out;
    for (qsizetype i = 0; i < value.size(); ++i) {
        if (value[i] != '\\') {
            out += value[i];
            continue;
        }
        static const QHash<QChar, QChar> kMeanings{{'s', ' '}, {'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}};
        out += kMeanings.value(next(value, i), QChar('?'));
    }
    return out;
}

QString valueOf(const std::string& text, const QString& key) {
    for (const QString& line : linesOf(text)) {
        if (line.startsWith(key + '=')) {
            return unescaped(line.mid(key.size() + 1));
        }
    }
    return {};
}

/// How the specification has an Exec value taken apart; a field code shows as <%X>.
QStringList arguments(const QString& exec) {
    QStringList out;
    QString argument;
    bool isQuoted = false;
    bool hasBegun = false;
    for (qsizetype i = 0; i < exec.size(); ++i) {
        const QChar c = exec[i];
        if (c == '"') {
            isQuoted = !isQuoted;
            hasBegun = true;
        } else if (c == ' ' && !isQuoted) {
            if (hasBegun) {
                out.append(argument);
            }
            argument.clear();
            hasBegun = false;
        } else {
            hasBegun = true;
            if (c == '\\' && isQuoted) {
                argument += next(exec, i);
            } else if (c == '%') {
                const QChar code = next(exec, i);
                argument += code == '%' ? QString("%") : QString("<%") + code + '>';
            } else {
                argument += c;
            }
        }
    }
    return hasBegun ? out << argument : out;
}

} // namespace

/// What a hostile guest can get into an entry: nothing but letters.
class TestMenuEntry : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theText_isTheWholeOfIt() {
        const std::string text = entryText("work", {"org.xfce.mousepad", "Mousepad", "Utility;TextEditor;GTK;"});
        QCOMPARE(QString::fromStdString(text), QString("[Desktop Entry]\n"
                                                       "Type=Application\n"
                                                       "Name=Mousepad (work)\n"
                                                       "Comment=Opens in the domain work\n"
                                                       "Exec=bulkhead domain launch work org.xfce.mousepad\n"
                                                       "TryExec=bulkhead\n"
                                                       "Icon=org.bulkhead.Tray\n"
                                                       "Terminal=false\n"
                                                       "Categories=Utility;X-Bulkhead;\n"
                                                       "StartupWMClass=bulkhead-work\n"
                                                       "X-Bulkhead-Domain=work\n"
                                                       "X-Bulkhead-App=org.xfce.mousepad\n"));
        QCOMPARE(QString::fromStdString(fileName("work", "org.xfce.mousepad")),
                 QString("org.bulkhead.work.org.xfce.mousepad.desktop"));
    }

    void names_data() {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<QString>("shown");
        QTest::newRow("plain") << QByteArray("Mousepad") << "Mousepad (work)";
        QTest::newRow("letters of others") << QByteArray("Éditeur 文字") << "Éditeur 文字 (work)";
        QTest::newRow("newline") << QByteArray("A\nExec=rm -rf ~") << "A\\x0aExec=rm -rf ~ (work)";
        QTest::newRow("return and tab") << QByteArray("A\r\tB") << "A\\x0d\\x09B (work)";
        QTest::newRow("new group") << QByteArray("[Desktop Action x]\n") << "[Desktop Action x]\\x0a (work)";
        QTest::newRow("field code") << QByteArray("A %U %%") << "A %U %% (work)";
        QTest::newRow("quotes") << QByteArray("\"A\" 'B' `C` $(D)") << "\"A\" 'B' `C` $(D) (work)";
        QTest::newRow("backslashes") << QByteArray("A\\nB\\") << "A\\nB\\ (work)";
        QTest::newRow("semicolons") << QByteArray("A;B;") << "A;B; (work)";
        QTest::newRow("override of direction") << QByteArray("A\u202Efdp") << "A\\u{202e}fdp (work)";
        QTest::newRow("isolates") << QByteArray("\u2067A\u2069") << "\\u{2067}A\\u{2069} (work)";
        QTest::newRow("invisible") << QByteArray("\u200BA\uFEFF") << "\\u{200b}A\\u{feff} (work)";
        QTest::newRow("no UTF-8") << QByteArray("A\xff\xc3") << "A\\xff\\xc3 (work)";
        QTest::newRow("spaces") << QByteArray("  A \u3000\u00A0  B   ") << "A B (work)";
        QTest::newRow("nothing") << QByteArray() << "an.app (work)";
        QTest::newRow("only spaces") << QByteArray(" \u3000") << "an.app (work)";
        QTest::newRow("another domain's") << QByteArray("Mail (vault)") << "Mail (vault) (work)";
        QTest::newRow("long") << QByteArray("é").repeated(3000) << QString("é").repeated(47) + "… (work)";
        QTest::newRow("zero byte") << QByteArray("A\0B", 3) << "A\\x00B (work)";
    }
    void names() {
        QFETCH(QByteArray, name);
        const std::string text = entryText("work", {"an.app", name.toStdString(), ""});
        QTEST(valueOf(text, "Name"), "shown");
        QCOMPARE(linesOf(text).size(), 12);
        QVERIFY(QString::fromStdString(text).toStdString() == text); // valid UTF-8
        QCOMPARE(linesOf(text).filter(QRegularExpression("^Exec=")),
                 QStringList{"Exec=bulkhead domain launch work an.app"});
        QCOMPARE(ownerOf(text), std::string("work"));
    }

    void exec_data() {
        QTest::addColumn<QString>("argument");
        for (const char* argument : {"plain", "", "two words", "%U", "100%", "%%f", "a\"b", "a\\b", "\\", "$HOME",
                                     "`id`", "a;b", "'", "~", "a\tb", "a\nb", "$(id)|&><*?#"}) {
            QTest::newRow(argument) << QString(argument);
        }
    }
    void exec() {
        QFETCH(QString, argument);
        const std::string value = stringValue(execArgument(argument.toStdString()) + " next");
        QVERIFY(value.find('\n') == std::string::npos);
        const QStringList expected{argument, "next"};
        QCOMPARE(arguments(unescaped(QString::fromStdString(value))), expected);
    }

    void stringValue_keepsTheFirstSpace() { QCOMPARE(stringValue("  a b"), std::string("\\s a b")); }

    void categories_data() {
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("kept");
        QTest::newRow("none") << ""
                              << "X-Bulkhead;";
        QTest::newRow("two") << "WebBrowser;Network;Office;GTK"
                             << "Network;Office;X-Bulkhead;";
        QTest::newRow("twice") << "Office;Office"
                               << "Office;X-Bulkhead;";
        QTest::newRow("implied") << "Video"
                                 << "AudioVideo;Video;X-Bulkhead;";
        QTest::newRow("nearly") << "office; Office;Office\\;Games;X-Evil"
                                << "X-Bulkhead;";
        QTest::newRow("hostile") << "Office\nExec=evil;Game"
                                 << "Game;X-Bulkhead;";
    }
    void categories() {
        QFETCH(QString, given);
        QTEST(QString::fromStdString(categoriesValue(given.toStdString())), "kept");
    }

    void ids_data() {
        QTest::addColumn<QString>("id");
        QTest::addColumn<bool>("isId");
        QTest::newRow("usual") << "org.gnome.Evince" << true;
        QTest::newRow("longest") << QString(128, 'a') << true;
        QTest::newRow("too long") << QString(129, 'a') << false;
        QTest::newRow("empty") << "" << false;
        QTest::newRow("folder") << "../evil" << false;
        QTest::newRow("parent") << ".." << false;
        QTest::newRow("option") << "--help" << false;
        QTest::newRow("space") << "a b" << false;
        QTest::newRow("field code") << "a%U" << false;
        QTest::newRow("newline") << "a\n" << false;
        QTest::newRow("not ASCII") << "é" << false;
    }
    void ids() {
        QFETCH(QString, id);
        QTEST(isAppId(id.toStdString()), "isId");
    }

    void domains() {
        QVERIFY(isExportableDomain("work"));
        for (const char* domain : {"", "disp-1", "Work", "a.b", "../a", "a\n", "host"}) {
            QVERIFY2(!isExportableDomain(domain), domain);
        }
    }

    void owner_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("owner");
        QTest::newRow("ours") << "# ours\n[Desktop Entry]\nName=a\nX-Bulkhead-Domain=work\n"
                              << "work";
        QTest::newRow("no key") << "[Desktop Entry]\nName=a\n"
                                << "";
        QTest::newRow("before the group") << "X-Bulkhead-Domain=work\n[Desktop Entry]\n"
                                          << "";
        QTest::newRow("in another group") << "[Desktop Entry]\n[Other]\nX-Bulkhead-Domain=work\n"
                                          << "";
        QTest::newRow("in a value") << "[Desktop Entry]\nName=X-Bulkhead-Domain=work\n"
                                    << "";
        QTest::newRow("empty") << ""
                               << "";
    }
    void owner() {
        QFETCH(QString, text);
        QTEST(QString::fromStdString(ownerOf(text.toStdString())), "owner");
    }

    void theValidator_isContent() {
        QVERIFY2(QFileInfo::exists(BULKHEAD_ENTRY_VALIDATOR), "desktop-file-validate is not installed");
        const QTemporaryDir folder;
        QStringList files;
        int number = 0;
        for (const char* name : {"Plain", "A\nB=C", "%U %f %%", "\"q\" 'q' `q` $q", "back\\slash\\n\\", "a;b;",
                                 "\u202Ebidi", "bad\xff", "  "}) {
            for (const char* given : {"", "Office;", "Video;Game", "Office;Network;Education;Evil"}) {
                files << folder.filePath(QString("org.bulkhead.work.a%1.desktop").arg(number++));
                QFile file(files.last());
                QVERIFY(file.open(QIODevice::WriteOnly));
                file.write(QByteArray::fromStdString(entryText("work", {"a-b_c.D9", name, given})));
            }
        }
        QProcess validator;
        validator.setProcessChannelMode(QProcess::MergedChannels);
        validator.start(BULKHEAD_ENTRY_VALIDATOR, QStringList("--no-hints") + files);
        QVERIFY(validator.waitForFinished());
        const QByteArray said = validator.readAll();
        QVERIFY2(said.isEmpty() && validator.exitCode() == 0, said);
    }
};

QTEST_APPLESS_MAIN(TestMenuEntry)
#include "tst_menu_entry.moc"
