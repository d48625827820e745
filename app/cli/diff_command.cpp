// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/diff.hpp"
#include "cli/output/report.hpp"
#include "cli/output/snapshots.hpp"
#include "cli/run/captured_exec.hpp"
#include "cli/run/outcome.hpp"
#include "client/domain.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

#include <QCoreApplication>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;
using client::SnapshotInfo;

/// In a guest that was made to look into disks, its agent's own program.
constexpr const char* kInspector = "/proc/1/exe";
/// Of the snapshot that is taken to compare with now: one that Bulkhead removes by itself.
constexpr const char* kReason = "diff";
constexpr const char* kNow = "now";
/// A disk can be made so that looking into it has no end.
constexpr std::chrono::hours kLongest{2};

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

tl::unexpected<Failure> pass(const Failure& failure) {
    return tl::unexpected<Failure>(failure);
}

/// What went wrong, and with what.
struct Trouble {
    std::string what;
    Failure failure;
};
template <class T> using Step = tl::expected<T, Trouble>;
tl::unexpected<Trouble> trouble(std::string what, Failure failure) {
    return tl::unexpected<Trouble>(Trouble{std::move(what), std::move(failure)});
}

ProgressStyle styleFor(bool json) {
    return json ? ProgressStyle::Silent : ProgressStyle::Calm;
}

struct Sides {
    SnapshotInfo a;
    SnapshotInfo b;
    bool isNow = false;
};

Outcome<QList<SnapshotInfo>> listSnapshots(Session& session) {
    return session.await<QList<SnapshotInfo>>([&](auto done) { session.manager().listSnapshots(std::move(done)); });
}

/// The snapshots of the domain come first: labels need not be unique beyond it.
Outcome<SnapshotInfo> find(const QList<SnapshotInfo>& snapshots, const std::string& text, const QString& domain) {
    QList<SnapshotInfo> own = snapshots;
    own.removeIf([&](const SnapshotInfo& snapshot) { return snapshot.domain != domain; });
    if (auto found = client::findSnapshot(own, qt(text))) {
        return found;
    }
    return client::findSnapshot(snapshots, qt(text));
}

/// Takes a snapshot of the domain as it is now; its id.
Outcome<QString> keepNow(Session& session, const QDBusObjectPath& path, const SnapshotDiffArguments& arguments) {
    client::Domain domain(session.connection(), path);
    const client::SnapshotOptions options{true, QString::fromLatin1(kReason), {}};
    const auto job = session.await<QDBusObjectPath>([&](auto done) { domain.snapshot(options, std::move(done)); });
    if (!job) {
        return pass(job.error());
    }
    const auto taken = session.follow(*job, "Taking a snapshot of " + client::terminalSafe(arguments.domain),
                                      styleFor(arguments.json));
    if (!taken) {
        return pass(taken.error());
    }
    return taken->value(QStringLiteral("snapshot")).toString();
}

Step<Sides> findSides(Session& session, const SnapshotDiffArguments& arguments) {
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().findDomain(qt(arguments.domain), std::move(done)); });
    if (!path) {
        return trouble("domain " + arguments.domain, path.error());
    }
    auto snapshots = listSnapshots(session);
    if (!snapshots) {
        return trouble("cannot list the snapshots", snapshots.error());
    }
    Sides sides;
    const auto first = find(*snapshots, arguments.from, path->path());
    if (!first) {
        return trouble("snapshot " + arguments.from, first.error());
    }
    sides.a = *first;
    std::string other = arguments.to;
    if (other == kNow) {
        const auto id = keepNow(session, *path, arguments);
        if (!id) {
            return trouble("domain " + arguments.domain, id.error());
        }
        sides.isNow = true;
        other = id->toStdString();
        snapshots = listSnapshots(session);
        if (!snapshots) {
            return trouble("cannot list the snapshots", snapshots.error());
        }
    }
    const auto second = find(*snapshots, other, path->path());
    if (!second) {
        return trouble("snapshot " + other, second.error());
    }
    sides.b = *second;
    return sides;
}

/// A disposable that has both sides' disks.
Outcome<std::unique_ptr<client::Domain>> startInspector(Session& session, const Sides& sides, bool json) {
    const auto job = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().inspect(sides.a.id, sides.b.id, std::move(done)); });
    if (!job) {
        return pass(job.error());
    }
    const auto started = session.follow(*job, "Starting a domain that looks into both", styleFor(json));
    if (!started) {
        return pass(started.error());
    }
    const auto path = started->value(QStringLiteral("domain")).value<QDBusObjectPath>();
    if (path.path().isEmpty()) {
        return client::failed(client::code::kVersionMismatch, "this bulkheadd does not say which domain it started");
    }
    return std::make_unique<client::Domain>(session.connection(), path);
}

