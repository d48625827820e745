// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/domain_gate.hpp"

#include "screen_without_guest.hpp"
#include "session_peer.hpp"

#include <memory>

namespace bulkhead::test {

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
