// SPDX-License-Identifier: Apache-2.0
#include "channel_rig.hpp"

#include <QCryptographicHash>
#include <QElapsedTimer>
#include <QTest>

#include <csignal>
#include <sys/socket.h>

using namespace bulkhead;
using namespace bulkhead::channel;
using namespace bulkhead::channel::test;
using exec_stream::ClientEventKind;
using exec_stream::ClientRequestKind;

namespace {
/// Text in which each position can be told from all others nearby.
std::string pattern(std::size_t size) {
    std::string text;
    text.reserve(size + 16);
    for (std::uint32_t i = 0; text.size() < size; ++i) {
        text += std::to_string(i) + ' ';
    }
    text.resize(size);
    return text;
}
QByteArray hashOf(const std::string& text) {
    return QCryptographicHash::hash(QByteArrayView(text.data(), qsizetype(text.size())), QCryptographicHash::Sha256);
}
} // namespace

/// Commands, seen from client, daemon and guest.
class TestChannelExec : public QObject {
    Q_OBJECT

private slots:
    void bothWays_thenTheStatusBehindAllData() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("cat");
        request.add_argv("-");
        request.add_environment("A=b");
        request.set_exec_id(999); // ignored
        auto client = rig.exec(request);
        QVERIFY(client);
        QCOMPARE(rig.program().request.argv(1), std::string("-"));
        QCOMPARE(rig.program().request.environment(0), std::string("A=b"));
        QCOMPARE(rig.program().request.exec_id(), std::uint64_t{1});

        QCOMPARE(client->writeInput("to the guest"), std::size_t{12});
        ::shutdown(client->input.get(), SHUT_WR);
        QVERIFY(rig.until([&] { return rig.program().inputEnded; }));
        QCOMPARE(rig.program().input, std::string("to the guest"));

