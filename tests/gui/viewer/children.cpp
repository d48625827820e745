// SPDX-License-Identifier: Apache-2.0
#include "children.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::test {

Child::Child(const QStringList& argv, int inheritedFd, const QStringList& environment) {
    std::vector<QByteArray> words;
    for (const QString& word : argv) {
        words.push_back(word.toLocal8Bit());
    }
    std::vector<char*> pointers;
    for (QByteArray& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    std::vector<QByteArray> variables;
    for (const QString& variable : environment) {
        variables.push_back(variable.toLocal8Bit());
    }
    m_pid = ::fork();
    if (m_pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (inheritedFd >= 0) {
            ::fcntl(inheritedFd, F_SETFD, 0);
        }
        for (QByteArray& variable : variables) {
            ::putenv(variable.data());
        }
        ::execvp(pointers.front(), pointers.data());
        ::_exit(127);
    }
}

Child::~Child() {
    stop();
}

bool Child::runs() const {
    return m_pid > 0 && ::waitpid(m_pid, nullptr, WNOHANG) == 0;
}

void Child::stop() {
    if (m_pid > 0) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
        m_pid = -1;
    }
}

VirtualScreen::VirtualScreen() {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        return;
    }
    m_server = new Child({"Xvfb", "-displayfd", QString::number(pipe[1]), "-screen", "0", "1600x1000x24", "-nolisten",
                          "tcp", "-noreset"},
                         pipe[1]);
    ::close(pipe[1]);
    // One line with the number, once the server takes clients.
    char character = 0;
    pollfd ready{pipe[0], POLLIN, 0};
    QByteArray number;
    while (::poll(&ready, 1, 30000) > 0 && ::read(pipe[0], &character, 1) == 1 && character != '\n') {
        number += character;
    }
    ::close(pipe[0]);
    if (!number.isEmpty()) {
        m_display = ':' + number;
        qputenv("DISPLAY", m_display);
        qputenv("QT_QPA_PLATFORM", "xcb");
    }
}

VirtualScreen::~VirtualScreen() {
    delete m_server;
}

} // namespace bulkhead::test
