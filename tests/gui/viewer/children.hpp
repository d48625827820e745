// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>

#include <sys/types.h>

namespace bulkhead::test {

/// A program that runs for as long as this lives; it also ends when the test is killed.
class Child {
public:
    /// `inheritedFd`: a descriptor that it keeps under the same number, or -1. `environment`: NAME=VALUE, besides ours.
    explicit Child(const QStringList& argv, int inheritedFd = -1, const QStringList& environment = {});
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    [[nodiscard]] bool runs() const;
    void stop();

private:
    pid_t m_pid = -1;
};

/// An X server without a screen to see, and DISPLAY set to it. Make it before the QApplication.
class VirtualScreen {
public:
    VirtualScreen();
    ~VirtualScreen();
    [[nodiscard]] bool works() const { return !m_display.isEmpty(); }

private:
    QByteArray m_display;
    Child* m_server = nullptr;
};

} // namespace bulkhead::test
