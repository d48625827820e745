// SPDX-License-Identifier: Apache-2.0
#include "channel/records.hpp"
#include "cli/arguments.hpp"
#include "cli/duration.hpp"
#include "cli/environment.hpp"
#include "cli/exit_code.hpp"
#include "cli/run/line_escape.hpp"
#include "cli/run/outcome.hpp"

#include <QFile>
#include <QRegularExpression>
#include <QTest>

#include <cerrno>
#include <csignal>

using namespace bulkhead;
using namespace bulkhead::cli;

namespace {

std::vector<std::string> words(const QString& line) {
    std::vector<std::string> out;
    for (const QString& word : line.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        out.push_back(word == QLatin1String("''") ? std::string() : word.toStdString());
    }
    return out;
}

QString joined(const std::vector<std::string>& list) {
    QStringList out;
    for (const auto& word : list) {
        out << QString::fromStdString(word);
    }
    return out.join(QLatin1Char('|'));
}

} // namespace

class TestCli : public QObject {
    Q_OBJECT

private slots:
    void duration_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<qlonglong>("milliseconds"); // 0: refused
        QTest::newRow("minutes") << "15m" << 900'000LL;
        QTest::newRow("plain seconds") << "20" << 20'000LL;
        QTest::newRow("mixed") << "1h30m" << 5'400'000LL;
        QTest::newRow("milliseconds") << "500ms" << 500LL;
        QTest::newRow("all") << "1d1h1m1s1ms" << 90'061'001LL;
        QTest::newRow("zero") << "0s" << 0LL;
        QTest::newRow("empty") << "" << 0LL;
        QTest::newRow("negative") << "-5s" << 0LL;
        QTest::newRow("unknown unit") << "5y" << 0LL;
        QTest::newRow("wrong order") << "5s1h" << 0LL;
        QTest::newRow("twice") << "5s5s" << 0LL;
        QTest::newRow("number behind") << "5m30" << 0LL;
        QTest::newRow("space") << "5 m" << 0LL;
        QTest::newRow("fraction") << "1.5h" << 0LL;
        QTest::newRow("overflow") << "9223372036854775807d" << 0LL;
        QTest::newRow("unit only") << "m" << 0LL;
    }
    void duration() {
        QFETCH(QString, text);
        QFETCH(qlonglong, milliseconds);
        const auto parsed = parseDuration(text.toStdString());
        QCOMPARE(parsed ? qlonglong{parsed->count()} : 0LL, milliseconds);
    }

    void run_command_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("command");
        QTest::addColumn<QString>("domain");
        QTest::addColumn<QString>("templateName");
        QTest::newRow("after --") << "run -- ls -l"
                                  << "ls|-l"
                                  << ""
                                  << "";
        QTest::newRow("first word ends the options") << "run ls -l --json"
                                                     << "ls|-l|--json"
                                                     << ""
                                                     << "";
        QTest::newRow("value of an option is no command") << "run --domain work ls"
                                                          << "ls"
                                                          << "work"
                                                          << "";
        QTest::newRow("value with =") << "run --domain=work ls"
                                      << "ls"
                                      << "work"
                                      << "";
        QTest::newRow("disposable takes no next word") << "run --disposable ls"
                                                       << "ls"
                                                       << ""
                                                       << "";
        QTest::newRow("disposable with template") << "run --disposable=dev ls"
                                                  << "ls"
                                                  << ""
                                                  << "dev";
        QTest::newRow("second -- belongs to the command") << "run -- env -- ls"
                                                          << "env|--|ls"
                                                          << ""
                                                          << "";
        QTest::newRow("-- behind the first word too") << "run env -- ls"
                                                      << "env|--|ls"
                                                      << ""
                                                      << "";
        QTest::newRow("a command like an option") << "run -- --version"
                                                  << "--version"
                                                  << ""
                                                  << "";
        QTest::newRow("an empty argument is kept") << "run -- printf ''"
                                                   << "printf|"
                                                   << ""
                                                   << "";
        QTest::newRow("a verb's name as command") << "run run run"
                                                  << "run|run"
                                                  << ""
                                                  << "";
        QTest::newRow("-t alone") << "run -t"
                                  << ""
                                  << ""
                                  << "";
        QTest::newRow("-t and a command") << "run -t --domain w -- top"
                                          << "top"
                                          << "w"
                                          << "";
    }
    void run_command() {
        QFETCH(QString, line);
        QFETCH(QString, command);
        QFETCH(QString, domain);
        QFETCH(QString, templateName);
        const auto parsed = parseArguments(words(line));
        if (const auto* end = std::get_if<ParseEnd>(&parsed)) {
            QFAIL(end->text.c_str());
        }
        const auto& run = std::get<RunArguments>(std::get<Invocation>(parsed));
        QCOMPARE(joined(run.command), command);
        QCOMPARE(QString::fromStdString(run.domain.value_or("")), domain);
        QCOMPARE(QString::fromStdString(run.templateName), templateName);
    }

    void run_options() {
        const auto parsed =
            parseArguments(words("run --json --timeout 15m --size large --user root --cwd /tmp --env A=1 "
                                 "--env B -- env"));
        const auto& run = std::get<RunArguments>(std::get<Invocation>(parsed));
        QVERIFY(run.json);
        QVERIFY(!run.terminal);
        QVERIFY(run.timeout == std::chrono::minutes(15));
        QCOMPARE(run.size, std::string("large"));
        QCOMPARE(run.user, std::string("root"));
        QCOMPARE(run.cwd, std::string("/tmp"));
        QCOMPARE(joined(run.environment), QString("A=1|B"));
    }

    void run_ofASnapshot() {
        const auto parsed = parseArguments(words("run --from 1a2b --disk --keep -- make --from x"));
        const auto& run = std::get<RunArguments>(std::get<Invocation>(parsed));
        QCOMPARE(run.from, std::string("1a2b"));
        QVERIFY(run.isDiskOnly && run.isKept && !run.domain);
        QCOMPARE(joined(run.command), QString("make|--from|x"));
    }

    void resume_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("command");
        QTest::addColumn<bool>("terminal");
        QTest::newRow("alone") << "resume disp-1"
                               << "" << false;
        QTest::newRow("for programs") << "resume disp-1 --user root --json -- x"
                                      << "x" << false;
        QTest::newRow("after --") << "resume --user root disp-1 -- ls -l"
                                  << "ls|-l" << false;
        QTest::newRow("second word") << "resume disp-1 --user root ls --user x"
                                     << "ls|--user|x" << false;
        QTest::newRow("a command like the name") << "resume --user root disp-1 disp-1"
                                                 << "disp-1" << false;
        QTest::newRow("a shell") << "resume disp-1 -t --user root"
                                 << "" << true;
    }
    void resume() {
        QFETCH(QString, line);
        QFETCH(QString, command);
        QFETCH(bool, terminal);
        const auto parsed = parseArguments(words(line));
        if (const auto* end = std::get_if<ParseEnd>(&parsed)) {
            QFAIL(end->text.c_str());
        }
        const auto& run = std::get<ResumeArguments>(std::get<Invocation>(parsed)).run;
        QCOMPARE(joined(run.command), command);
        QCOMPARE(QString::fromStdString(run.domain.value_or("")), QString("disp-1"));
        QCOMPARE(run.terminal, terminal);
        QCOMPARE(QString::fromStdString(run.user), QString(line.contains("root") ? "root" : ""));
        QCOMPARE(run.json, line.contains("--json"));
    }

    void mistakesOfRun_haveItsStatus_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("says");
        QTest::newRow("from and domain") << "run --from 1a2b --domain work x"
                                         << "--domain excludes --from";
        QTest::newRow("from and disposable") << "run --from 1a2b --disposable x"
                                             << "excludes";
        QTest::newRow("from and size") << "run --from 1a2b --size small x"
                                       << "excludes";
        QTest::newRow("keep and domain") << "run --keep --domain work x"
                                         << "--domain excludes --keep";
        QTest::newRow("disk alone") << "run --disk x"
                                    << "--disk requires --from";
        QTest::newRow("from without an id") << "run --from"
                                            << "needs one value";
        QTest::newRow("resume what") << "resume"
                                     << "RUN is required";
        QTest::newRow("resume nothing") << "resume -- x"
                                        << "RUN is required";
        QTest::newRow("resume without a command") << "resume disp-1 --user root"
                                                  << "no command";
        QTest::newRow("resume with an option of run") << "resume --from 1a2b disp-1"
                                                      << "--from";
    }
    void mistakesOfRun_haveItsStatus() {
        QFETCH(QString, line);
        QFETCH(QString, says);
        const auto parsed = parseArguments(words(line));
        const auto* end = std::get_if<ParseEnd>(&parsed);
        QVERIFY(end != nullptr);
        QCOMPARE(end->status, 125);
        QVERIFY2(QString::fromStdString(end->text).contains(says), end->text.c_str());
    }

    void verbs() {
        const auto create = parseArguments(words("domain create work --template minimal --size s --label blue --egress "
                                                 "web --home-size 2GiB --tag a --tag b"));
        const auto& made = std::get<DomainCreateArguments>(std::get<Invocation>(create));
        QCOMPARE(made.name, std::string("work"));
        QCOMPARE(made.templateName, std::string("minimal"));
        QCOMPARE(made.homeSize, std::string("2GiB"));
        QCOMPARE(joined(made.tags), QString("a|b"));
        const auto stop = parseArguments(words("domain stop --grace 5s work --json"));
        const auto& stopped = std::get<DomainStopArguments>(std::get<Invocation>(stop));
        QVERIFY(stopped.grace == std::chrono::seconds(5));
        QVERIFY(stopped.json);
        const auto set = parseArguments(words("domain set work label=red tags= x=a=b --json"));
        const auto& changed = std::get<DomainSetArguments>(std::get<Invocation>(set));
        QVERIFY(changed.settings ==
                (std::vector<std::pair<std::string, std::string>>{{"label", "red"}, {"tags", ""}, {"x", "a=b"}}));
        QVERIFY(changed.json);
        const auto launch = parseArguments(words("domain launch work app --no-viewer"));
        QCOMPARE(std::get<DomainLaunchArguments>(std::get<Invocation>(launch)).app, std::string("app"));
        for (const char* line : {"domain launch --disposable=desktop app", "domain launch app --disposable=desktop"}) {
            const auto disposable = parseArguments(words(line));
            const auto& launched = std::get<DomainLaunchArguments>(std::get<Invocation>(disposable));
            QVERIFY(launched.disposable);
            QCOMPARE(launched.templateName, std::string("desktop"));
            QCOMPARE(launched.app, std::string("app"));
            QVERIFY(launched.name.empty());
        }
        const auto build = parseArguments(words("template build minimal --force"));
        QVERIFY(std::get<TemplateBuildArguments>(std::get<Invocation>(build)).force);
        const auto doctor = parseArguments(words("doctor --refresh"));
        QVERIFY(std::get<DoctorArguments>(std::get<Invocation>(doctor)).refresh);
    }

    void mistakes_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("says");
        QTest::newRow("nothing") << ""
                                 << "say what to do";
        QTest::newRow("unknown verb") << "frob"
                                      << "there is no 'bulkhead frob'";
        QTest::newRow("unknown verb of a noun") << "domain frob"
                                                << "there is no 'bulkhead domain frob'";
        QTest::newRow("a noun of a later issue") << "workspace ls"
                                                 << "there is no 'bulkhead workspace'";
        QTest::newRow("noun alone") << "template"
                                    << "say what to do after 'bulkhead template'";
        QTest::newRow("no command") << "run"
                                    << "no command given";
        QTest::newRow("no command behind --") << "run --json --"
                                              << "no command given";
        QTest::newRow("empty command") << "run -- ''"
                                       << "name is empty";
        QTest::newRow("empty domain") << "run --domain '' ls"
                                      << "--domain: it is empty";
        QTest::newRow("unknown option") << "run --frob ls"
                                        << "unknown option --frob";
        QTest::newRow("two places") << "run --domain a --disposable ls"
                                    << "excludes";
        QTest::newRow("size of a named domain") << "run --domain a --size b ls"
                                                << "excludes";
        QTest::newRow("option without value") << "run --domain"
                                              << "--domain needs one value";
        QTest::newRow("bad duration") << "run --timeout soon ls"
                                      << "'soon' is not a duration";
        QTest::newRow("too long a time") << "run --timeout 31d ls"
                                         << "the longest is 30d";
        QTest::newRow("name missing") << "domain show"
                                      << "NAME is required";
        QTest::newRow("nothing to set") << "domain set work"
                                        << "KEY=VALUE is required";
        QTest::newRow("no setting") << "domain set work label"
                                    << "'label' is not KEY=VALUE";
        QTest::newRow("no key") << "domain set work =red"
                                << "'=red' is not KEY=VALUE";
        QTest::newRow("a setting twice") << "domain set work label=red label=blue"
                                         << "'label' is given twice";
        QTest::newRow("launch without an app") << "domain launch work"
                                               << "APP is required";
        QTest::newRow("a disposable with a name") << "domain launch --disposable work app"
                                                  << "takes no NAME";
        QTest::newRow("a disposable without an app") << "domain launch --disposable"
                                                     << "NAME is required";
        QTest::newRow("one name too many") << "domain show a b"
                                           << "unexpected argument b";
    }
    void mistakes() {
        QFETCH(QString, line);
        QFETCH(QString, says);
        const auto parsed = parseArguments(words(line));
        const auto* end = std::get_if<ParseEnd>(&parsed);
        QVERIFY(end != nullptr);
        QCOMPARE(end->status, line.startsWith("run") ? 125 : 2);
        QVERIFY2(QString::fromStdString(end->text).contains(says), end->text.c_str());
        QVERIFY(!end->hint.empty());
    }

    void lineEscape_data() {
        QTest::addColumn<QByteArray>("typed");
        QTest::addColumn<QByteArray>("passed");
        QTest::addColumn<bool>("leave");
        const auto row = [](const char* typed, const char* passed, bool leave) {
            QTest::newRow(QByteArray(typed).toPercentEncoding()) << QByteArray(typed) << QByteArray(passed) << leave;
        };
        row("~.", "", true);
        row("~.rest", "", true);
        row("ls\r~.", "ls\r", true);
        row("ls\n~.", "ls\n", true);
        row("ls ~.", "ls ~.", false);
        row("~~", "~", false);
        row("~~.", "~.", false);
        row("~~\r~.", "~\r", true);
        row("~/bin\r", "~/bin\r", false);
        row("~\r~.", "~\r", true);
        row("a~~.", "a~~.", false);
        row(".", ".", false);
    }
    void lineEscape() {
        QFETCH(QByteArray, typed);
        QFETCH(QByteArray, passed);
        QFETCH(bool, leave);
        for (const qsizetype step : {qsizetype{1}, typed.size()}) {
            LineEscape escape;
            std::string got;
            bool left = false;
            for (qsizetype at = 0; at < typed.size() && !left; at += step) {
                const auto result = escape.take(std::span(typed.constData() + at, std::size_t(step)));
                got += result.bytes;
                left = result.leave;
            }
            QCOMPARE(QByteArray::fromStdString(got), passed);
            QCOMPARE(left, leave);
        }
    }

    void help_isOnStandardOutputAndDone() {
        for (const char* line : {"--help", "run --help", "domain create -h", "--version"}) {
            const auto parsed = parseArguments(words(line));
            const auto* end = std::get_if<ParseEnd>(&parsed);
            QVERIFY(end != nullptr);
            QCOMPARE(end->status, 0);
            QVERIFY(!end->text.empty());
        }
    }

    void environment() {
        const VariableLookup lookup = [](const std::string& name) {
            return name == "HERE" ? std::optional<std::string>("a=b c") : std::nullopt;
        };
        const auto good = resolveEnvironment({"X=1", "EMPTY=", "HERE"}, lookup);
        QVERIFY(good.has_value());
        QCOMPARE(joined(*good), QString("X=1|EMPTY=|HERE=a=b c"));
        QVERIFY(!resolveEnvironment({"NOT_HERE"}, lookup).has_value());
        QVERIFY(!resolveEnvironment({"=x"}, lookup).has_value());
        QVERIFY(!resolveEnvironment({""}, lookup).has_value());
    }

    void exitCode_data() {
        QTest::addColumn<QString>("error");
        QTest::addColumn<int>("verb");
        QTest::addColumn<int>("run");
        QTest::newRow("not found") << "org.bulkhead1.Error.NotFound" << 4 << 125;
        QTest::newRow("not authorised") << "org.bulkhead1.Error.NotAuthorized" << 5 << 125;
        QTest::newRow("the bus refuses") << "org.freedesktop.DBus.Error.AccessDenied" << 5 << 125;
        QTest::newRow("argument") << "org.bulkhead1.Error.InvalidArgument" << 2 << 125;
        QTest::newRow("denied") << "org.bulkhead1.Error.Denied" << 3 << 125;
        QTest::newRow("no space") << "org.bulkhead1.Error.NoSpace" << 1 << 125;
        QTest::newRow("daemon's own time-out is not the command's") << "org.bulkhead1.Error.TimedOut" << 1 << 125;
        QTest::newRow("no daemon") << "org.freedesktop.DBus.Error.ServiceUnknown" << 1 << 125;
    }
    void exitCode() {
        QFETCH(QString, error);
        const auto failure = client::failureFrom(error.toStdString(), "text");
        QTEST(exitCodeFor(failure), "verb");
        QTEST(runExitCodeFor(failure), "run");
    }
    void exitCode_interrupted() {
        const client::Failure failure{client::code::kInterrupted, "", SIGTERM};
        QCOMPARE(exitCodeFor(failure), 143);
        QCOMPARE(runExitCodeFor(failure), 143);
    }

    void outcome_data() {
        using Kind = exec_stream::ClientEventKind;
        QTest::addColumn<int>("kind");
        QTest::addColumn<uint>("a");
        QTest::addColumn<int>("b");
        QTest::addColumn<int>("exitCode");
        QTest::addColumn<QString>("outcomeKind");
        QTest::addColumn<QString>("says"); // empty: no failure of ours
        const auto row = [](const char* name, Kind kind, uint a, int b, int code, const char* is, const char* says) {
            QTest::newRow(name) << static_cast<int>(kind) << a << b << code << is << says;
        };
        row("exit 0", Kind::Exited, 0, 0, 0, "exited", "");
        row("exit 7", Kind::Exited, 7, 0, 7, "exited", "");
        row("exit 125 of the command itself", Kind::Exited, 125, 0, 125, "exited", "");
        row("a status beyond a byte", Kind::Exited, 256 + 3, 0, 3, "exited", "");
        row("SIGKILL", Kind::Signalled, 9, 0, 137, "signalled", "");
        row("SIGSEGV with core", Kind::Signalled, 11, 1, 139, "signalled", "");
        row("not found", Kind::Failed, 1, ENOENT, 127, "failed", "frob: command not found");
        row("not executable", Kind::Failed, 2, EACCES, 126, "failed", "frob: cannot be executed: Permission denied");
        row("no user", Kind::Failed, 3, 0, 125, "failed", "no user 'joe' in the guest");
        row("no directory", Kind::Failed, 4, ENOENT, 125, "failed", "cannot enter '/nowhere' in the guest: No such");
        row("limit", Kind::Failed, 5, 0, 125, "failed", "no room");
        row("unheard-of reason and errno", Kind::Failed, 99, -5, 125, "failed", "could not start it");
        row("timed out", Kind::TimedOut, 0, 0, 124, "timed-out", "did not end within 2 s");
        row("guest died", Kind::Lost, 1, 0, 125, "lost", "lost domain work while the command ran: the guest died");
        row("guest broke the protocol", Kind::Lost, 2, 4, 125, "lost", "violation 4");
        row("guest silent", Kind::Lost, 3, 0, 125, "lost", "did not answer");
    }
    void outcome() {
        QFETCH(int, kind);
        QFETCH(uint, a);
        QFETCH(int, b);
        QFETCH(QString, says);
        PumpEnd end;
        end.event = exec_stream::ClientEvent{static_cast<exec_stream::ClientEventKind>(kind), a, b};
        const RunOutcome outcome = outcomeOf(end, {"work", "frob", "joe", "/nowhere", "2 s"});
        QTEST(outcome.exitCode, "exitCode");
        QTEST(QString::fromStdString(outcome.kind), "outcomeKind");
        QCOMPARE(outcome.failure.has_value(), !says.isEmpty());
        if (outcome.failure) {
            QVERIFY2(QString::fromStdString(outcome.failure->message).contains(says), outcome.failure->message.c_str());
        }
    }
    void outcome_withoutARecord_isLost() {
        const RunOutcome outcome = outcomeOf(PumpEnd{}, {"work", "x", "", "", ""});
        QCOMPARE(outcome.exitCode, 125);
        QCOMPARE(outcome.kind, std::string("lost"));
    }

    /// The numbers are the agent's and the channel's; ours are a copy beyond an include border.
    void numbers_areThoseOfTheContracts() {
        QFile proto(QStringLiteral(BULKHEAD_SOURCE_DIR "/guest-agent/protocol/agent.proto"));
        QVERIFY(proto.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(proto.readAll());
        const auto check = [&](const char* name, ExecFailedReason reason) {
            const QRegularExpression line(
                QString("\\b%1 = %2;").arg(QLatin1String(name)).arg(static_cast<int>(reason)));
            QVERIFY2(line.match(text).hasMatch(), name);
        };
        check("COMMAND_NOT_FOUND", ExecFailedReason::CommandNotFound);
        check("COMMAND_NOT_EXECUTABLE", ExecFailedReason::CommandNotExecutable);
        check("NO_SUCH_USER", ExecFailedReason::NoSuchUser);
        check("NO_SUCH_DIRECTORY", ExecFailedReason::NoSuchDirectory);
        check("LIMIT", ExecFailedReason::Limit);
        check("BAD_REQUEST", ExecFailedReason::BadRequest);
        const auto same = [](channel::LostReason theirs, cli::LostReason own) {
            return static_cast<std::uint32_t>(theirs) == static_cast<std::uint32_t>(own);
        };
        QVERIFY(same(channel::LostReason::EndOfFile, cli::LostReason::EndOfFile));
        QVERIFY(same(channel::LostReason::Violation, cli::LostReason::Violation));
        QVERIFY(same(channel::LostReason::NoAnswer, cli::LostReason::NoAnswer));
        QVERIFY(same(channel::LostReason::Internal, cli::LostReason::Internal));
    }
};

QTEST_APPLESS_MAIN(TestCli)
#include "tst_cli.moc"
