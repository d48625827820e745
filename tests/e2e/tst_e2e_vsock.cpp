// SPDX-License-Identifier: Apache-2.0
// Guests over real AF_VSOCK, and what other processes of the host can do with it. Needs a host kernel with vhost_vsock:
// tests/rig has one. All other e2e tests know nothing of the transport and run over it there, too.
#include "e2e_clock.hpp"
#include "e2e_support.hpp"

#include <QTest>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace bulkhead::e2e;

namespace {

constexpr int kAgentPort = 1914;

/// Why this host cannot give a guest an address; empty: it can.
QString obstacle() {
    const int device = ::open("/dev/vhost-vsock", O_RDWR | O_CLOEXEC);
    if (device < 0) {
        return QString("/dev/vhost-vsock: ") + ::strerror(errno);
    }
    ::close(device);
    const int socket = ::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) {
        return QString("AF_VSOCK: ") + ::strerror(errno);
    }
    ::close(socket);
    return {};
}

/// The kernel's own list: "u_str ESTAB 0 0 2:1234 42:1914", without a heading.
QStringList sockets(const QStringList& options) {
    const auto outcome = run(QStringList{"ss", "--vsock", "-n", "-H"} + options);
    return QString::fromUtf8(outcome.output).split('\n', Qt::SkipEmptyParts);
}

quint32 cidOf(const QString& libvirtName) {
    const auto xml = QString::fromUtf8(run({"virsh", "dumpxml", libvirtName}).output);
    return QRegularExpression("<cid auto='no' address='(\\d+)'").match(xml).captured(1).toUInt();
}

quint32 onlyCid() {
    return cidOf(QString::fromUtf8(run({"virsh", "list", "--name"}).output.trimmed()));
}

/// Connects to the guest's agent, says what looks like a reset, and prints what comes back until the other side closes.
const QString kStranger =
    "import socket,sys,os\n"
    "s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.settimeout(20)\n"
    "s.connect((int(sys.argv[1]), 1914)); print('connected', flush=True)\n"
    "s.sendall(bytes.fromhex('f95b8ec317a46dd23f91e628bc740d5a') + os.urandom(int(sys.argv[2])))\n"
    "got = b''\n"
    "try:\n"
    "    while (part := s.recv(4096)): got += part\n"
    "except ConnectionResetError: pass\n"
    "print('got', len(got), flush=True)\n";

/// Takes an address as an emulator does, and keeps it until its input ends.
const QString kClaimer = "import fcntl,struct,sys,os\n"
                         "fd = os.open('/dev/vhost-vsock', os.O_RDWR)\n"
                         "fcntl.ioctl(fd, 0x4008af60, struct.pack('Q', int(sys.argv[1])))\n"
                         "print('claimed', flush=True); sys.stdin.read()\n";

} // namespace

class TestE2eVsock : public QObject {
    Q_OBJECT

    QStringList m_listenersBefore;

private slots:
    void initTestCase() {
        if (const auto why = obstacle(); !why.isEmpty()) {
            QVERIFY2(!qEnvironmentVariableIsSet("BULKHEAD_RIG"), qPrintable(why));
            const auto text = "this host has no vsock for guests (" + why + "); run it in tests/rig";
            QSKIP(qPrintable(text)); // lint-allow(skip): the rig's kernel has it and runs this
        }
        m_listenersBefore = sockets({"-l"});
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "work"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
        cli({"domain", "rm", "--now", "--force", "work"});
    }

    void vsockIsInForce() {
        const auto shown = QJsonDocument::fromJson(cli({"domain", "show", "work", "--json"}).output).object();
        QCOMPARE(shown.value("transport").toString(), QString("vsock"));
        const auto doctor = cli({"doctor"});
        QVERIFY2(doctor.output.contains("vsock is used"), doctor.text().constData());
    }

    void kernelsList_hasOurConnectionAndNoListenerOfOurs() {
        const auto peer = QString::number(onlyCid()) + ":" + QString::number(kAgentPort);
        const auto connections = sockets({});
        QVERIFY2(connections.filter(peer).size() == 1, qPrintable(connections.join("\n")));
        QCOMPARE(sockets({"-l"}), m_listenersBefore);
    }

