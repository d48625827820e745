// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"
#include "dbus/interfaces/session_stream.hpp"

#include <QObject>
#include <QSocketNotifier>

#include <functional>
#include <memory>

namespace bulkhead::client {

/// A client's end of a domain's session stream (Domain::openSession): windows and apps. One thread, with an event loop.
class SessionStream {
public:
    struct Events {
        /// Each record, in order. It may destroy the stream.
        std::function<void(const session_stream::Event& event)> received;
        /// Once, at the last: the domain or its channel process is gone, or sent something else than records.
        std::function<void()> ended;
    };
    SessionStream(Descriptor descriptor, Events events);

    /// False: the stream has ended, or the other side takes no more for now.
    bool send(const session_stream::Command& command);

private:
    void onReadable();

    Descriptor m_descriptor;
    Events m_events;
    QSocketNotifier m_notifier;
    /// Gone as soon as this is: an event may end it.
    std::shared_ptr<bool> m_isAlive = std::make_shared<bool>(true);
};

/// A command whose `text` is that, cut where it does not fit.
session_stream::Command commandWith(session_stream::CommandKind kind, const QString& text);

} // namespace bulkhead::client
