// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/interrupts.hpp"
#include "cli/output/progress_line.hpp"
#include "client/failure.hpp"
#include "client/manager.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>
#include <QEventLoop>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bulkhead::cli {

/// One verb's conversation with the daemon: waits for answers and jobs while it listens to Ctrl-C. Needs a
/// QCoreApplication; one thread.
class Session {
public:
    Session(QDBusConnection connection, Interrupts& interrupts);

    [[nodiscard]] const QDBusConnection& connection() const { return m_connection; }
    [[nodiscard]] client::Manager& manager() { return m_manager; }
    [[nodiscard]] Interrupts& interrupts() { return m_interrupts; }

    /// Runs `begin`, which is given the callback, and waits for that to be called. A signal ends the wait with
    /// Interrupted, `limit` with TimedOut.
    template <class T>
    client::Outcome<T> await(const std::function<void(client::Callback<T>)>& begin,
                             std::optional<std::chrono::milliseconds> limit = std::nullopt) {
        // Shared, since an answer may still come after the wait was given up.
        auto answer = std::make_shared<std::optional<client::Outcome<T>>>();
        auto wake = std::make_shared<std::function<void()>>();
        begin([answer, wake](client::Outcome<T> outcome) {
            *answer = std::move(outcome);
            if (*wake) {
                (*wake)();
            }
        });
        QEventLoop loop;
        *wake = [&loop] { loop.quit(); };
        const auto stopped = answer->has_value() ? std::nullopt : wait(loop, limit);
        *wake = nullptr;
        if (answer->has_value()) {
            if (stopped && stopped->signal != 0) {
                m_interrupts.putBack(stopped->signal); // came with the answer: the next step sees it
            }
            return std::move(**answer);
        }
        return tl::unexpected<client::Failure>(
            stopped.value_or(client::Failure{client::code::kHostFailure, "the wait ended without an answer"}));
    }

    /// Follows a job to its end, showing progress under `title`. The first Ctrl-C cancels it and waits for it to be
    /// undone (then Interrupted); the second leaves at once.
    client::Outcome<QVariantMap> follow(const QDBusObjectPath& job, const std::string& title, ProgressStyle style);

private:
    std::optional<client::Failure> wait(QEventLoop& loop, std::optional<std::chrono::milliseconds> limit);

    QDBusConnection m_connection;
    Interrupts& m_interrupts;
    client::Manager m_manager;
};

/// Connects to the daemon's bus. Fails with BusUnavailable.
client::Outcome<std::unique_ptr<Session>> openSession(Interrupts& interrupts);

} // namespace bulkhead::cli
