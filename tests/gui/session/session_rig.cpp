// SPDX-License-Identifier: Apache-2.0
#include "session_rig.hpp"

#include "channel/session_validator.hpp"

#include <QElapsedTimer>
#include <QFile>
#include <QProcessEnvironment>

#include <array>
#include <cerrno>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace bulkhead::tests {
namespace {

constexpr const char* kManyHeads = R"(
Section "ServerFlags"
    Option "AutoAddDevices" "false"
    Option "AutoAddGPU" "false"
    Option "DontVTSwitch" "true"
EndSection
Section "Device"
    Identifier "many"
    Driver "dummy"
    VideoRam 262144
EndSection
Section "Screen"
    Identifier "screen"
    Device "many"
    DefaultDepth 24
    SubSection "Display"
        Depth 24
        Virtual 1024 768
    EndSubSection
EndSection
)";

} // namespace

XServer::XServer(Kind kind, const QString& folder) {
    QStringList arguments{"-displayfd", "1", "-nolisten", "tcp", "-noreset"};
    if (kind == Kind::OneScreen) {
        m_process.setProgram("Xvfb");
        arguments << "-screen"
                  << "0"
                  << "1280x1024x24";
    } else {
        const QString path = folder + "/xorg.conf";
        QFile file(path);
        if (file.open(QIODevice::WriteOnly)) {
            file.write(kManyHeads);
        }
        file.close();
        m_process.setProgram("/usr/lib/xorg/Xorg");
        // A seat of no hardware: it keeps off the consoles of the machine.
        arguments << "-config" << path << "-logfile" << folder + "/xorg.log"
                  << "-seat"
                  << "bulkhead-test"
                  << "-novtswitch"
                  << "-sharevts";
    }
    m_process.setArguments(arguments);
    m_process.setStandardErrorFile(folder + "/x.err");
    m_process.start();
    QByteArray output;
    QElapsedTimer timer;
    timer.start();
    while (!output.contains('\n') && timer.elapsed() < 30'000 && m_process.state() != QProcess::NotRunning) {
        m_process.waitForReadyRead(1000);
        output += m_process.readAllStandardOutput();
    }
    if (output.contains('\n')) {
        m_display = ":" + output.trimmed().toStdString();
    }
}

XServer::~XServer() {
    kill();
}

