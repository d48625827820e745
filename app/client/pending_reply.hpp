// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <QDBusError>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>

#include <climits>
#include <utility>

namespace bulkhead::client {

/// D-Bus's word for "no time-out". The bus itself answers when the daemon goes, and the user can press Ctrl-C; a
/// time-out would only lie about work that goes on (polkit may ask a person, a disk may be made).
inline constexpr int kNoTimeout = INT_MAX;

/// Hands the answer of `reply` to `done`, after `convert` (a function of the reply) made a T of it. `context` bounds
/// the wait: once it is destroyed nothing is called any more.
template <class T, class Convert, class... Args>
void whenDone(const QDBusPendingReply<Args...>& reply, QObject* context, Callback<T> done, Convert convert) {
    auto* watcher = new QDBusPendingCallWatcher(reply, context);
    QObject::connect(watcher, &QDBusPendingCallWatcher::finished, context,
                     [done = std::move(done), convert = std::move(convert)](QDBusPendingCallWatcher* finished) {
                         finished->deleteLater();
                         QDBusPendingReply<Args...> answer = *finished;
                         if (answer.isError()) {
                             done(tl::unexpected<Failure>(failureFrom(answer.error())));
                         } else {
                             done(convert(answer));
                         }
                     });
}

} // namespace bulkhead::client