        const std::string text = pattern(1024 * 1024);
        rig.guest.started(rig.program(), 77);
        rig.guest.write(rig.program().stdio, text);
        rig.guest.write(rig.program().err, "to the error");
        rig.guest.finish(rig.program().stdio);
        rig.guest.finish(rig.program().err);
        QVERIFY(rig.until([&] {
            client->readEvents();
            return !client->events.empty();
        }));
        QCOMPARE(client->events.front().kind, ClientEventKind::Started);
        QCOMPARE(client->events.front().a, 77U);
        client->events.clear();
        // As the agent does: the end is said when all output is on the streams.
        QVERIFY(rig.until([&] {
            client->readOutput(rig.guest.waiting(rig.program().stdio) == 0 ? 0 : 65536);
            return rig.guest.waiting(rig.program().stdio) == 0;
        }));
        rig.guest.exited(rig.program(), 7);
        // Some of it still waits for the client, so nothing is said about the end.
        QVERIFY(!rig.next(FromChannelKind::ExecFinished, 1));
        client->readEvents();
        QVERIFY(client->events.empty());
        QVERIFY(rig.until([&] {
            client->readOutput();
            client->readEvents();
            return client->controlEnded && client->outEnded && client->errEnded;
        }));
        QCOMPARE(client->out.size(), text.size());
        QCOMPARE(hashOf(client->out), hashOf(text));
        QCOMPARE(client->err, std::string("to the error"));
        QCOMPARE(client->events.size(), std::size_t{1});
        QCOMPARE(client->events.front().kind, ClientEventKind::Exited);
        QCOMPARE(client->events.front().a, 7U);
        const auto finished = rig.next(FromChannelKind::ExecFinished);
        QVERIFY(finished);
        QCOMPARE(finished->record.a, std::uint32_t(ClientEventKind::Exited));
        QCOMPARE(finished->record.b, std::int64_t{7});
        QCOMPARE(finished->record.value[0], std::uint64_t{1});
        QCOMPARE(finished->record.value[1], std::uint64_t{0});
    }

    void ends_data() {
        QTest::addColumn<int>("how");
        QTest::addColumn<int>("kind");
        QTest::addColumn<uint>("a");
        QTest::addColumn<int>("b");
        QTest::newRow("exit 0") << 0 << int(ClientEventKind::Exited) << 0U << 0;
        QTest::newRow("killed") << 1 << int(ClientEventKind::Signalled) << 9U << 0;
        QTest::newRow("core") << 2 << int(ClientEventKind::Signalled) << 11U << 1;
        QTest::newRow("not found") << 3 << int(ClientEventKind::Failed) << 1U << 2;
    }
    void ends() {
        QFETCH(int, how);
        QFETCH(int, kind);
        QFETCH(uint, a);
        QFETCH(int, b);
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        agent::ExecEvent event;
        if (how == 3) {
            event.mutable_failed()->set_reason(agent::ExecFailed::COMMAND_NOT_FOUND);
            event.mutable_failed()->set_error_number(2);
        } else {
            rig.guest.started(rig.program());
            event.mutable_exited()->set_signal(how == 0 ? 0U : how == 1 ? 9U : 11U);
            event.mutable_exited()->set_core_dumped(how == 2);
        }
        rig.guest.send(rig.program().exec, event);
        QVERIFY(rig.until([&] {
            client->readEvents();
            client->readOutput();
            return client->controlEnded && client->outEnded && client->errEnded;
        }));
        QCOMPARE(int(client->events.back().kind), kind);
        QCOMPARE(client->events.back().a, a);
        QCOMPARE(client->events.back().b, b);
        const auto finished = rig.next(FromChannelKind::ExecFinished);
        QVERIFY(finished);
        QCOMPARE(int(finished->record.a), kind);
        QCOMPARE(finished->record.b, std::int64_t{a});
    }

    void backPressure_aSlowClientBoundsEverything() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        const std::size_t before = rig.residentBytes();
        QVERIFY(before > 0);
        const std::size_t total = 64 * 1024 * 1024;
        const std::string text = pattern(total);
        rig.guest.write(rig.program().stdio, text);
        rig.guest.finish(rig.program().stdio);
        // The client reads nothing: the guest gets rid of a window and what sockets hold, then no more.
        std::size_t last = 0;
        int still = 0;
        QVERIFY(rig.until([&] {
            const std::size_t now = rig.guest.waiting(rig.program().stdio);
            still = now == last ? still + 1 : 0;
            last = now;
            return still > 200;
        }));
        QVERIFY2(total - last < 2 * 1024 * 1024, qPrintable(QString::number(total - last)));
        std::size_t most = rig.residentBytes();
        QVERIFY(rig.until(
            [&] {
                client->readOutput(200'000);
                most = std::max(most, rig.residentBytes());
                return client->outEnded;
            },
            60));
        QCOMPARE(client->out.size(), total);
        QCOMPARE(hashOf(client->out), hashOf(text));
#ifndef __SANITIZE_ADDRESS__ // which keeps freed memory for a while
        QVERIFY2(most - before < 4 * 1024 * 1024, qPrintable(QString::number(most - before)));
#endif
    }
    void backPressure_aProgramThatReadsNothingBoundsItsInput() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        auto other = rig.exec();
        QVERIFY(other);
        rig.guest.consumesInput = false;
        const std::string piece = pattern(65536);
        std::size_t sent = 0;
        int still = 0;
        QVERIFY(rig.until([&] {
            const std::size_t now = client->writeInput(piece);
            sent += now;
            still = now == 0 ? still + 1 : 0;
            return still > 200;
        }));
        QVERIFY2(sent < 2 * 1024 * 1024, qPrintable(QString::number(sent)));
        QCOMPARE(rig.guest.programs[1].input.size(), std::size_t{protocol::kInitialWindow - 8}); // less its header
        // Another command's input still goes through.
        QCOMPARE(other->writeInput("through"), std::size_t{7});
        QVERIFY(rig.until([&] { return rig.guest.programs[2].input == "through"; }));
    }

    void signalsAndWindow_reachTheGuest() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("sh");
        request.set_terminal(true);
        auto client = rig.exec(request);
        QVERIFY(client);
        QCOMPARE(rig.program().err, 0U);
        client->readOutput();
        QVERIFY(client->errEnded); // from the start
        client->request(ClientRequestKind::Signal, SIGINT);
        client->request(ClientRequestKind::WindowSize, 50, 132);
        QVERIFY(rig.until([&] { return !rig.program().windows.empty(); }));
        QCOMPARE(rig.program().signalNumbers, std::vector<std::uint32_t>{SIGINT});
        QCOMPARE(rig.program().windows.front(), std::make_pair(50U, 132U));
        // A client that does not keep to the contract is hung up.
        client->request(ClientRequestKind::Signal, 65);
        QVERIFY(rig.until([&] { return rig.program().signalNumbers.size() == 2; }));
        QCOMPARE(rig.program().signalNumbers.back(), std::uint32_t{SIGHUP});
    }

    void clientVanishes_hangUpThenKill() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.started(rig.program());
        rig.guest.write(rig.program().stdio, pattern(4 * 1024 * 1024));
        client.reset();
        QVERIFY(rig.until([&] { return !rig.program().signalNumbers.empty(); }));
        QElapsedTimer timer;
        timer.start();
        QCOMPARE(rig.program().signalNumbers.front(), std::uint32_t{SIGHUP});
        // It ignores that.
        QVERIFY(rig.until([&] { return rig.program().signalNumbers.size() == 2; }));
        QCOMPARE(rig.program().signalNumbers.back(), std::uint32_t{SIGKILL});
        QVERIFY(timer.elapsed() > 4000);
        // And its end is never said: the streams are reset, and the daemon is told.
        const auto finished = rig.next(FromChannelKind::ExecFinished);
        QVERIFY(finished);
        QCOMPARE(finished->record.a, std::uint32_t(ClientEventKind::Signalled));
        QVERIFY(rig.until([&] { return rig.program().execReset; }));
    }
    void clientVanishes_programEndsOnHangUp() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.started(rig.program());
        // More than a window: what nobody reads any more must not keep the end back.
        rig.guest.write(rig.program().stdio, pattern(2 * 1024 * 1024));
        client.reset();
        QVERIFY(rig.until([&] { return !rig.program().signalNumbers.empty(); }));
        rig.guest.exited(rig.program(), 0, SIGHUP);
        const auto finished = rig.next(FromChannelKind::ExecFinished, 3);
        QVERIFY(finished);
        QCOMPARE(finished->record.b, std::int64_t{SIGHUP});
    }
    void clientClosesItsOutput_theGuestIsTold_data() {
        QTest::addColumn<bool>("guestCan");
        QTest::addColumn<bool>("terminal");
        QTest::addColumn<bool>("inputGoesOn");
        QTest::newRow("close_output") << true << false << true;
        QTest::newRow("a terminal") << true << true << false;
        QTest::newRow("an old guest") << false << false << false;
    }
    void clientClosesItsOutput_theGuestIsTold() {
        QFETCH(bool, guestCan);
        QFETCH(bool, terminal);
        QFETCH(bool, inputGoesOn);
        Rig rig;
        if (!guestCan) {
            rig.guest.hello.mutable_hello()->clear_features();
        }
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("program");
        request.set_terminal(terminal);
        auto client = rig.exec(request);
        QVERIFY(client);
        rig.guest.started(rig.program());
        rig.guest.write(rig.program().stdio, "three lines");
        QVERIFY(rig.until([&] {
            client->readOutput();
            return client->out == "three lines";
        }));
        client->output.reset();
        QVERIFY(rig.until([&] { return rig.program().stdioReset || rig.program().outputClosed; }));
        QCOMPARE(rig.program().outputClosed, inputGoesOn);
        QCOMPARE(rig.program().stdioReset, !inputGoesOn);
        if (inputGoesOn) {
            // Standard input has nothing to do with it, and what is still under way blocks nobody.
            rig.guest.write(rig.program().stdio, pattern(600'000));
            const std::string text = pattern(2'000'000);
            std::size_t sent = 0;
            QVERIFY(rig.until([&] {
                sent += client->writeInput(std::string_view(text).substr(sent));
                return rig.program().input.size() == text.size();
            }));
            QCOMPARE(hashOf(rig.program().input), hashOf(text));
            QVERIFY(rig.until([&] { return rig.guest.waiting(rig.program().stdio) == 0; }));
            client->input.reset();
            QVERIFY(rig.until([&] { return rig.program().inputEnded; }));
        }
        if (!terminal) {
            rig.guest.write(rig.program().err, "still heard");
            rig.guest.finish(rig.program().err);
        }
        rig.guest.exited(rig.program(), 0, SIGPIPE);
        QVERIFY(rig.until([&] {
            client->readOutput();
            client->readEvents();
            return client->controlEnded;
        }));
        QCOMPARE(client->err, std::string(terminal ? "" : "still heard"));
        QCOMPARE(client->events.back().kind, ClientEventKind::Signalled);
        QCOMPARE(client->events.back().a, unsigned{SIGPIPE});
    }

    void clientClosesItsOutputs_beforeTheGuestHasHeard_data() {
        QTest::addColumn<bool>("guestCan");
        QTest::newRow("close_output") << true;
        QTest::newRow("an old guest") << false;
    }
    void clientClosesItsOutputs_beforeTheGuestHasHeard() {
        QFETCH(bool, guestCan);
        Rig rig;
        if (!guestCan) {
            rig.guest.hello.mutable_hello()->clear_features();
        }
        QVERIFY(rig.connectAndWaitUntilReady());
        // More than the queue to the guest holds, and a guest that is busy with something else.
        std::vector<Client> others;
        for (int i = 0; i < 8; ++i) {
            auto other = rig.exec();
            QVERIFY(other);
            others.push_back(std::move(*other));
        }
        rig.guest.reads = false;
        const std::string piece = pattern(65536);
        int still = 0;
        QVERIFY(rig.until([&] {
            std::size_t taken = 0;
            for (Client& other : others) {
                taken += other.writeInput(piece);
            }
            still = taken == 0 ? still + 1 : 0;
            return still > 200;
        }));
        agent::ExecRequest request;
        request.add_argv("late");
        auto client = rig.accept(request);
        QVERIFY(client);
        client->output.reset();
        client->error.reset();
        QVERIFY(!rig.until([] { return false; }, 1)); // the channel sees that
        rig.guest.reads = true;
        QVERIFY(rig.until([&] { return rig.program().exec != 0 && rig.program().request.argv(0) == "late"; }));
        QVERIFY(rig.program().stdio != 0 && rig.program().err != 0);
        rig.guest.started(rig.program());
        QVERIFY(rig.until([&] {
            return rig.program().errReset && (guestCan ? rig.program().outputClosed : rig.program().stdioReset);
        }));
        rig.guest.exited(rig.program(), 0, SIGPIPE);
        QVERIFY(rig.until([&] {
            client->readEvents();
            return client->controlEnded;
        }));
        QCOMPARE(client->events.back().a, unsigned{SIGPIPE});
    }
    void guestGivesItsStreamsUp_itStillEnds() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.reset(rig.program().stdio);
        rig.guest.reset(rig.program().err);
        QCOMPARE(client->writeInput("nobody takes it"), std::size_t{15});
        rig.guest.started(rig.program());
        rig.guest.exited(rig.program(), 9);
        QVERIFY(rig.until([&] {
            client->readOutput();
            client->readEvents();
            return client->controlEnded && client->outEnded && client->errEnded;
        }));
        QCOMPARE(client->events.back().a, 9U);
    }

    void timeLimit_leavesASlowReaderItsTime() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("writes a lot");
        auto client = rig.exec(request, 100);
        QVERIFY(client);
        const std::string text = pattern(240'000); // all of it fits the window, but not the client's socket
        rig.guest.started(rig.program());
        rig.guest.write(rig.program().stdio, text);
        QVERIFY(rig.until([&] { return !rig.program().signalNumbers.empty(); }));
        rig.guest.finish(rig.program().stdio);
        rig.guest.exited(rig.program(), 0, SIGKILL);
        // Longer than a guest has that says nothing.
        QVERIFY(!rig.next(FromChannelKind::ExecFinished, 6));
        QVERIFY(rig.until([&] {
            client->readOutput();
            client->readEvents();
            return client->controlEnded && client->outEnded;
        }));
        QCOMPARE(client->out.size(), text.size());
        QCOMPARE(client->events.back().kind, ClientEventKind::TimedOut);
    }
    void timeLimit_killsAndSaysSo() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("sleep");
        auto client = rig.exec(request, 300);
        QVERIFY(client);
        rig.guest.started(rig.program());
        QVERIFY(rig.until([&] { return !rig.program().signalNumbers.empty(); }, 3));
        QCOMPARE(rig.program().signalNumbers, std::vector<std::uint32_t>{SIGKILL});
        rig.guest.write(rig.program().stdio, "last words");
        rig.guest.finish(rig.program().stdio);
        rig.guest.exited(rig.program(), 0, SIGKILL);
        QVERIFY(rig.until([&] {
            client->readOutput();
            client->readEvents();
            return client->controlEnded && client->outEnded;
        }));
        QCOMPARE(client->out, std::string("last words"));
        QCOMPARE(client->events.back().kind, ClientEventKind::TimedOut);
        QCOMPARE(rig.next(FromChannelKind::ExecFinished)->record.a, std::uint32_t(ClientEventKind::TimedOut));
    }
    void timeLimit_holdsAgainstAGuestThatSaysNothing() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        agent::ExecRequest request;
        request.add_argv("sleep");
        auto client = rig.exec(request, 100);
        QVERIFY(client);
        QVERIFY(rig.until([&] {
            client->readEvents();
            return client->controlEnded;
        }));
        QCOMPARE(client->events.back().kind, ClientEventKind::TimedOut);
        QVERIFY(rig.until([&] { return rig.program().execReset && rig.program().stdioReset; }));
    }

    void daemonDies_theCommandGoesOn() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.started(rig.program());
        rig.dropDaemon();
        const std::string text = pattern(3 * 1024 * 1024);
        rig.guest.write(rig.program().stdio, text.substr(0, 1024 * 1024));
        QVERIFY(rig.until([&] {
            client->readOutput();
            return client->out.size() == 1024 * 1024;
        }));
        rig.connectDaemon();
        const auto hello = rig.next(FromChannelKind::Hello);
        QVERIFY(hello);
        QCOMPARE(hello->record.a, 1U);
        QCOMPARE(hello->record.b, std::int64_t{1});
        QVERIFY(rig.next(FromChannelKind::Ready));
        rig.guest.write(rig.program().stdio, text.substr(1024 * 1024));
        rig.guest.finish(rig.program().stdio);
        QVERIFY(rig.until([&] {
            client->readOutput();
            return client->outEnded;
        }));
        QCOMPARE(hashOf(client->out), hashOf(text));
        rig.dropDaemon();
        rig.guest.exited(rig.program(), 3);
        QVERIFY(rig.until([&] {
            client->readEvents();
            return client->controlEnded;
        }));
        QCOMPARE(client->events.back().a, 3U);
        rig.connectDaemon();
        QCOMPARE(rig.next(FromChannelKind::Hello)->record.b, std::int64_t{0});
    }

    void refused_data() {
        QTest::addColumn<QByteArray>("request");
        QTest::addColumn<qlonglong>("limit");
        const auto add = [](const char* name, const std::function<void(agent::ExecRequest&)>& change) {
            agent::ExecRequest request;
            request.add_argv("x");
            change(request);
            QTest::newRow(name) << QByteArray::fromStdString(request.SerializeAsString()) << 0LL;
        };
        QTest::newRow("not protobuf") << QByteArray("\xff\xff\xff") << 0LL;
        QTest::newRow("negative limit") << QByteArray("\x12\x01x") << -1LL;
        add("no command", [](auto& r) { r.clear_argv(); });
        add("empty command", [](auto& r) { r.set_argv(0, ""); });
        add("NUL", [](auto& r) { r.set_argv(0, std::string("a\0b", 3)); });
        add("no assignment", [](auto& r) { r.add_environment("PATH"); });
        add("no name", [](auto& r) { r.add_environment("=x"); });
        add("1025 arguments", [](auto& r) {
            for (int i = 0; i < 1024; ++i) {
                r.add_argv("x");
            }
        });
        add("fits the packet, but not a message", [](auto& r) { r.set_argv(0, std::string(65536 - 4, 'x')); });
    }
    void refused() {
        QFETCH(QByteArray, request);
        QFETCH(qlonglong, limit);
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind::Exec, 8, limit, request.toStdString());
        const auto answer = rig.next(FromChannelKind::Refused);
        QVERIFY(answer);
        QCOMPARE(answer->record.request, std::uint64_t{8});
        QCOMPARE(answer->record.a, std::uint32_t(RefusedReason::BadRequest));
        QVERIFY(rig.exec());
    }
    void refused_whenTooMany() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        std::vector<Client> clients;
        for (std::size_t i = 0; i < protocol::kMaxConcurrentExecs; ++i) {
            auto client = rig.exec();
            QVERIFY(client);
            clients.push_back(std::move(*client));
        }
        agent::ExecRequest request;
        request.add_argv("one more");
        rig.send(ToChannelKind::Exec, 9, 0, request.SerializeAsString());
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::TooMany));
        // One place is free again.
        rig.guest.started(rig.program());
        rig.guest.exited(rig.program(), 0);
        QVERIFY(rig.next(FromChannelKind::ExecFinished));
        QVERIFY(rig.exec());
    }
};

QTEST_GUILESS_MAIN(TestChannelExec)
#include "tst_channel_exec.moc"
