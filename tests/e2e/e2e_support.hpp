// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QByteArray>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>
#include <QString>
#include <QStringList>
#include <QTest>

#include <csignal>
#include <functional>

/// What the tests with real guests share: running commands as a user would, inside tests/support/host/private_host.
namespace bulkhead::e2e {

/// A guest boots in a few seconds here; a busy machine may take ten times as long before a test is called stuck.
constexpr int kPatienceMs = 180'000;

struct Outcome {
    int status = -1; ///< as a shell has it: 128 + signal when the command itself was killed
    QByteArray output;
    QByteArray error;

    [[nodiscard]] QByteArray text() const {
        return "status " + QByteArray::number(status) + "\nstdout: " + output.left(2000) +
               "\nstderr: " + error.left(4000);
    }
};

/// A command that runs beside the test.
class Running {
public:
    explicit Running(const QStringList& command) {
        m_process.setProgram(command.front());
        m_process.setArguments(command.mid(1));
        m_process.start();
    }
    void write(const QByteArray& input) { m_process.write(input); }
    void closeInput() { m_process.closeWriteChannel(); }
    void signal(int number) { ::kill(static_cast<pid_t>(m_process.processId()), number); }
    /// Waits until `text` has come on standard output.
    bool waitFor(const QByteArray& text, int ms = kPatienceMs) {
        QElapsedTimer timer;
        timer.start();
        while (!m_seen.contains(text)) {
            const auto left = ms - timer.elapsed();
            if (left <= 0 || (!m_process.waitForReadyRead(static_cast<int>(left)) &&
                              m_process.state() == QProcess::NotRunning && m_process.bytesAvailable() == 0)) {
                m_seen += m_process.readAllStandardOutput();
                return m_seen.contains(text);
            }
            m_seen += m_process.readAllStandardOutput();
        }
        return true;
    }
    Outcome wait(int ms = kPatienceMs) {
        Outcome outcome;
        if (!m_process.waitForFinished(ms) && m_process.state() != QProcess::NotRunning) {
            m_process.kill();
            m_process.waitForFinished();
            outcome.error = "[killed by the test: it took too long] ";
        }
        outcome.status =
            m_process.exitStatus() == QProcess::NormalExit ? m_process.exitCode() : 128 + m_process.exitCode();
        outcome.output = m_seen + m_process.readAllStandardOutput();
        outcome.error += m_process.readAllStandardError();
        return outcome;
    }
    [[nodiscard]] bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

private:
    QProcess m_process;
    QByteArray m_seen;
};

inline Outcome run(const QStringList& command, const QByteArray& input = {}, int ms = kPatienceMs) {
    Running running(command);
    if (!input.isEmpty()) {
        running.write(input);
    }
    running.closeInput();
    return running.wait(ms);
}

inline Outcome cli(const QStringList& arguments, const QByteArray& input = {}) {
    return run(QStringList{"bulkhead"} + arguments, input);
}

/// The rows of `bulkhead … --json`.
inline QJsonArray jsonRows(const QStringList& arguments) {
    return QJsonDocument::fromJson(cli(arguments + QStringList{"--json"}).output).array();
}

inline QString stateOf(const QString& domain) {
    return QJsonDocument::fromJson(cli({"domain", "show", domain, "--json"}).output).object().value("state").toString();
}

/// What is left of running domains, wherever something could be: our list, libvirt's, the image store, processes.
inline QStringList traces() {
    QStringList found;
    for (const auto& row : jsonRows({"domain", "ls"})) {
        const auto state = row.toObject().value("state").toString();
        if (row.toObject().value("kind").toString() == "disposable" || (state != "stopped" && state != "failed")) {
            found << "domain " + row.toObject().value("name").toString() + " " + state;
        }
    }
    for (const auto& line : run({"virsh", "list", "--all", "--name"}).output.split('\n')) {
        if (!line.trimmed().isEmpty()) {
            found << "libvirt " + line.trimmed();
        }
    }
    for (const char* folder : {"/var/lib/bulkhead/instances", "/run/bulkhead/instances", "/run/bulkhead/channels"}) {
        for (const auto& entry : QDir(folder).entryList(QDir::AllEntries | QDir::System | QDir::NoDotAndDotDot)) {
            found << QString(folder) + "/" + entry;
        }
    }
    const auto processes = run({"ps", "-eo", "comm"}).output;
    for (const char* name : {"qemu-system-x86", "bulkhead-channe"}) {
        if (processes.contains(name)) {
            found << QString("process ") + name;
        }
    }
    return found;
}

/// Clean-up goes on behind the command's end, so this waits for it, and says what stayed.
#define VERIFY_NO_TRACES()                                                                                             \
    do {                                                                                                               \
        QTRY_VERIFY2_WITH_TIMEOUT(bulkhead::e2e::traces().isEmpty(), qPrintable(bulkhead::e2e::traces().join(", ")),   \
                                  20000);                                                                              \
    } while (false)

#define COMPARE_STATUS(outcome, expected)                                                                              \
    do {                                                                                                               \
        const auto& theOutcome = (outcome);                                                                            \
        QVERIFY2(theOutcome.status == (expected), theOutcome.text().constData());                                      \
    } while (false)

inline QByteArray pidsOf(const QByteArray& name) {
    return run({"pidof", QString::fromLatin1(name)}).output.trimmed();
}

/// The emulators of domains, separated by spaces: not those that libvirt starts for a moment to ask what they can do.
inline QByteArray emulatorPids() {
    return run({"pgrep", "--delimiter", " ", "--full", "qemu-system-x86_64 -name guest=bh-"}).output.trimmed();
}

} // namespace bulkhead::e2e
