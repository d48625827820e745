// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "process/spawn.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::tests {

/// The user that helpers of tests run as: never root.
inline uid_t helperUid() {
    return ::geteuid() == 0 ? 65534 : ::geteuid();
}

inline void runAsHelper(process::ProcessSpec& spec) {
    if (::geteuid() == 0) {
        spec.identity = process::Identity{65534, 65534};
    }
}

/// A child that can be killed with all that it started.
class Helper {
public:
    explicit Helper(process::Child child)
        : m_child(std::move(child)) {}
    ~Helper() { end(); }
    Helper(Helper&&) = default;
    Helper& operator=(Helper&&) = delete;
    void end() {
        if (m_child.pid > 0) {
            ::kill(-m_child.pid, SIGKILL);
            ::waitpid(m_child.pid, nullptr, 0);
            m_child = {};
        }
    }
    void signal(int number) const { ::kill(m_child.pid, number); }
    [[nodiscard]] pid_t pid() const { return m_child.pid; }

private:
    process::Child m_child;
};

/// A real libvirtd of an unprivileged user in a folder of its own, which serves libvirt's test driver. It can be
/// killed, stopped and started without any effect on the host's libvirtd.
class TestLibvirtd {
public:
    TestLibvirtd() {
        if (::chown(qPrintable(m_folder.path()), helperUid(), static_cast<gid_t>(-1)) != 0) {
            qFatal("cannot give the test's folder away");
        }
    }

    /// True when it accepts connections.
    bool start() {
        const auto folder = m_folder.path().toStdString();
        process::ProcessSpec spec;
        spec.program = "/usr/sbin/libvirtd";
        spec.environment = process::toolEnvironment();
        for (const char* name : {"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) {
            spec.environment.push_back(std::string(name) + "=" + folder);
        }
        runAsHelper(spec);
        auto child = process::spawn(spec);
        if (!child) {
            qWarning("%s", child.error().message.c_str());
            return false;
        }
        m_process.emplace(std::move(*child));
        return QTest::qWaitFor([this] { return accepts(); }, 20'000);
    }
    void kill() { m_process.reset(); }
    void stop() { m_process->signal(SIGSTOP); }
    void goOn() { m_process->signal(SIGCONT); }

    [[nodiscard]] std::string uri() const { return "test+unix:///default?socket=" + socketPath(); }

private:
    [[nodiscard]] std::string socketPath() const { return m_folder.path().toStdString() + "/libvirt/libvirt-sock"; }
    [[nodiscard]] bool accepts() const {
        const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socketPath().copy(address.sun_path, sizeof(address.sun_path) - 1);
        return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }

    QTemporaryDir m_folder;
    std::optional<Helper> m_process;
};

} // namespace bulkhead::tests
