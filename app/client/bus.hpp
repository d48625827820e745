// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <QDBusConnection>

namespace bulkhead::client {

inline constexpr const char* kServiceName = "org.bulkhead1";
inline constexpr const char* kManagerPath = "/org/bulkhead1";
/// Names another message bus than the system's, by its address. For tests and private set-ups.
inline constexpr const char* kBusAddressVariable = "BULKHEAD_BUS_ADDRESS";

/// Connects to the system bus, or to the one that BULKHEAD_BUS_ADDRESS names. Needs a QCoreApplication. Fails with
/// BusUnavailable.
Outcome<QDBusConnection> connectToBus();

/// "the system bus" or "the bus at ADDRESS": where connectToBus() goes, for messages.
std::string busDescription();

} // namespace bulkhead::client
