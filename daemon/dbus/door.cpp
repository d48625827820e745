// SPDX-License-Identifier: Apache-2.0
#include "dbus/door.hpp"

#include "dbus/method_table.hpp"

#include <sdbus-c++/sdbus-c++.h>

namespace bulkhead::dbus {

std::string errorName(ErrorCode code) {
    return "org.bulkhead1.Error." + std::string(nameOf(code));
}

void throwError(const Error& error) {
    throw sdbus::Error(errorName(error.code), error.message);
}

core::Caller Door::callerOf(const sdbus::Message& message) {
    core::Caller caller;
    caller.busName = message.getSender();
    const auto known = m_uids.find(caller.busName);
    if (known != m_uids.end()) {
        caller.uid = known->second;
        return caller;
    }
    // Asks the bus, which had the uid from the kernel when the connection was made.
    caller.uid = message.getCredsUid();
    m_uids.emplace(caller.busName, caller.uid);
    return caller;
}

core::Caller Door::admit(const sdbus::IObject& object, std::string_view interface, std::string_view method,
                         const OwnerOf& owner) {
    const sdbus::Message* const message = object.getCurrentlyProcessedMessage();
    if (message == nullptr) {
        throwError({ErrorCode::NotAuthorized, "the caller cannot be told"});
    }
    core::Caller caller = callerOf(*message);
    if (auto allowed = mayCall(caller, interface, method); !allowed) {
        throwError(allowed.error());
    }
    const auto belongsTo = owner();
    if (!belongsTo) {
        throwError(belongsTo.error());
    }
    if (*belongsTo && !caller.mayUse(**belongsTo)) {
        // As if it did not exist: nothing of others is told, not even that it is there.
        throwError({ErrorCode::NotFound, "no such object"});
    }
    return caller;
}

} // namespace bulkhead::dbus
