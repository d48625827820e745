// SPDX-License-Identifier: Apache-2.0
// Domains with a display: systemd and an X session in the guest, SPICE without a socket on the host.
#include "e2e_support.hpp"

#include <QElapsedTimer>
#include <QTest>
#include <QXmlStreamReader>

using namespace bulkhead::e2e;

namespace {

Outcome inDomain(const QString& command) {
    return cli({"run", "--domain", "desk", "--", "sh", "-c", command});
}

Outcome asRoot(const QString& command) {
    return cli({"run", "--domain", "desk", "--user", "root", "--", "sh", "-c", command});
}

QByteArray machineXml() {
    return run({"sh", "-c", "virsh dumpxml $(virsh list --name | head -n 1)"}).output;
}

/// The attribute of the first element with this name; null when there is none.
QString attributeOf(const QByteArray& xml, const QString& element, const QString& attribute) {
    QXmlStreamReader reader(xml);
    while (!reader.atEnd()) {
        if (reader.readNext() == QXmlStreamReader::StartElement && reader.name() == element) {
            return reader.attributes().value(attribute).toString();
        }
    }
    return {};
}

} // namespace

class TestE2eDesktop : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        bool isBuilt = false;
        for (const auto& row : jsonRows({"template", "ls"})) {
            isBuilt = isBuilt || (row.toObject().value("name") == "desktop" && row.toObject().value("built").toBool());
        }
        QVERIFY2(isBuilt,
                 "no desktop template: build it with BULKHEAD_TEST_DESKTOP=1 packaging/lib/build_test_templates");
        COMPARE_STATUS(cli({"domain", "create", "desk", "--template", "desktop"}), 0);
        QElapsedTimer timer;
        timer.start();
        COMPARE_STATUS(cli({"domain", "start", "desk"}), 0);
        qInfo("the agent answered after %lld ms", timer.elapsed());
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
            qInfo().noquote() << asRoot("journalctl -b --no-pager | tail -n 60").output;
        }
    }

    /// The domain runs when its agent answers; its X server may need a little longer.
    void session_comesUp() {
        QTRY_VERIFY_WITH_TIMEOUT(inDomain("xrandr").status == 0, kPatienceMs);
        const auto outputs = inDomain("xrandr | grep -c '^Virtual-'");
        QCOMPARE(outputs.output.trimmed(), QByteArray("8"));
        QTRY_COMPARE_WITH_TIMEOUT(inDomain("systemctl is-system-running").output.trimmed(), QByteArray("running"),
                                  kPatienceMs);
        QCOMPARE(asRoot("cat /proc/1/comm").output, QByteArray("systemd\n"));
        // Ours and what they need: each is up, and up only once.
        QTRY_COMPARE_WITH_TIMEOUT(
            asRoot("systemctl is-active bulkhead-agent bulkhead-xorg bulkhead-session bulkhead-bus bulkhead-vdagent "
                   "spice-vdagentd | sort -u")
                .output,
            QByteArray("active\n"), kPatienceMs);
        QCOMPARE(asRoot("systemctl show --property=NRestarts --value bulkhead-agent bulkhead-xorg bulkhead-session "
                        "bulkhead-vdagent | sort -u | tr -d '\\n'")
                     .output,
                 QByteArray("0"));
        const auto ready = asRoot("systemd-analyze; systemctl show --property=ActiveEnterTimestampMonotonic "
                                  "bulkhead-agent bulkhead-session");
        qInfo().noquote() << ready.output;
    }

    void programs_findTheSession() {
        QCOMPARE(inDomain("echo $DISPLAY $XDG_RUNTIME_DIR").output, QByteArray(":0 /run/user/1000\n"));
        QCOMPARE(inDomain("stat -c '%U %a' $XDG_RUNTIME_DIR").output, QByteArray("user 700\n"));
        COMPARE_STATUS(inDomain("dbus-send --session --print-reply --dest=org.freedesktop.DBus / "
                                "org.freedesktop.DBus.ListNames"),
                       0);
        // Root is not the session's user.
        QCOMPARE(asRoot("echo $DISPLAY").output, QByteArray("\n"));
        // The screen stays on.
        const auto screen = inDomain("xset q");
        QVERIFY2(screen.output.contains("timeout:  0"), screen.text().constData());
        // No other account of the guest reaches the X server.
        QVERIFY(asRoot("setpriv --reuid nobody --clear-groups env DISPLAY=:0 xrandr").status != 0);
    }

    void emulator_listensNowhere() {
        const auto tcp = run({"ss", "--no-header", "--listening", "--tcp", "--udp", "--processes"});
        COMPARE_STATUS(tcp, 0);
        QVERIFY2(!tcp.output.contains("qemu"), tcp.text().constData());
        // The control: this command does see an emulator's sockets. They are the agent's and libvirt's, none is
        // SPICE's.
        const auto unixSockets = run({"ss", "--no-header", "--listening", "--unix", "--processes"});
        int own = 0;
        for (const auto& line : unixSockets.output.split('\n')) {
            if (line.contains("qemu")) {
                ++own;
                QVERIFY2(line.contains("/agent.sock") || line.contains("/monitor.sock"), line.constData());
            }
        }
        QVERIFY2(own > 0, unixSockets.text().constData());
    }

    void machine_hasNoClipboardAndNoFiles() {
        const auto xml = machineXml();
        QCOMPARE(attributeOf(xml, "graphics", "type"), QString("spice"));
        QVERIFY2(attributeOf(xml, "graphics", "port").isEmpty(), xml.constData());
        QCOMPARE(attributeOf(xml, "listen", "type"), QString("none"));
        QCOMPARE(attributeOf(xml, "clipboard", "copypaste"), QString("no"));
        QCOMPARE(attributeOf(xml, "filetransfer", "enable"), QString("no"));
        QVERIFY(attributeOf(xml, "interface", "type").isNull()); // and no network device
        const auto words =
            run({"sh", "-c", "tr '\\0' '\\n' < /proc/" + QString::fromLatin1(emulatorPids()) + "/cmdline"});
        QVERIFY2(words.output.contains("disable-copy-paste=on"), words.text().constData());
        QVERIFY2(words.output.contains("disable-agent-file-xfer=on"), words.text().constData());
        // Its own user, as all emulators.
        QVERIFY(
            run({"sh", "-c", "stat -c %u /proc/" + QString::fromLatin1(emulatorPids())}).output.trimmed().toUInt() >=
            65536);
    }

    void stop_isOrderlyAndQuick() {
        const auto first = inDomain("cat /etc/machine-id").output;
        QCOMPARE(first.trimmed().size(), 32);
        // A program that saves when it is asked to leave.
        COMPARE_STATUS(inDomain("setsid sh -c 'trap \"echo saved > ~/saved; exit\" TERM; touch ~/ready; "
                                "while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &"),
                       0);
        QTRY_VERIFY_WITH_TIMEOUT(inDomain("test -e ~/ready").status == 0, 20000);
        QElapsedTimer timer;
        timer.start();
        COMPARE_STATUS(cli({"domain", "stop", "desk"}), 0);
        qInfo("stopped after %lld ms", timer.elapsed());
        // About three seconds on a quiet machine. Forty after the request the power would have been cut.
        QVERIFY2(timer.elapsed() < 20'000, qPrintable(QString::number(timer.elapsed())));
        VERIFY_NO_TRACES();

        COMPARE_STATUS(cli({"domain", "start", "desk"}), 0);
        QCOMPARE(inDomain("cat ~/saved").output, QByteArray("saved\n"));
        const auto second = inDomain("cat /etc/machine-id").output;
        QCOMPARE(second.trimmed().size(), 32);
        QVERIFY(second != first);
        // The home's file system was left whole.
        const auto kernel = asRoot("dmesg | grep -i -e 'recovery' -e 'orphan' -e 'error'; true");
        QVERIFY2(!kernel.output.contains("vdb"), kernel.text().constData());
    }

    void agentThatFails_endsTheDomain() {
        const auto killed = asRoot("kill -9 $(systemctl show --property=MainPID --value bulkhead-agent); sleep 100");
        COMPARE_STATUS(killed, 125);
        QTRY_VERIFY2_WITH_TIMEOUT(stateOf("desk") == "failed" || stateOf("desk") == "stopped",
                                  qPrintable(stateOf("desk")), 30000);
        VERIFY_NO_TRACES();
        COMPARE_STATUS(cli({"domain", "rm", "--now", "desk"}), 0);
    }
};

QTEST_GUILESS_MAIN(TestE2eDesktop)
#include "tst_e2e_desktop.moc"