    void otherUser_getsNothing_data() {
        QTest::addColumn<QString>("more");
        QTest::newRow("a whole reset with a wrong proof") << "48";
        QTest::newRow("half a handshake") << "8";
    }
    void otherUser_getsNothing() {
        QFETCH(QString, more);
        Running live({"bulkhead", "run", "--domain", "work", "--", "cat"});
        live.write("before\n");
        QVERIFY(live.waitFor("before\n"));
        const auto stranger =
            run({"ph-user", "ph-mallory", "python3", "-c", kStranger, QString::number(onlyCid()), more});
        // It can connect, since AF_VSOCK asks nobody; and that is all.
        QVERIFY2(stranger.output.contains("connected"), stranger.text().constData());
        QVERIFY2(stranger.output.contains("got 0\n"), stranger.text().constData());
        live.write("after\n");
        QVERIFY(live.waitFor("after\n"));
        live.closeInput();
        COMPARE_STATUS(live.wait(), 0);
        const auto log = cli({"run", "--domain", "work", "--user", "root", "--", "dmesg"});
        QVERIFY2(log.output.contains("refused a connection"), log.text().constData());
    }

    void foreignListener_isToldByDoctor() {
        const auto findings = [] { return cli({"doctor"}).output; };
        QVERIFY2(findings().contains("no program of this host takes AF_VSOCK connections"), findings().constData());
        Running listener({"python3", "-c",
                          "import socket,sys\n"
                          "s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)\n"
                          "s.bind((socket.VMADDR_CID_ANY, 5555)); s.listen()\n"
                          "print('listens', flush=True); sys.stdin.read()\n"});
        QVERIFY(listener.waitFor("listens\n"));
        const auto told = findings();
        listener.closeInput();
        listener.wait();
        QVERIFY2(told.contains("on AF_VSOCK port 5555"), told.constData());
    }

    void guestItself_cannotBeItsHost() {
        // From inside, over the guest's own address: the agent takes the host's connections only.
        const auto outcome =
            cli({"run", "--domain", "work", "--", "python3", "-c", kStranger, QString::number(onlyCid()), "48"});
        // Without a loopback in its kernel it does not even get that far.
        const bool isRefused = !outcome.output.contains("connected") && outcome.error.contains("Error");
        QVERIFY2(isRefused || outcome.output.contains("got 0\n"), outcome.text().constData());
    }

