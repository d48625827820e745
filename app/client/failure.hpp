// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <utility>

class QDBusError;

namespace bulkhead::client {

/// Codes that arise on this side of the bus; all others are the last part of `org.bulkhead1.Error.*`.
namespace code {
inline constexpr const char* kNotFound = "NotFound";
inline constexpr const char* kInvalidArgument = "InvalidArgument";
inline constexpr const char* kNotAuthorized = "NotAuthorized";
inline constexpr const char* kDenied = "Denied";
inline constexpr const char* kTimedOut = "TimedOut";
inline constexpr const char* kWrongState = "WrongState";
inline constexpr const char* kCancelled = "Cancelled";
inline constexpr const char* kHostFailure = "HostFailure";
inline constexpr const char* kGuestFailure = "GuestFailure";
inline constexpr const char* kBusUnavailable = "BusUnavailable";     ///< there is no message bus to talk to
inline constexpr const char* kDaemonNotRunning = "DaemonNotRunning"; ///< nobody owns org.bulkhead1
inline constexpr const char* kDaemonLost = "DaemonLost";             ///< it went away before it answered
inline constexpr const char* kVersionMismatch = "VersionMismatch";   ///< it lacks a method or answers in another shape
inline constexpr const char* kInterrupted = "Interrupted";           ///< the user pressed Ctrl-C or sent a signal
} // namespace code

/// Why something was not done. `message` is a sentence without a final dot; it may hold foreign text, so it goes
/// through terminalSafe() before a terminal sees it.
struct Failure {
    std::string code;
    std::string message;
    int signal = 0; ///< with kInterrupted: which
    bool operator==(const Failure&) const = default;
};

template <class T> using Outcome = tl::expected<T, Failure>;
/// Called once, from the event loop of the thread that made the call.
template <class T> using Callback = std::function<void(Outcome<T>)>;

[[nodiscard]] inline tl::unexpected<Failure> failed(std::string failureCode, std::string message) {
    return tl::unexpected<Failure>(Failure{std::move(failureCode), std::move(message)});
}

/// Turns an error name and text of the bus into a Failure: ours keep their code, those of the bus itself are sorted
/// into the codes above.
Failure failureFrom(const std::string& errorName, const std::string& text);
Failure failureFrom(const QDBusError& error);

} // namespace bulkhead::client
