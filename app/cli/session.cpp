// SPDX-License-Identifier: Apache-2.0
#include "cli/session.hpp"

#include "client/bus.hpp"
#include "client/job.hpp"
#include "client/terminal_text.hpp"

#include <QCoreApplication>
#include <QEvent>
#include <QSocketNotifier>
#include <QTimer>

#include <csignal>
#include <cstdio>

namespace bulkhead::cli {
namespace {

bool isLeaving(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

client::Failure interrupted(int signal) {
    return {client::code::kInterrupted, "interrupted", signal};
}

} // namespace

Session::Session(QDBusConnection connection, Interrupts& interrupts)
    : m_connection(std::move(connection))
    , m_interrupts(interrupts)
    , m_manager(m_connection) {}

std::optional<client::Failure> Session::wait(QEventLoop& loop, std::optional<std::chrono::milliseconds> limit) {
    std::optional<client::Failure> stopped;
    QSocketNotifier notifier(m_interrupts.descriptor(), QSocketNotifier::Read);
    QObject::connect(&notifier, &QSocketNotifier::activated, &loop, [&] {
        while (const auto signal = m_interrupts.next()) {
            if (isLeaving(*signal)) {
                stopped = interrupted(*signal);
                loop.quit();
            }
        }
    });
    if (limit) {
        QTimer::singleShot(*limit, &loop, [&] {
            stopped = client::Failure{client::code::kTimedOut, "no answer in time"};
            loop.quit();
        });
    }
    loop.exec();
    // An answered call's message goes by deleteLater(), and holds copies of its descriptors until then. Once the pump
    // runs there is no event loop any more: a copy left here would keep the guest from seeing us close ours.
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    return stopped;
}

client::Outcome<QVariantMap> Session::follow(const QDBusObjectPath& job, const std::string& title,
                                             ProgressStyle style) {
    ProgressLine line(title, style);
    QEventLoop loop;
    std::optional<client::Outcome<QVariantMap>> end;
    client::JobWatch watch(
        m_connection, job, [&](const client::JobProgress& progress) { line.update(progress); },
        [&](client::Outcome<QVariantMap> outcome) {
            end = std::move(outcome);
            loop.quit();
        });
    std::optional<int> signalled;
    while (!end) {
        const auto stopped = wait(loop, std::nullopt);
        if (!stopped) {
            continue;
        }
        if (end) {
            m_interrupts.putBack(stopped->signal); // too late for the job: the next step sees it
            break;
        }
        if (signalled) {
            return tl::unexpected<client::Failure>(interrupted(stopped->signal));
        }
        signalled = stopped->signal;
        watch.cancel();
        line.update({QStringLiteral("cancelling"), -1});
    }
    if (signalled && !*end && end->error().code == client::code::kCancelled) {
        return tl::unexpected<client::Failure>(
            client::Failure{client::code::kInterrupted, "cancelled, nothing is left of it", *signalled});
    }
    if (*end && style != ProgressStyle::Silent) {
        // A job that succeeded, but not as one would expect: a domain that had to boot, say.
        if (const QString note = (*end)->value(QStringLiteral("note")).toString(); !note.isEmpty()) {
            line.clear();
            std::fprintf(stderr, "bulkhead: %s\n", client::terminalSafe(note).c_str());
        }
    }
    return std::move(*end);
}

client::Outcome<std::unique_ptr<Session>> openSession(Interrupts& interrupts) {
    auto connection = client::connectToBus();
    if (!connection) {
        return tl::unexpected<client::Failure>(connection.error());
    }
    return std::make_unique<Session>(*connection, interrupts);
}

} // namespace bulkhead::cli
