// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"
#include "dbus/interfaces/session_stream.hpp"

#include <QByteArray>

#include <utility>
#include <vector>

namespace bulkhead::test {

/// The other end of a session stream, played by the test.
class SessionPeer {
public:
    explicit SessionPeer(client::Descriptor descriptor)
        : m_descriptor(std::move(descriptor)) {}

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

} // namespace bulkhead::test
