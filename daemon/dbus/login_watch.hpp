// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sdbus-c++/sdbus-c++.h>

#include <functional>

namespace bulkhead::dbus {

/// Tells when the host has woken, as the login manager says where there is one (it also says so of sleeps in which the
/// clock did not stand). Loop thread only.
class LoginWatch {
public:
    /// `woke` is called on the loop's thread. `connection` must outlive this.
    LoginWatch(sdbus::IConnection& connection, std::function<void()> woke);

private:
    sdbus::Slot m_signal;
};

} // namespace bulkhead::dbus
