// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/domain_gate.hpp"

#include "children.hpp"
#include "dbus/interfaces/session_stream.hpp"

#include <QTemporaryDir>

#include <memory>
#include <vector>

namespace bulkhead::test {

/// QEMU with a SPICE server and no guest: the firmware's text is its picture.
class ScreenWithoutGuest {
public:
    explicit ScreenWithoutGuest(int heads);
    void restart();
    void stop() { m_qemu.reset(); }
    /// A connected socket; -1 when it does not listen.
    [[nodiscard]] int connectOnce() const;
    /// What the devices saw of the user: lines of QEMU's trace.
    [[nodiscard]] QByteArray inputTrace() const;

private:
    QTemporaryDir m_folder;
    QStringList m_argv;
    std::unique_ptr<Child> m_qemu;
};

/// The other end of a session stream, played by the test.
class SessionPeer {
public:
    /// Our end; the viewer's goes into `theirs`.
    explicit SessionPeer(client::Descriptor& theirs);

    void up(std::uint32_t heads = 8);
    void down();
    void window(std::uint32_t id, std::uint32_t head, const char* title, std::uint32_t flags = 0,
                std::uint32_t width = 720, std::uint32_t height = 400);
    void gone(std::uint32_t id);
    /// False: the viewer does not take more now.
    bool send(const session_stream::Event& event);
    bool sendBytes(const QByteArray& bytes);
    /// All commands that have come meanwhile.
    std::vector<session_stream::Command> commands();

private:
    client::Descriptor m_descriptor;
};

session_stream::Event windowEvent(std::uint32_t id, std::uint32_t head, const QByteArray& title, std::uint32_t flags,
                                  std::uint32_t width, std::uint32_t height);

/// A domain played by the test: states as it says, displays from QEMU, sessions from a socket pair.
class FakeDomain : public viewer::DomainGate {
    Q_OBJECT

public:
    explicit FakeDomain(ScreenWithoutGuest* screen)
        : m_screen(screen) {}

    void setState(const QString& state, const QString& reason = {});
    viewer::DomainFacts facts{"5b1c5d0e-0000-4000-8000-000000000001", "work", "blue", "running", ""};
    bool sessionRefused = false;
    std::unique_ptr<SessionPeer> peer; ///< of the last session that was opened
    int sessions = 0;
    int displays = 0;

    void watch() override;
    void openDisplay(client::Callback<client::Descriptor> done) override;
    void openSession(client::Callback<client::Descriptor> done) override;

private:
    ScreenWithoutGuest* m_screen;
};

} // namespace bulkhead::test
