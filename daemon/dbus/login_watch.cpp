// SPDX-License-Identifier: Apache-2.0
#include "dbus/login_watch.hpp"

#include "base/log.hpp"

namespace bulkhead::dbus {

LoginWatch::LoginWatch(sdbus::IConnection& connection, std::function<void()> woke)
    // The bus gives us only what the name's owner sends.
    : m_signal(connection.addMatch("type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1',"
                                   "interface='org.freedesktop.login1.Manager',member='PrepareForSleep'",
                                   [woke = std::move(woke)](sdbus::Message& message) {
                                       bool isBeginning = false;
                                       message >> isBeginning;
                                       if (isBeginning) {
                                           log::notice("the host goes to sleep");
                                       } else {
                                           log::notice("the host has woken, says the login manager");
                                           woke();
                                       }
                                   })) {}

} // namespace bulkhead::dbus
