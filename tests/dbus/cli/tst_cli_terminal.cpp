// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include <QSocketNotifier>
#include <QTest>

#include <memory>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

using namespace bulkhead::tests;
using bulkhead::client::Descriptor;
using bulkhead::exec_stream::ClientEventKind;
using bulkhead::exec_stream::ClientRequestKind;

namespace {

bool isRaw(const termios& mode) {
    return (mode.c_lflag & (ICANON | ECHO | ISIG)) == 0 && (mode.c_oflag & OPOST) == 0;
}

} // namespace

/// `bulkhead` with a terminal: raw mode, window size, and what is left of the terminal afterwards.
class TestCliTerminal : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;
    Descriptor m_master;
    Descriptor m_slave;
    std::unique_ptr<QSocketNotifier> m_reader;
    QByteArray m_screen;

    void resize(unsigned short rows, unsigned short columns) {
        const winsize size{rows, columns, 0, 0};
        QVERIFY(::ioctl(m_master.get(), TIOCSWINSZ, &size) == 0);
    }
    [[nodiscard]] termios mode() const {
        termios now{};
        ::tcgetattr(m_slave.get(), &now);
        return now;
    }
    void type(const QByteArray& keys) {
        QVERIFY(::write(m_master.get(), keys.constData(), keys.size()) == keys.size());
    }
    bool waitForScreen(const QByteArray& text) {
        return Cli::waitUntil([&] { return m_screen.contains(text); });
    }
    void start(const QStringList& arguments, std::initializer_list<int> onTerminal = {0, 1, 2}) {
        const int slave = m_slave.get();
        const std::vector<int> fds(onTerminal);
        m_cli->process.setChildProcessModifier([slave, fds] {
            ::setsid();
            ::ioctl(slave, TIOCSCTTY, 0);
            for (const int fd : fds) {
                ::dup2(slave, fd);
            }
        });
        m_cli->start(arguments);
    }
    void verifyRestored(const termios& before) const {
        const termios after = mode();
        QCOMPARE(after.c_lflag, before.c_lflag);
        QCOMPARE(after.c_iflag, before.c_iflag);
        QCOMPARE(after.c_oflag, before.c_oflag);
        QCOMPARE(after.c_cc[VMIN], before.c_cc[VMIN]);
    }

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_screen.clear();
        int master = -1;
        int slave = -1;
        QVERIFY(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
        m_master = Descriptor(master);
        m_slave = Descriptor(slave);
        resize(30, 100);
        m_reader = std::make_unique<QSocketNotifier>(master, QSocketNotifier::Read);
        connect(m_reader.get(), &QSocketNotifier::activated, this, [this, master] {
            QByteArray bytes(65536, Qt::Uninitialized);
            const ssize_t count = ::read(master, bytes.data(), 65536);
            if (count > 0) {
                m_screen += bytes.left(count);
            } else {
                m_reader->setEnabled(false);
            }
        });
    }
    void cleanup() {
        m_reader.reset();
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    void shell_hasARawTerminalOfTheRightSize() {
        const termios before = mode();
        auto options = std::make_shared<QVariantMap>();
        auto keys = std::make_shared<QByteArray>();
        m_fake->script = [=](ExecEnds& ends) {
            *options = ends.options;
            (*options)["argv"] = ends.argv;
            ends.error.close();
            ends.write(ends.output, "prompt");
            while (!keys->contains('q')) {
                *keys += ends.read();
            }
            ends.write(ends.output, "\nkeys seen");
            const auto request = ends.request();
            if (request && request->kind == ClientRequestKind::WindowSize) {
                ends.write(ends.output, QByteArray::number(request->a) + "x" + QByteArray::number(request->b));
            }
            ends.output.close();
            ends.exited(4);
        };
        QProcessEnvironment environment = m_cli->process.processEnvironment();
        environment.insert("TERM", "xterm-test");
        m_cli->process.setProcessEnvironment(environment);
        start({"run", "-t"});
        QVERIFY(waitForScreen("prompt"));
        QVERIFY(isRaw(mode()));
        QCOMPARE((*options)["terminal"].toBool(), true);
        QCOMPARE((*options)["rows"].toUInt(), 30U);
        QCOMPARE((*options)["columns"].toUInt(), 100U);
        QCOMPARE((*options)["term"].toString(), QString("xterm-test"));
        QCOMPARE((*options)["argv"].toStringList().first(), QString("/bin/sh"));
        type("\x03\x1a\rq"); // Ctrl-C and Ctrl-Z are the guest's, and a return stays one
        QVERIFY(waitForScreen("\nkeys seen"));
        QVERIFY2(!m_screen.contains("\r\n"), "the terminal must not add carriage returns");
        QCOMPARE(*keys, QByteArray("\x03\x1a\rq"));
        resize(50, 120);
        QVERIFY(waitForScreen("50x120"));
        QCOMPARE(m_cli->wait().code, 4);
        verifyRestored(before);
    }

    void everyEnd_restoresTheTerminal_data() {
        QTest::addColumn<int>("number");
        QTest::addColumn<int>("times");
        QTest::addColumn<int>("code");
        QTest::newRow("hang-up") << SIGHUP << 1 << 129;
        QTest::newRow("third SIGTERM") << SIGTERM << 3 << 143;
        QTest::newRow("fault") << SIGSEGV << 1 << -SIGSEGV;
        QTest::newRow("abort") << SIGABRT << 1 << -SIGABRT;
    }
    void everyEnd_restoresTheTerminal() {
        QFETCH(int, number);
        QFETCH(int, times);
        const termios before = mode();
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            for (int i = 1; ends.request(); ++i) {
                ends.write(ends.output, "got" + QByteArray::number(i));
            }
        };
        start({"run", "-t", "top"});
        QVERIFY(waitForScreen("ready"));
        QVERIFY(isRaw(mode()));
        for (int i = 1; i <= times; ++i) {
            m_cli->signal(number);
            QVERIFY(i == times || waitForScreen("got" + QByteArray::number(i)));
        }
        QTEST(m_cli->wait().code, "code");
        verifyRestored(before);
    }

    void escape_leavesAGuestThatSaysNothing() {
        const termios before = mode();
        auto keys = std::make_shared<QByteArray>();
        m_fake->script = [=](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            while (!keys->endsWith("x\r")) {
                *keys += ends.read();
            }
            ends.write(ends.output, "seen");
            while (ends.request()) { // until the client is gone
            }
        };
        start({"run", "-t", "top"});
        QVERIFY(waitForScreen("ready"));
        type("~~.x\r");
        QVERIFY(waitForScreen("seen"));
        QCOMPARE(*keys, QByteArray("~.x\r"));
        type("~.");
        QCOMPARE(m_cli->wait().code, 130);
        verifyRestored(before);
    }

    void lostGuest_restoresTheTerminalBeforeItSpeaks() {
        const termios before = mode();
        m_fake->script = [](ExecEnds& ends) {
            ends.closeOutputs();
            ends.event(ClientEventKind::Lost, 1);
        };
        start({"run", "-t", "top"});
        QCOMPARE(m_cli->wait().code, 125);
        QVERIFY(waitForScreen("powered off\r\n"));
        verifyRestored(before);
    }

    void stopped_andContinued_isRawAgain() {
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            while (const auto request = ends.request()) {
                ends.write(ends.output, "size");
            }
        };
        start({"run", "-t", "top"});
        QVERIFY(waitForScreen("ready"));
        m_cli->signal(SIGSTOP);
        termios cooked = mode();
        cooked.c_lflag |= ICANON | ECHO | ISIG; // as a shell does when its job stops
        cooked.c_oflag |= OPOST;
        ::tcsetattr(m_slave.get(), TCSANOW, &cooked);
        m_cli->signal(SIGCONT);
        QVERIFY(waitForScreen("size"));
        QVERIFY(isRaw(mode()));
    }

    void withoutTerminal_isRefused() {
        m_cli->start({"run", "-t", "top"});
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 125);
        QVERIFY(ended.err.startsWith("bulkhead: -t needs a terminal on standard input\n"));
    }

    void input_endsWithCtrlD_withoutT() {
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "ready\n");
            QByteArray all;
            for (QByteArray bytes = ends.read(); !bytes.isEmpty(); bytes = ends.read()) {
                all += bytes;
            }
            ends.write(ends.output, "<" + all + ">");
            ends.closeOutputs();
            ends.exited(0);
        };
        start({"run", "cat"});
        QVERIFY(waitForScreen("ready"));
        type("line\n\x04");
        QCOMPARE(m_cli->wait().code, 0);
        QVERIFY(waitForScreen("<line\r\n>"));
    }

    void slowStart_showsOneLineAndErasesIt() {
        FakeJob& job = m_fake->prepareJob();
        job.description["phase"] = "no warm image yet: booting";
        m_fake->addDomain("disp1");
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "done");
            ends.closeOutputs();
            ends.exited(0);
        };
        start({"run", "x"}, {0, 2});
        QVERIFY(waitForScreen("Starting a disposable domain (no warm image yet: booting)…"));
        job.description["result"] =
            QVariantMap{{"domain", QVariant::fromValue(QDBusObjectPath("/org/bulkhead1/domains/disp1"))}};
        job.finish("succeeded");
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.out, QByteArray("done"));
        QVERIFY(waitForScreen("\r\x1b[K"));
        QVERIFY2(m_screen.endsWith("\r\x1b[K"), m_screen);
    }
};

QTEST_GUILESS_MAIN(TestCliTerminal)
#include "tst_cli_terminal.moc"
