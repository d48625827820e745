// SPDX-License-Identifier: Apache-2.0
// What two snapshots of real guests differ in, as a third guest sees it; and disks that were made to harm it.
#include "e2e_support.hpp"

#include <QMap>
#include <QSet>
#include <QTemporaryDir>

#include <fcntl.h>
#include <unistd.h>

using namespace bulkhead::e2e;

namespace {

/// "failed" and why, where the command did not succeed: no answer that is expected.
QByteArray inDomain(const QString& command, const QByteArray& input = {}) {
    const auto outcome = cli({"run", "--domain", "one", "--user", "root", "--", "sh", "-c", command}, input);
    return outcome.status == 0 ? outcome.output.trimmed() : "failed: " + outcome.text();
}

QString snapshot(const QStringList& more = {"--disk"}) {
    const auto created = cli(QStringList{"snapshot", "create", "one", "--json"} + more);
    return QJsonDocument::fromJson(created.output).object().value("id").toString();
}

/// The difference as --json says it; empty when the command failed.
QJsonObject difference(const QString& a, const QString& b, const QStringList& more = {}) {
    const auto said = run(QStringList{"bulkhead", "snapshot", "diff", "one", a, b, "--json"} + more, {}, 600'000);
    if (said.status != 0) {
        qInfo().noquote() << said.text();
    }
    return said.status == 0 ? QJsonDocument::fromJson(said.output).object() : QJsonObject();
}

/// Path to "added", "removed", or "changed" and what of it.
QMap<QString, QString> files(const QJsonObject& difference, const QString& disk) {
    QMap<QString, QString> found;
    for (const auto& row : difference.value("files").toArray()) {
        const auto file = row.toObject();
        if (file.value("disk").toString() != disk) {
            continue;
        }
        QStringList words{file.value("change").toString()};
        for (const auto& word : file.value("what").toArray()) {
            words << word.toString();
        }
        found.insert(file.value("path").toString(), words.join(' '));
    }
    return found;
}

QStringList noteKinds(const QJsonObject& difference) {
    QStringList kinds;
    for (const auto& note : difference.value("notes").toArray()) {
        kinds << note.toObject().value("kind").toString();
    }
    kinds.removeDuplicates();
    kinds.sort();
    return kinds;
}

/// What the guest itself sees in its user's home: path to type, mode, owner, and content or target. Names have no line
/// breaks here.
QMap<QString, QByteArray> homeAsTheGuestSeesIt() {
    const auto said = inDomain(
        R"(cd /home && find . -mindepth 1 -name lost+found -prune -o -mindepth 1 -printf '%P\t%y %m %U:%G %l\t' \( -type f -exec sha256sum {} \; -o -printf '\n' \) | sed 's/\t\\*\([0-9a-f]\{64\}\) .*/\t\1/')");
    QMap<QString, QByteArray> found;
    for (const auto& line : said.split('\n')) {
        const auto parts = line.split('\t');
        found.insert("/home/" + QString::fromUtf8(parts.value(0)), parts.value(1) + " " + parts.value(2));
    }
    return found;
}

/// What changed between two of them, as files() has it but for the words.
QMap<QString, QString> compared(const QMap<QString, QByteArray>& before, const QMap<QString, QByteArray>& after) {
    QMap<QString, QString> found;
    for (auto at = before.begin(); at != before.end(); ++at) {
        if (!after.contains(at.key())) {
            found.insert(at.key(), "removed");
        } else if (after.value(at.key()) != at.value()) {
            found.insert(at.key(), "changed");
        }
    }
    for (auto at = after.begin(); at != after.end(); ++at) {
        if (!before.contains(at.key())) {
            found.insert(at.key(), "added");
        }
    }
    return found;
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class TestE2eDiff : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    QString m_before;

    [[nodiscard]] QString file(const QString& name) const { return m_folder.filePath(name); }
    void debugfs(const QString& commands) {
        QFile script(file("commands"));
        QVERIFY(script.open(QIODevice::WriteOnly | QIODevice::Truncate));
        script.write(commands.toLatin1());
        script.close();
        const auto done = run({"debugfs", "-w", "-f", file("commands"), file("disk.img")});
        COMPARE_STATUS(done, 0);
        QVERIFY2(done.error.trimmed().count('\n') == 0, done.text()); // its version, and no complaint
    }
    /// The guest, which is root in itself, makes this its home disk, behind the back of its own file system.
    QString snapshotOfThatDisk() {
        const auto written = inDomain("umount -l /home; dd of=/dev/vdb bs=1M conv=fsync iflag=fullblock 2>&1",
                                      contentOf(file("disk.img")));
        return written.startsWith("failed") ? QString() : snapshot({});
    }

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        QCOMPARE(
            inDomain("cd /home/user && echo same > same && echo before > content && echo gone > gone && "
                     "echo mode > mode && echo owner > owner && ln -s same link && mkdir -p folder/deep emptied && "
                     "echo deep > folder/deep/file && echo x > emptied/x && echo type > type && "
                     "chown -R user:user . && chmod 600 mode && sync"),
            QByteArray());
        m_before = snapshot();
        QVERIFY(!m_before.isEmpty());
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void home_matchesWhatTheGuestSees() {
        const auto before = homeAsTheGuestSeesIt();
        QVERIFY2(before.size() > 8, qPrintable(QString::number(before.size())));
        QCOMPARE(inDomain("cd /home/user && echo after!! > content && rm gone && chmod 644 mode && chown root owner && "
                          "ln -sf other link && chown -h user:user link && rm -r emptied && rm type && mkdir type && "
                          "mkdir -p new/tree && "
                          "echo n > new/tree/leaf && touch same && echo 'ünï' > 'ünïcødé name' && mkfifo pipe && sync"),
                 QByteArray());
        const auto after = homeAsTheGuestSeesIt();
        auto said = difference(m_before, "now");
        QVERIFY(said.value("complete").toBool());
        auto found = files(said, "home");
        QCOMPARE(found.value("/home/user/content"), QString("changed content"));
        QCOMPARE(found.value("/home/user/mode"), QString("changed mode"));
        QCOMPARE(found.value("/home/user/owner"), QString("changed owner"));
        QCOMPARE(found.value("/home/user/link"), QString("changed target"));
        QVERIFY(found.value("/home/user/type").contains("type"));
        for (QString& change : found) {
            change = change.section(' ', 0, 0);
        }
        QCOMPARE(found, compared(before, after));
        // Reading everything finds nothing else.
        auto deep = files(difference(m_before, "now", {"--deep"}), "home");
        for (QString& change : deep) {
            change = change.section(' ', 0, 0);
        }
        QCOMPARE(deep, found);
    }

    void package_isListedWhole() {
        const auto before = snapshot();
        QDir root(file("package"));
        QVERIFY(root.mkpath("DEBIAN") && root.mkpath("usr/share/small/deep") && root.mkpath("usr/bin"));
        const auto put = [&](const QString& name, const QByteArray& content) {
            QFile target(root.filePath(name));
            QVERIFY(target.open(QIODevice::WriteOnly));
            target.write(content);
        };
        put("DEBIAN/control", "Package: small\nVersion: 1.2-3\nArchitecture: all\nMaintainer: A <a@example.org>\n"
                              "Description: small\n");
        put("usr/bin/small", "#!/bin/sh\necho small\n");
        put("usr/share/small/deep/data", QByteArray(100'000, 'd'));
        COMPARE_STATUS(run({"dpkg-deb", "--root-owner-group", "--build", root.path(), file("small.deb")}), 0);
        const auto installed =
            inDomain("cat > /var/cache/small.deb && cd /var/cache && "
                     "apt-get install -qq -y ./small.deb </dev/null >/var/log/small 2>&1 && sh /usr/bin/small",
                     contentOf(file("small.deb")));
        QCOMPARE(installed, QByteArray("small"));
        const auto said = difference(before, snapshot());
        QVERIFY(said.value("complete").toBool());
        const auto packages = said.value("packages").toArray();
        QCOMPARE(packages.size(), 1);
        QCOMPARE(packages.first().toObject().value("name").toString(), QString("small"));
        QVERIFY(packages.first().toObject().value("before").isNull());
        QCOMPARE(packages.first().toObject().value("after").toString(), QString("1.2-3"));
        auto found = files(said, "system");
        for (const char* const name :
             {"/usr/bin/small", "/usr/share/small", "/usr/share/small/deep", "/usr/share/small/deep/data"}) {
            QVERIFY2(found.take(name) == "added", name);
        }
        for (const auto& path : found.keys()) {
            const bool isBooks = path.startsWith("/var/lib/dpkg") || path.startsWith("/var/cache") ||
                                 path.startsWith("/var/log") || path == "/etc/ld.so.cache" ||
                                 path.startsWith("/var/lib/apt");
            QVERIFY2(isBooks, qPrintable(path + " " + found.value(path)));
        }
        // People read it, too; and nothing of the guest that looked in is left.
        const auto text = cli({"snapshot", "diff", "one", before, "now"});
        COMPARE_STATUS(text, 0);
        QVERIFY2(text.output.contains("small") && text.output.contains("/usr/bin/small"), text.text());
        QTRY_VERIFY_WITH_TIMEOUT(!cli({"domain", "ls"}).output.contains("disp-"), 30'000);
    }

    void hostileDisk_harmsNothing() {
        QDir root(file("tree"));
        QVERIFY(root.mkpath("user/a/b"));
        // As bytes: a name that is no UTF-8 has no QString.
        for (const QByteArray name : {"esc\x1b[2Jape", "line\nbreak", "no\xff\xfeutf"}) {
            const QByteArray path = QFile::encodeName(root.path()) + "/user/" + name;
            const int made = ::open(path.constData(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            QVERIFY2(made >= 0, path);
            ::close(made);
        }
        QVERIFY(QFile::link("/etc/shadow", root.filePath("user/shadow")));
        QFile five(file("five"));
        QVERIFY(five.open(QIODevice::WriteOnly) && five.write("five\n") == 5);
        five.close();
        COMPARE_STATUS(run({"mke2fs", "-q", "-t", "ext4", "-d", root.path(), file("disk.img"), "64M"}), 0);
        // A folder that contains itself, the host's first disk as a device, a file whose blocks are nowhere, a folder
        // that is not one.
        // (Word 5 of an inode's blocks is where its first extent lies.)
        COMPARE_STATUS(run({"rm", "-r", root.path()}), 0); // Qt cannot: one name is no text
        debugfs("ln user/a user/a/b/loop\ncd user\nmknod disk b 8 0\nwrite " + file("five") +
                " same\nsif same block[5] 0x7ffffff0\nwrite " + file("five") +
                " notafolder\nsif notafolder mode 040755\n");
        const auto hostile = snapshotOfThatDisk();
        QVERIFY(!hostile.isEmpty());
        const auto said = difference(m_before, hostile, {"--deep"});
        QVERIFY(said.value("complete").toBool());
        const auto found = files(said, "home");
        QCOMPARE(found.value("/home/user/disk"), QString("added"));
        QCOMPARE(found.value("/home/user/shadow"), QString("added"));
        QCOMPARE(found.value("/home/user/gone"), QString("removed"));
        QVERIFY2(noteKinds(said).contains("seen-before"), qPrintable(noteKinds(said).join(' ')));
        bool isUnreadableSaid = false;
        for (const auto& note : said.value("notes").toArray()) {
            isUnreadableSaid = isUnreadableSaid || (note.toObject().value("kind").toString() == "unreadable" &&
                                                    note.toObject().value("path").toString() == "/home/user/same");
        }
        QVERIFY(isUnreadableSaid);
        for (const auto& row : said.value("files").toArray()) {
            const auto entry = row.toObject();
            if (entry.value("path").toString() == "/home/user/shadow") {
                // The link, not what it would be on this host.
                QCOMPARE(entry.value("after").toObject().value("target").toString(), QString("/etc/shadow"));
            }
        }
        const auto text = cli({"snapshot", "diff", "one", m_before, hostile});
        COMPARE_STATUS(text, 0);
        QVERIFY2(!text.output.contains('\x1b'), text.output);
        QCOMPARE(stateOf("one"), QString("running"));
    }

    void diskThatIsNone_isSaid() {
        QFile disk(file("disk.img"));
        QVERIFY(disk.open(QIODevice::WriteOnly | QIODevice::Truncate));
        disk.write(QByteArray(1'000'000, '\xa5'));
        disk.close();
        const auto none = snapshotOfThatDisk();
        QVERIFY(!none.isEmpty());
        const auto said = difference(m_before, none);
        QVERIFY2(noteKinds(said).contains("not-mounted"), qPrintable(noteKinds(said).join(' ')));
        const auto text = cli({"snapshot", "diff", "one", m_before, none});
        QVERIFY2(text.output.contains("cannot be read at all"), text.text());
        // The domain itself is lost to its own doing, but not for good.
        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_before, "--no-keep"}), 0);
        QCOMPARE(inDomain("cat /home/user/gone"), QByteArray("gone"));
    }

    /// Something that changes files and holds a connection is stopped in the act; what it was is kept, and the domain
    /// goes on from before.
    void incident_isContained() {
        QCOMPARE(inDomain("setsid python3 -c 'import socket, time\n"
                          "server = socket.create_server((\"127.0.0.1\", 4444))\n"
                          "client = socket.create_connection((\"127.0.0.1\", 4444))\n"
                          "peer, _ = server.accept()\n"
                          "n = 0\n"
                          "while True:\n"
                          "    n += 1\n"
                          "    with open(\"/home/user/infected\", \"a\") as file: file.write(str(n) + \"\\n\")\n"
                          "    client.sendall(b\"x\"); peer.recv(1)\n"
                          "    time.sleep(0.05)\n"
                          "' </dev/null >/dev/null 2>&1 & "
                          "for i in $(seq 200); do [ -s /home/user/infected ] && break; sleep 0.1; done; "
                          "sync; cat /home/user/infected | head -1"),
                 QByteArray("1"));
        const auto contained = cli({"domain", "contain", "one"});
        COMPARE_STATUS(contained, 0);
        QVERIFY2(contained.output.contains("stands still"), contained.text());
        QVERIFY2(contained.output.contains("/home/user/infected"), contained.text());
        QVERIFY2(contained.output.contains("snapshot revert one"), contained.text());
        QCOMPARE(stateOf("one"), QString("paused"));
        const auto rows = jsonRows({"snapshot", "ls", "one"});
        const auto evidence = rows.last().toObject();
        QCOMPARE(evidence.value("reason").toString(), QString("evidence"));
        QVERIFY(evidence.value("pinned").toBool());
        // Not even a new daemon lets it go on.
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf("one"), QString("paused"));
        QCOMPARE(run({"sh", "-c", "virsh domstate $(virsh list --all --name | head -1)"}).output.simplified(),
                 QByteArray("paused"));

        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_before, "--no-keep"}), 0);
        if (stateOf("one") != "running") {
            COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        }
        QCOMPARE(inDomain("ls /home/user/infected 2>/dev/null; pgrep -f [c]reate_server; cat /home/user/gone"),
                 QByteArray("gone"));
        // The evidence is there, can be looked into, and nothing that begins there has a network.
        const auto id = evidence.value("id").toString();
        COMPARE_STATUS(cli({"snapshot", "rm", id}), 1);
        COMPARE_STATUS(cli({"snapshot", "fork", id, "look", "--disk", "--egress", "web"}), 2);
        COMPARE_STATUS(cli({"snapshot", "fork", id, "look", "--disk"}), 0);
        const auto look = QJsonDocument::fromJson(cli({"domain", "show", "look", "--json"}).output).object();
        QCOMPARE(look.value("egress").toString(), QString("none"));
        const auto seen = cli({"run", "--domain", "look", "--", "head", "-1", "/home/user/infected"});
        QCOMPARE(seen.output.trimmed(), QByteArray("1"));
        COMPARE_STATUS(cli({"domain", "stop", "look"}), 0);
    }

    void mistakes_areClear() {
        COMPARE_STATUS(cli({"snapshot", "diff", "one", "12345678", "now"}), 4);
        COMPARE_STATUS(cli({"snapshot", "diff", "nobody", m_before, "now"}), 4);
        COMPARE_STATUS(cli({"snapshot", "diff", "one", m_before}), 2);
    }

    void end() {
        COMPARE_STATUS(cli({"domain", "stop", "one", "--force"}), 0);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eDiff)
#include "tst_e2e_diff.moc"
