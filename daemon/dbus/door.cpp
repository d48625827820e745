// SPDX-License-Identifier: Apache-2.0
#include "dbus/door.hpp"

#include "base/escaping.hpp"
#include "dbus/method_table.hpp"

#include <sdbus-c++/sdbus-c++.h>

namespace bulkhead::dbus {

std::string errorName(ErrorCode code) {
    return "org.bulkhead1.Error." + std::string(nameOf(code));
}

sdbus::Error busError(const Error& error) {
    // A text that is no UTF-8 would make the reply fail, and with it whoever sends it.
    return {errorName(error.code), isValidUtf8(error.message) ? error.message : escapeUntrusted(error.message, 4096)};
}

void throwError(const Error& error) {
    throw busError(error);
}

core::Caller Door::callerOf(const sdbus::Message& message) {
    core::Caller caller;
    caller.busName = message.getSender();
    const auto known = m_uids.find(caller.busName);
    if (known != m_uids.end()) {
        caller.uid = known->second;
        return caller;
    }
    // The effective uid is the one that the bus had from the kernel when the connection was made. Not the "uid" of the
    // credentials: that is looked up in /proc at the time of the question, by then possibly of another program (a
    // set-uid one that took the process over, or a stranger under a reused pid).
    caller.uid = message.getCredsEuid();
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