void XServer::kill() {
    m_process.terminate();
    if (!m_process.waitForFinished(10'000)) {
        m_process.kill();
        m_process.waitForFinished();
    }
}

AgentEnd::AgentEnd(const std::string& path)
    : m_listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    if (::bind(m_listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(m_listener.get(), 4) != 0) {
        qFatal("no socket at %s", path.c_str());
    }
}

bool AgentEnd::waitUntil(const std::function<bool()>& done, int timeoutMs) {
    QElapsedTimer timer;
    timer.start();
    for (;;) {
        take();
        if (done()) {
            return true;
        }
        const auto left = timeoutMs - timer.elapsed();
        if (left <= 0) {
            return false;
        }
        // Also things that are not told over the socket are waited for.
        std::array<pollfd, 2> entries{pollfd{m_listener.get(), POLLIN, 0},
                                      pollfd{m_isReading ? m_fd.get() : -1, POLLIN, 0}};
        ::poll(entries.data(), entries.size(), static_cast<int>(std::min<qint64>(left, 20)));
    }
}

void AgentEnd::take() {
    UniqueFd fresh(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fresh) {
        m_fd = std::move(fresh);
        m_reader = {};
        m_windows.clear();
        m_heads = 0;
    }
    while (m_fd && m_isReading) {
        std::array<std::byte, 65536> buffer{};
        const ssize_t count = ::read(m_fd.get(), buffer.data(), buffer.size());
        if (count < 0) {
            return;
        }
        if (count == 0) {
            m_fd.reset();
            return;
        }
        if (!m_reader.feed(std::span(buffer).first(static_cast<std::size_t>(count)))) {
            m_complaint = "a message is too long";
        }
        while (const auto message = m_reader.next()) {
            look(*message);
        }
    }
}

void AgentEnd::look(const std::string& message) {
    ++m_messages;
    session::Event event;
    if (!channel::checkSessionEvent(channel::GuestMessage(message)) || !event.ParseFromString(message)) {
        m_complaint = "the host refuses this message: " + event.ShortDebugString();
        return;
    }
    if (m_heads == 0 && !event.has_up()) {
        m_complaint = "something was said before SessionUp";
    }
    switch (event.kind_case()) {
    case session::Event::kUp:
        m_heads = event.up().heads();
        m_windows.clear();
        ++m_ups;
        break;
    case session::Event::kWindowChanged:
        m_windows[event.window_changed().window()] = event.window_changed();
        break;
    case session::Event::kWindowGone:
        if (m_windows.erase(event.window_gone().window()) == 0) {
            m_complaint = "a window is gone that was not there";
        }
        break;
    case session::Event::kWindowsListed:
        ++m_listed;
        break;
    case session::Event::kApp:
        m_apps.push_back(event.app());
        break;
    case session::Event::kAppsListed:
        m_appsListed = event.apps_listed().count() == m_apps.size();
        break;
    case session::Event::kAppLaunched:
        m_launched = event.app_launched();
        break;
    case session::Event::kDown:
    case session::Event::KIND_NOT_SET:
        m_complaint = "not for a session to say";
        break;
    }
}

void AgentEnd::send(const session::Command& command) {
    const auto framed = protocol::frameMessage(command.SerializeAsString());
    if (::send(m_fd.get(), framed.data(), framed.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(framed.size())) {
        m_complaint = "a command was not taken";
    }
}

bool AgentEnd::sync() {
    const int before = m_listed;
    session::Command command;
    command.mutable_list_windows();
    send(command);
    return waitUntil([&] { return m_listed > before; });
}

void AgentEnd::hangUp() {
    m_fd.reset();
}

std::optional<session::WindowChanged> AgentEnd::window(const std::string& title) const {
    for (const auto& [number, window] : m_windows) {
        if (window.title() == title) {
            return window;
        }
    }
    return std::nullopt;
}

SessionProcess::SessionProcess(const std::string& display, const std::string& socket, int heads,
                               const std::map<QString, QString>& environment) {
    auto variables = QProcessEnvironment::systemEnvironment();
    variables.remove("DISPLAY");
    for (const auto& [name, value] : environment) {
        variables.insert(name, value);
    }
    m_process.setProcessEnvironment(variables);
    m_process.setProgram(BULKHEAD_SESSION);
    m_process.setArguments({"--display", QString::fromStdString(display), "--socket", QString::fromStdString(socket),
                            "--heads", QString::number(heads)});
    m_process.start();
    m_process.waitForStarted();
}

SessionProcess::~SessionProcess() {
    kill();
}

void SessionProcess::kill() {
    m_process.kill();
    m_process.waitForFinished();
}

int SessionProcess::end() {
    m_process.waitForFinished(10'000);
    return m_process.exitStatus() == QProcess::NormalExit && !isRunning() ? m_process.exitCode() : -1;
}

long SessionProcess::residentKiB() const {
    std::ifstream status("/proc/" + std::to_string(m_process.processId()) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::stol(line.substr(6));
        }
    }
    return -1;
}

double SessionProcess::cpuSeconds() const {
    std::ifstream stat("/proc/" + std::to_string(m_process.processId()) + "/stat");
    std::string text;
    std::getline(stat, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) {
        fields >> skipped;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / double(::sysconf(_SC_CLK_TCK));
}

QByteArray runTool(const std::string& display, const QString& program, const QStringList& arguments) {
    QProcess process;
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("DISPLAY", QString::fromStdString(display));
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    process.waitForFinished(20'000);
    return process.readAllStandardOutput();
}

} // namespace bulkhead::tests
