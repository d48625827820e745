// SPDX-License-Identifier: Apache-2.0
#include "fake_guest.hpp"

#include <QTimer>

#include <array>
#include <sys/socket.h>

namespace bulkhead::test {

void FakeDomain::setState(const QString& state, const QString& reason) {
    facts.state = state;
    facts.reason = reason;
    Q_EMIT factsChanged(facts);
}

void FakeDomain::watch() {
    QTimer::singleShot(0, this, [this] { Q_EMIT factsChanged(facts); });
}

void FakeDomain::openDisplay(client::Callback<client::Descriptor> done) {
    QTimer::singleShot(0, this, [this, done = std::move(done)] {
        ++displays;
        const int fd = m_screen == nullptr ? -1 : m_screen->connectOnce();
        if (fd < 0) {
            done(client::failed(client::code::kHostFailure, "nothing listens"));
        } else {
            done(client::Descriptor(fd));
        }
    });
}

void FakeDomain::openSession(client::Callback<client::Descriptor> done) {
    QTimer::singleShot(0, this, [this, done = std::move(done)] {
        if (sessionRefused) {
            done(client::failed(client::code::kGuestFailure, "the guest has no desktop"));
            return;
        }
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            done(client::failed(client::code::kHostFailure, "no socket pair"));
            return;
        }
        peer = std::make_unique<SessionPeer>(client::Descriptor(ends[0]));
        ++sessions;
        done(client::Descriptor(ends[1]));
    });
}

} // namespace bulkhead::test
