// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/message_stream.hpp"
#include "protocol/session.pb.h"

#include <QProcess>
#include <QString>
#include <QTemporaryDir>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::tests {

/// An X server of our own on a display that was free; ends with this object.
class XServer {
public:
    enum class Kind { OneScreen, ManyHeads };
    explicit XServer(Kind kind, const QString& folder);
    ~XServer();
    /// ":N"; empty: it did not come up.
    [[nodiscard]] const std::string& display() const { return m_display; }
    void kill();

private:
    QProcess m_process;
    std::string m_display;
};

/// The agent's end: takes the session's connection and keeps what it says. Each message goes through the host's own
/// validator.
class AgentEnd {
public:
    explicit AgentEnd(const std::string& path);

    /// Takes what has come until `done`, or for this long. Says which.
    bool waitUntil(const std::function<bool()>& done, int timeoutMs = 10'000);
    void send(const session::Command& command);
    /// Asks for all windows and waits until they are listed: whatever came before has been dealt with.
    bool sync();
    /// Ends the connection; the session comes again.
    void hangUp();
    /// Does not read for a while.
    void setReading(bool isReading) { m_isReading = isReading; }

    [[nodiscard]] const std::map<std::uint32_t, session::WindowChanged>& windows() const { return m_windows; }
    /// The window with this title.
    [[nodiscard]] std::optional<session::WindowChanged> window(const std::string& title) const;
    bool waitForWindow(const std::string& title) {
        return waitUntil([&] { return window(title).has_value(); });
    }
    [[nodiscard]] std::uint32_t heads() const { return m_heads; }
    [[nodiscard]] int ups() const { return m_ups; }
    [[nodiscard]] std::size_t messages() const { return m_messages; }
    [[nodiscard]] const std::vector<session::App>& apps() const { return m_apps; }
    [[nodiscard]] bool appsListed() const { return m_appsListed; }
    [[nodiscard]] const std::optional<session::AppLaunched>& launched() const { return m_launched; }
    /// What was wrong with a message; empty: nothing.
    [[nodiscard]] const std::string& complaint() const { return m_complaint; }

private:
    void take();
    void look(const std::string& message);

    UniqueFd m_listener;
    UniqueFd m_fd;
    protocol::MessageReader m_reader;
    bool m_isReading = true;
    std::map<std::uint32_t, session::WindowChanged> m_windows;
    std::uint32_t m_lastNumber = 0;
    std::uint32_t m_heads = 0;
    int m_ups = 0;
    int m_listed = 0;
    std::size_t m_messages = 0;
    std::vector<session::App> m_apps;
    bool m_appsListed = false;
    std::optional<session::AppLaunched> m_launched;
    std::string m_complaint;
};

/// The program itself.
class SessionProcess {
public:
    SessionProcess(const std::string& display, const std::string& socket, int heads,
                   const std::map<QString, QString>& environment = {});
    ~SessionProcess();
    [[nodiscard]] bool isRunning() const { return m_process.state() == QProcess::Running; }
    void kill();
    /// Waits for its end; its exit status.
    int end();
    QByteArray errors() { return m_process.readAllStandardError(); }
    [[nodiscard]] long residentKiB() const;
    [[nodiscard]] double cpuSeconds() const;

private:
    QProcess m_process;
};

/// Runs a program of the X tools on a display and gives what it printed.
QByteArray runTool(const std::string& display, const QString& program, const QStringList& arguments);

} // namespace bulkhead::tests
