// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake_bulkhead.hpp"
#include "private_bus.hpp"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>
#include <QTimer>

#include <csignal>
#include <functional>

namespace bulkhead::tests {

/// How a run of the real program ended.
struct Ended {
    int code = -1;
    QByteArray out;
    QByteArray err;
    /// The last line of standard error as JSON.
    [[nodiscard]] QJsonObject json() const {
        return QJsonDocument::fromJson(err.trimmed().split('\n').last()).object();
    }
};

/// The program `bulkhead` as a child of the test, on the test's bus. The double answers from the same thread, so every
/// wait runs the event loop.
class Cli {
public:
    explicit Cli(const QString& busAddress) {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("BULKHEAD_BUS_ADDRESS", busAddress);
        environment.insert("FROM_HERE", "value");
        environment.insert("XDG_DATA_HOME", "/nonexistent"); // not the menu of who runs the tests
        process.setProcessEnvironment(environment);
    }
    ~Cli() {
        process.kill();
        process.waitForFinished();
    }

    void start(const QStringList& arguments) {
        process.start(BULKHEAD_PROGRAM, arguments);
        QVERIFY(process.waitForStarted());
    }
    /// Runs `line` in bash, where $BULKHEAD is the program.
    void startShell(const QString& line) {
        QProcessEnvironment environment = process.processEnvironment();
        environment.insert("BULKHEAD", BULKHEAD_PROGRAM);
        process.setProcessEnvironment(environment);
        process.start("bash", {"-o", "pipefail", "-c", line});
        QVERIFY(process.waitForStarted());
    }
    void signal(int number) const { ::kill(static_cast<pid_t>(process.processId()), number); }
    /// Waits until `text` stands in standard output.
    bool waitForOutput(const QByteArray& text) {
        return waitUntil([&] {
            out += process.readAllStandardOutput();
            return out.contains(text);
        });
    }
    Ended finish(const QByteArray& input = {}) {
        if (!input.isEmpty()) {
            process.write(input);
        }
        process.closeWriteChannel();
        return wait();
    }
    Ended wait() {
        if (!waitUntil([&] { return process.state() == QProcess::NotRunning; })) {
            process.kill();
            process.waitForFinished();
            return {-99, out + process.readAllStandardOutput(),
                    "the program did not end: " + process.readAllStandardError()};
        }
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -process.exitCode(),
                out + process.readAllStandardOutput(), process.readAllStandardError()};
    }
    /// Runs the event loop until `condition` holds. (QTest::qWaitFor sleeps 10 ms after each event.)
    static bool waitUntil(const std::function<bool()>& condition) {
        QTimer tick; // conditions that another thread makes true bring no event
        tick.start(10);
        QElapsedTimer elapsed;
        for (elapsed.start(); !condition();) {
            if (elapsed.elapsed() > 30'000) {
                return false;
            }
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        }
        return true;
    }

    QProcess process;
    QByteArray out;
};

} // namespace bulkhead::tests
