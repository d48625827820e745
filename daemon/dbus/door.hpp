// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sdbus {
class Error;
class Message;
class IObject;
} // namespace sdbus

namespace bulkhead::dbus {

/// The `org.bulkhead1.Error.*` of an error. Whatever its text is made of, the bus can carry it.
sdbus::Error busError(const Error& error);
/// Throws it; sdbus-c++ sends it as the reply.
[[noreturn]] void throwError(const Error& error);
/// "org.bulkhead1.Error.NotFound" and its kind.
std::string errorName(ErrorCode code);

/// The one door: every method of every object passes here first. Finds out who calls (the sender of the message, asked
/// from the bus), asks the method table, and then who owns the object. Loop thread only.
class Door {
public:
    /// The caller of the message that `object` handles now. Throws NotAuthorized. `owner` tells whom the object belongs
    /// to: none = it is everybody's; it returns NotFound when the object is gone.
    using OwnerOf = std::function<Result<std::optional<uid_t>>()>;
    core::Caller admit(const sdbus::IObject& object, std::string_view interface, std::string_view method,
                       const OwnerOf& owner);
    /// The connection is gone; unique names are never used again.
    /// Has called something and is still on the bus.
    [[nodiscard]] bool knows(const std::string& busName) const { return m_uids.contains(busName); }
    void forget(const std::string& busName) { m_uids.erase(busName); }

private:
    core::Caller callerOf(const sdbus::Message& message);

    std::map<std::string, uid_t> m_uids; ///< unique bus name to uid: asked once per connection
};

} // namespace bulkhead::dbus
