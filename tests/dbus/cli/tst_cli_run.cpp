// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include <QCryptographicHash>
#include <QTest>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace bulkhead::tests;
using bulkhead::exec_stream::ClientEventKind;
using bulkhead::exec_stream::ClientRequestKind;

namespace {

QByteArray hashOf(const QByteArray& bytes) {
    return QCryptographicHash::hash(bytes, QCryptographicHash::Sha256).toHex();
}

QByteArray pattern(qsizetype size) {
    QByteArray bytes(size, Qt::Uninitialized);
    quint32 state = 12345;
    for (qsizetype i = 0; i < size; ++i) {
        state = state * 1664525U + 1013904223U;
        bytes[i] = static_cast<char>(state >> 24U);
    }
    return bytes;
}

/// A guest's `cat`: input to output until its end, then exit.
void cat(ExecEnds& ends) {
    ends.started();
    for (QByteArray bytes = ends.read(); !bytes.isEmpty(); bytes = ends.read()) {
        if (!ExecEnds::write(ends.output, bytes)) {
            break;
        }
    }
    ends.closeOutputs();
    ends.exited(0);
}

} // namespace

/// `bulkhead run` against a double of the daemon: the data path, how it ends, signals.
class TestCliRun : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_cli = std::make_unique<Cli>(m_bus->address());
    }
    void cleanup() {
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    void copy_50MB_comesBackTheSame() {
        const QByteArray bytes = pattern(50'000'000);
        m_fake->script = cat;
        m_cli->start({"run", "--", "cat"});
        const Ended ended = m_cli->finish(bytes);
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.err, QByteArray());
        QCOMPARE(ended.out.size(), bytes.size());
        QCOMPARE(hashOf(ended.out), hashOf(bytes));
    }

    void copy_throughFiles() {
        QTemporaryDir dir;
        QFile in(dir.filePath("in"));
        QVERIFY(in.open(QIODevice::WriteOnly));
        const QByteArray bytes = pattern(3'000'001);
        in.write(bytes);
        in.close();
        QFile out(dir.filePath("out"));
        m_fake->script = cat;
        // Appended behind what is there: a file opened again would be overwritten from its start.
        m_cli->startShell("echo head > " + out.fileName() + "; { $BULKHEAD run cat < " + in.fileName() +
                          "; echo tail; } >> " + out.fileName());
        QCOMPARE(m_cli->finish().code, 0);
        QVERIFY(out.open(QIODevice::ReadOnly));
        QCOMPARE(hashOf(out.readAll()), hashOf("head\n" + bytes + "tail\n"));
    }

    void options_reachTheDaemon() {
        auto seen = std::make_shared<ExecEnds>();
        m_fake->script = [seen](ExecEnds& ends) {
            seen->argv = ends.argv;
            seen->options = ends.options;
            ends.closeOutputs();
            ends.exited(0);
        };
        m_cli->start({"run", "--disposable=dev", "--size", "large", "--user", "root", "--cwd", "/srv", "--env", "A=b c",
                      "--env", "FROM_HERE", "--timeout", "1m", "--", "printf", "", "--json", "ä\n"});
        QCOMPARE(m_cli->finish().code, 0);
        QCOMPARE(seen->argv, QStringList({"printf", "", "--json", "ä\n"}));
        QCOMPARE(seen->options, QVariantMap({{"user", "root"},
                                             {"cwd", "/srv"},
                                             {"env", QStringList({"A=b c", "FROM_HERE=value"})},
                                             {"timeout", 60000ULL}}));
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"template", "dev"}, {"size", "large"}}));
    }

    void bytesThatAreNoText_areRefused_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QByteArray>("says");
        const QString byte = "\"$(printf 'a\\377')\"";
        QTest::newRow("argument") << "$BULKHEAD run -- printf x " + byte << QByteArray("argument 2 of the command");
        QTest::newRow("command") << "$BULKHEAD run -- " + byte << QByteArray("the command's name");
        QTest::newRow("folder") << "$BULKHEAD run --cwd " + byte + " ls" << QByteArray("--cwd");
        QTest::newRow("user") << "$BULKHEAD run --user " + byte + " ls" << QByteArray("--user");
        QTest::newRow("variable") << "NAME=" + byte + " $BULKHEAD run --env NAME ls" << QByteArray("--env NAME");
        QTest::newRow("for a program") << "$BULKHEAD run --json -- printf " + byte << QByteArray("\"exit_code\":125");
    }
    void bytesThatAreNoText_areRefused() {
        QFETCH(QString, line);
        QFETCH(QByteArray, says);
        auto ran = std::make_shared<std::atomic<bool>>(false);
        m_fake->script = [ran](ExecEnds& ends) {
            *ran = true;
            ends.closeOutputs();
            ends.exited(0);
        };
        m_cli->startShell(line);
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QVERIFY2(ended.err.simplified().replace("\": ", "\":").contains(says), ended.err);
        QVERIFY2(ended.err.contains("not valid UTF-8"), ended.err);
        QVERIFY(!*ran);
    }

    void named_isStartedFirst() {
        FakeDomain& work = m_fake->addDomain("work");
        m_fake->script = cat;
        m_cli->start({"run", "--domain", "work", "cat"});
        QCOMPARE(m_cli->finish("x").out, QByteArray("x"));
        QCOMPARE(work.calls, QString("Start Exec "));
    }

    void end_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<uint>("a");
        QTest::addColumn<int>("b");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("says");
        const auto row = [](const char* name, ClientEventKind kind, uint a, int b, int code, const char* says) {
            QTest::newRow(name) << static_cast<int>(kind) << a << b << code << QByteArray(says);
        };
        row("exit 0", ClientEventKind::Exited, 0, 0, 0, "");
        row("exit 7", ClientEventKind::Exited, 7, 0, 7, "");
        row("exit 255", ClientEventKind::Exited, 255, 0, 255, "");
        row("killed", ClientEventKind::Signalled, 9, 0, 137, "");
        row("not found", ClientEventKind::Failed, 1, ENOENT, 127, "bulkhead: frob: command not found\n");
        row("not executable", ClientEventKind::Failed, 2, EACCES, 126,
            "bulkhead: frob: cannot be executed: Permission denied\n");
        row("no such user", ClientEventKind::Failed, 3, 0, 125, "bulkhead: there is no user 'user' in the guest\n");
        row("timed out", ClientEventKind::TimedOut, 0, 0, 124,
            "bulkhead: the command did not end within 2 s and was killed\n");
        row("guest died", ClientEventKind::Lost, 1, 0, 125,
            "bulkhead: lost domain work while the command ran: the guest died or was powered off\n");
        row("guest sent garbage", ClientEventKind::Lost, 2, 1, 125,
            "bulkhead: lost domain work while the command ran: it broke the rules of the channel (violation 1) and was "
            "cut off\n");
    }
    void end() {
        QFETCH(int, kind);
        QFETCH(uint, a);
        QFETCH(int, b);
        m_fake->addDomain("work");
        m_fake->script = [=](ExecEnds& ends) {
            ends.write(ends.output, "out");
            ends.closeOutputs();
            ends.event(static_cast<ClientEventKind>(kind), a, b);
        };
        m_cli->start({"run", "--domain", "work", "--timeout", "2s", "frob"});
        const Ended ended = m_cli->finish();
        QTEST(ended.code, "code");
        QCOMPARE(ended.out, QByteArray("out"));
        QTEST(ended.err, "says");
    }

    void end_withoutRecord_isLost() {
        m_fake->script = [](ExecEnds& ends) { ends.started(); };
        m_cli->start({"run", "x"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QVERIFY2(ended.err.contains("its channel process ended"), ended.err);
    }

    void end_beforeTheOutput_losesNothing() {
        const QByteArray bytes = pattern(2'000'000);
        m_fake->script = [&](ExecEnds& ends) {
            ends.exited(3);
            ends.write(ends.error, "to the last");
            ends.write(ends.output, bytes);
        };
        m_cli->start({"run", "x"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 3);
        QCOMPARE(hashOf(ended.out), hashOf(bytes));
        QCOMPARE(ended.err, QByteArray("to the last"));
    }

    void json_isOneObjectAfterTheCommandsOwnText() {
        m_fake->addDomain("work");
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.error, "its own words\n");
            ends.closeOutputs();
            ends.event(ClientEventKind::Failed, 1, ENOENT);
        };
        m_cli->start({"run", "--json", "--domain", "work", "frob"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 127);
        QVERIFY(ended.err.startsWith("its own words\n{"));
        QCOMPARE(ended.json()["outcome"].toString(), QString("failed"));
        QCOMPARE(ended.json()["exit_code"].toInt(), 127);
        QCOMPARE(ended.json()["domain"].toString(), QString("work"));
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("CommandNotFound"));
    }

    void json_ofSuccess() {
        m_fake->script = cat;
        m_cli->start({"run", "--json", "cat"});
        const Ended ended = m_cli->finish("data");
        QCOMPARE(ended.out, QByteArray("data"));
        QCOMPARE(ended.json()["outcome"].toString(), QString("exited"));
        QVERIFY(!ended.json().contains("error"));
    }

    void startFailure_isTyped_data() {
        QTest::addColumn<bool>("byJob");
        QTest::newRow("the call fails") << false;
        QTest::newRow("the job fails") << true;
    }
    void startFailure_isTyped() {
        QFETCH(bool, byJob);
        const QString error = "org.bulkhead1.Error.LimitExceeded";
        const QString message = "size large needs 64 GiB, the host has 4 GiB";
        if (byJob) {
            FakeJob& job = m_fake->prepareJob();
            job.description["state"] = "failed";
            job.description["error"] = error;
            job.description["message"] = message;
        } else {
            m_fake->failNext(error, message);
        }
        m_cli->start({"run", "--json", "--size", "large", "x"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("LimitExceeded"));
        QCOMPARE(ended.json()["error"].toObject()["message"].toString(), message);
    }

    void unknownDomain_is125AndSaysSo() {
        m_cli->start({"run", "--domain", "nope", "x"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.err,
                 QByteArray("bulkhead: domain nope: there is no domain 'nope'\n  see: bulkhead domain ls\n"));
    }

    void message_cannotReachTheTerminal() {
        m_fake->failNext("org.bulkhead1.Error.GuestFailure", "guest said \x1b[2J\nbulkhead: all is well");
        m_cli->start({"run", "x"});
        QCOMPARE(m_cli->finish().err, QByteArray("bulkhead: guest said \\x1b[2J\\x0abulkhead: all is well\n"));
    }

    void signals_arePassedOn_data() {
        QTest::addColumn<int>("number");
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
            QTest::newRow(::strsignal(number)) << number;
        }
    }
    void signals_arePassedOn() {
        QFETCH(int, number);
        m_fake->script = [](ExecEnds& ends) {
            ends.started();
            ends.write(ends.output, "ready");
            const auto request = ends.request();
            ends.closeOutputs();
            ends.event(ClientEventKind::Signalled,
                       request && request->kind == ClientRequestKind::Signal ? request->a : 99);
        };
        m_cli->start({"run", "sleep", "100"});
        QVERIFY(m_cli->waitForOutput("ready"));
        m_cli->signal(number);
        QCOMPARE(m_cli->wait().code, 128 + number);
    }

    void signals_thirdInterruptLeaves() {
        m_fake->addDomain("work");
        auto received = std::make_shared<int>(0);
        m_fake->script = [received](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            while (ends.request()) { // ignores them; ends when control is closed
                ++*received;
                ends.write(ends.output, "got" + QByteArray::number(*received));
            }
        };
        m_cli->start({"run", "--domain", "work", "trap"});
        QVERIFY(m_cli->waitForOutput("ready"));
        m_cli->signal(SIGINT);
        QVERIFY(m_cli->waitForOutput("got1"));
        m_cli->signal(SIGINT);
        QVERIFY(m_cli->waitForOutput("got2"));
        m_cli->signal(SIGINT);
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.code, 130);
        QVERIFY2(ended.err.contains("domain work is running"), ended.err);
    }

    void interrupt_whileStarting_cancelsTheJob() {
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"run", "x"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        m_cli->signal(SIGINT);
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.code, 130);
        QVERIFY(job.cancelled);
    }

    void reader_thatLeavesEarly_endsTheCommand() {
        m_fake->script = [](ExecEnds& ends) {
            ends.started();
            for (int i = 1; ExecEnds::write(ends.output, QByteArray::number(i) + "\n"); ++i) {
            }
            ends.error.close();
            ends.event(ClientEventKind::Signalled, SIGPIPE);
        };
        m_cli->startShell("$BULKHEAD run seq 1 infinity | head -3; echo ${PIPESTATUS[0]}");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.out, QByteArray("1\n2\n3\n141\n"));
        QCOMPARE(ended.err, QByteArray());
    }

    void fullDisk_isTold() {
        m_fake->script = [](ExecEnds& ends) {
            while (ExecEnds::write(ends.output, "x")) {
            }
            ends.error.close();
            ends.event(ClientEventKind::Signalled, SIGPIPE);
        };
        m_cli->startShell("$BULKHEAD run x > /dev/full");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.err, QByteArray("bulkhead: cannot write the command's output: No space left on device\n"));
    }

    void slowReader_holdsTheGuestUp() {
        // What the client, its pipe and the socket take while nobody reads: a fixed amount.
        auto accepted = std::make_shared<std::atomic<qsizetype>>(0);
        auto full = std::make_shared<std::atomic<bool>>(false);
        m_fake->script = [=](ExecEnds& ends) {
            const QByteArray block(65536, 'x');
            pollfd wait{ends.output.get(), POLLOUT, 0};
            while (::poll(&wait, 1, 500) == 1 && *accepted < 16'000'000) {
                const ssize_t count = ::send(ends.output.get(), block.constData(), 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
                *accepted += std::max<ssize_t>(count, 0);
            }
            *full = true;
            ends.closeOutputs();
            ends.exited(0);
        };
        std::array<int, 2> pipe{};
        QVERIFY(::pipe2(pipe.data(), O_CLOEXEC) == 0);
        m_cli->process.setChildProcessModifier([pipe] { ::dup2(pipe[1], STDOUT_FILENO); });
        m_cli->start({"run", "yes"});
        ::close(pipe[1]);
        QVERIFY(Cli::waitUntil([&] { return full->load(); }));
        QVERIFY2(*accepted < 1'000'000, QByteArray::number(accepted->load()));
        qsizetype received = 0;
        QByteArray buffer(65536, Qt::Uninitialized);
        for (ssize_t count = 1; count > 0; received += count) {
            count = ::read(pipe[0], buffer.data(), 65536);
        }
        ::close(pipe[0]);
        QCOMPARE(received, qsizetype{*accepted});
        QCOMPARE(m_cli->finish().code, 0);
    }

    void closedInput_doesNotEndUs() {
        m_fake->script = [](ExecEnds& ends) {
            ends.input.close();
            ends.write(ends.output, "ready");
            // Until the client has noticed: its writes fail, and it must still be there for the rest.
            const auto request = ends.request();
            ends.write(ends.output, request ? " still here" : " gone");
            ends.closeOutputs();
            ends.exited(0);
        };
        m_cli->start({"run", "true"});
        QVERIFY(m_cli->waitForOutput("ready"));
        m_cli->process.write(QByteArray(1'000'000, 'x'));
        QCoreApplication::processEvents();
        m_cli->signal(SIGUSR1);
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.out, QByteArray("ready still here"));
        QCOMPARE(ended.code, 0);
    }

    void standardDescriptors_closedAtStart() {
        m_fake->script = cat;
        m_cli->startShell(
            "$BULKHEAD run cat <&- && $BULKHEAD run cat >&- </etc/hostname && $BULKHEAD run cat </dev/null 2>&-");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray());
    }

    void daemon_vanishesInTheMiddle() {
        m_fake->addDomain("work");
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "before");
            const QByteArray input = ends.read();
            ends.write(ends.output, " after:" + input);
            ends.closeOutputs();
            ends.exited(5);
        };
        m_cli->start({"run", "--domain", "work", "x"});
        QVERIFY(m_cli->waitForOutput("before"));
        m_fake->vanish();
        m_bus.reset(); // and the bus itself
        const Ended ended = m_cli->finish("more");
        QCOMPARE(ended.out, QByteArray("before after:more"));
        QCOMPARE(ended.err, QByteArray());
        QCOMPARE(ended.code, 5);
    }

    void daemon_vanishesWhileStarting() {
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"run", "--json", "x"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        m_fake->vanish();
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("DaemonLost"));
    }

    void daemon_notRunning() {
        m_fake->vanish();
        m_cli->start({"run", "x"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QVERIFY2(ended.err.startsWith("bulkhead: bulkheadd is not running\n  start it:"), ended.err);
    }
};

QTEST_GUILESS_MAIN(TestCliRun)
#include "tst_cli_run.moc"