/// Shows how far it is on the way to the output.
class Watched : public client::DiffListener {
public:
    Watched(DiffOutput& output, ProgressLine& line)
        : m_output(output)
        , m_line(line) {}
    void began(bool isDeep) override { m_output.began(isDeep); }
    void package(const client::PackageChange& change) override { m_output.package(change); }
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState state) override { m_output.diskIs(disk, state); }
    void entry(const client::DiffEntry& entry) override { m_output.entry(entry); }
    void note(const client::DiffNote& note) override { m_output.note(note); }
    void totals(const client::DiffTotals& totals) override { m_output.totals(totals); }
    void progress(const client::DiffProgress& progress) override {
        QCoreApplication::processEvents(); // the line waits for a timer before it shows
        m_line.update({QStringLiteral("%1 directories").arg(progress.directories), -1});
    }

private:
    DiffOutput& m_output;
    ProgressLine& m_line;
};

/// Why the program's end is none that one can be content with; none: it is.
std::optional<Failure> failureOf(const CapturedEnd& captured, const Outcome<void>& stream) {
    if (captured.end.leftBySignal) {
        return Failure{client::code::kInterrupted, "interrupted", *captured.end.leftBySignal};
    }
    if (!stream && captured.wasStopped) {
        return stream.error();
    }
    const RunOutcome outcome = outcomeOf(captured.end, {.domain = {}, .command = "the inspector"});
    std::string said = client::terminalSafe(captured.error.substr(0, captured.error.find('\n')));
    said = said.empty() ? "" : "; it said: " + said;
    if (outcome.failure) {
        return Failure{outcome.failure->code, outcome.failure->message + said};
    }
    if (outcome.exitCode != 0) {
        return Failure{client::code::kGuestFailure,
                       fmt::format("the inspector ended with status {}", outcome.exitCode) + said};
    }
    return stream ? std::nullopt : std::optional(Failure{stream.error().code, stream.error().message + said});
}

std::string nameOf(const SnapshotInfo& snapshot, bool isNow) {
    const std::string domain = client::terminalSafe(snapshot.domainName);
    return isNow ? domain + " as it is now"
                 : "snapshot " + client::terminalSafe(client::shortId(snapshot.id)) + " of " + domain + ", " +
                       timeAndAge(snapshot.createdAt, std::time(nullptr));
}

std::string titleOf(const Sides& sides) {
    return "A: " + nameOf(sides.a, false) + "\nB: " + nameOf(sides.b, sides.isNow);
}

Json aboutOf(const Sides& sides, bool isDeep) {
    return Json{
        {"a", sides.a.id.toStdString()}, {"b", sides.b.id.toStdString()}, {"now", sides.isNow}, {"deep", isDeep}};
}

} // namespace

int diffSnapshots(const SnapshotDiffArguments& arguments, Session& session) {
    const auto fail = [&](const std::string& what, const Failure& failure) {
        printFailure(what, failure, arguments.json);
        return exitCodeFor(failure);
    };
    const auto sides = findSides(session, arguments);
    if (!sides) {
        return fail(sides.error().what, sides.error().failure);
    }
    const auto inspector = startInspector(session, *sides, arguments.json);
    if (!inspector) {
        return fail("cannot compare", inspector.error());
    }
    QStringList argv{QString::fromLatin1(kInspector), QStringLiteral("inspect")};
    if (arguments.isDeep) {
        argv.append(QStringLiteral("--deep"));
    }
    client::ExecOptions options;
    options.user = QStringLiteral("root"); // of a guest that is made for this alone
    options.timeout = kLongest;
    const auto streams = session.await<std::shared_ptr<client::ExecStreams>>(
        [&](auto done) { (*inspector)->exec(argv, options, std::move(done)); });
    if (!streams) {
        return fail("cannot compare", streams.error());
    }
    std::signal(SIGPIPE, SIG_IGN); // NOLINT(cert-err33-c): cannot fail for SIGPIPE
    ProgressLine line("Comparing", styleFor(arguments.json));
    const auto write = [&](const std::string& piece) {
        line.clear();
        return printOut(piece) == exit_code::kDone;
    };
    std::unique_ptr<DiffOutput> output;
    if (arguments.json) {
        output = std::make_unique<DiffJson>(write, aboutOf(*sides, arguments.isDeep));
    } else {
        output = std::make_unique<DiffText>(write, titleOf(*sides), arguments.isAll);
    }
    Watched watched(*output, line);
    client::DiffParser parser(diff_stream::What::Difference, watched);
    Outcome<void> stream;
    const CapturedEnd captured = captureExec(**streams, session.interrupts(), [&](std::string_view bytes) {
        stream = parser.take(bytes);
        return stream.has_value() && !output->isBroken();
    });
    if (output->isBroken()) {
        return exit_code::kFailed; // which was said, where it is worth words
    }
    if (stream) {
        stream = parser.finish();
    }
    const auto failure = failureOf(captured, stream);
    output->finish(failure ? &*failure : nullptr);
    if (failure) {
        return fail("cannot compare", *failure);
    }
    return output->isBroken() ? exit_code::kFailed : exit_code::kDone;
}

} // namespace bulkhead::cli