    void claimedAddress_isNotUsedForAGuest() {
        // Somebody has the address that comes next. (The positive control: it could be taken.)
        const auto next = onlyCid() + 1;
        Running claimer({"python3", "-c", kClaimer, QString::number(next)});
        QVERIFY(claimer.waitFor("claimed\n"));
        COMPARE_STATUS(cli({"domain", "create", "other"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "other", "--", "true"}), 0);
        quint32 cid = 0;
        for (const auto& name : QString::fromUtf8(run({"virsh", "list", "--name"}).output).split('\n')) {
            cid = std::max(cid, name.isEmpty() ? 0 : cidOf(name));
        }
        QCOMPARE(cid, next + 1);
        claimer.closeInput();
        claimer.wait();
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "other"}), 0);
    }

    void addressIsNotUsedAgain() {
        const auto before = onlyCid();
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "restart"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        QVERIFY(onlyCid() > before);
    }

    void lostConnection_isMadeAnew() {
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(pidsOf("bulkhead-channel"))});
        QTRY_COMPARE_WITH_TIMEOUT(cli({"run", "--domain", "work", "--", "echo", "again"}).output, QByteArray("again\n"),
                                  20000);
        QCOMPARE(stateOf("work"), QString("running"));
    }

    void daemonKilled_programGoesOn() {
        Running running(
            {"bulkhead", "run", "--domain", "work", "--", "sh", "-c", "echo ready; read line; echo got $line"});
        QVERIFY(running.waitFor("ready\n"));
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        running.write("hello\n");
        running.closeInput();
        const auto outcome = running.wait();
        COMPARE_STATUS(outcome, 0);
        QVERIFY2(outcome.output.contains("got hello"), outcome.text().constData());
    }

    void suspendAndResume() {
        const auto name = QString::fromUtf8(run({"virsh", "list", "--name"}).output.trimmed());
        Running running({"bulkhead", "run", "--domain", "work", "--", "cat"});
        running.write("before\n");
        QVERIFY(running.waitFor("before\n"));
        COMPARE_STATUS(run({"virsh", "suspend", name}), 0);
        running.write("while it is suspended\n");
        COMPARE_STATUS(run({"virsh", "resume", name}), 0);
        QVERIFY(running.waitFor("while it is suspended\n"));
        running.closeInput();
        COMPARE_STATUS(running.wait(), 0);
    }

    /// The whole way of a sleep, login manager and frozen processes included, but for the devices: the root of the rig
    /// is a network's, and would not come back. So no clock stands still by itself, and the guest's is put wrong.
    void hostSleeps_guestsGoOnAndKnowTheTime() {
        const auto log = [] { return run({"ph-daemon", "log"}).output; };
        const auto kernelLog = [] { return run({"dmesg"}).output.count("suspend debug: Waiting"); };
        Running counting({"bulkhead", "run", "--domain", "work", "--", "sh", "-c",
                          "i=0; while [ ! -e /tmp/woken ]; do i=$((i+1)); echo n$i; sleep 0.2; done; exit 9"});
        QVERIFY(counting.waitFor("n2\n"));
        const auto channel = pidsOf("bulkhead-channel");
        COMPARE_STATUS(setClockWrong("work"), 0);
        QVERIFY(clockIsOffBy("work") > 1'000'000);
        const auto sleeps = kernelLog();
        const auto wakes = log().count("the host has woken");
        COMPARE_STATUS(run({"sh", "-c", "echo freezer > /sys/power/pm_test"}), 0);
        COMPARE_STATUS(run({"systemctl", "suspend"}), 0);
        QTRY_VERIFY2_WITH_TIMEOUT(log().count("the host has woken") > wakes, log().right(2000).constData(), 120'000);
        COMPARE_STATUS(run({"sh", "-c", "echo none > /sys/power/pm_test"}), 0);
        QCOMPARE(kernelLog(), sleeps + 1); // all processes were frozen for five seconds
        QTRY_COMPARE_WITH_TIMEOUT(clockIsOffBy("work"), 0, 60'000);
        QCOMPARE(pidsOf("bulkhead-channel"), channel);
        QCOMPARE(stateOf("work"), QString("running"));
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "touch", "/tmp/woken"}), 0);
        COMPARE_STATUS(counting.wait(), 9);
    }

    /// What a wake does to the clock, where a sleep cannot; both ways, so that it is as it was.
    void hostsClockIsSet_guestsFollow() {
        for (const char* step : {"+3600", "-3600"}) {
            const auto script =
                QString("import time; time.clock_settime(time.CLOCK_REALTIME, time.time()%1)").arg(step);
            COMPARE_STATUS(run({"python3", "-c", script}), 0);
            QTRY_COMPARE_WITH_TIMEOUT(clockIsOffBy("work"), 0, 60'000);
        }
        QVERIFY(run({"ph-daemon", "log"}).output.contains("the host's clock was set"));
    }

    void emulatorThatDies_isSeenWhileItBoots() {
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        // (One that dies while it begins from a warm image is no failure: the domain boots.)
        Running starting({"bulkhead", "domain", "start", "--cold", "work"});
        QTRY_VERIFY_WITH_TIMEOUT(!emulatorPids().isEmpty(), 60000);
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(emulatorPids())});
        const auto outcome = starting.wait(30000); // not the three minutes that a guest may take
        QVERIFY2(outcome.status == 1, outcome.text().constData());
        VERIFY_NO_TRACES();
    }

    void virtioSerialOnRequest() {
        COMPARE_STATUS(run({"ph-daemon", "stop"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start", "--transport=virtio-serial"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "true"}), 0);
        const auto shown = QJsonDocument::fromJson(cli({"domain", "show", "work", "--json"}).output).object();
        QCOMPARE(shown.value("transport").toString(), QString("virtio-serial"));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
    }
};

QTEST_GUILESS_MAIN(TestE2eVsock)
#include "tst_e2e_vsock.moc"
