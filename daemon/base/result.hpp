// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace bulkhead {

/// Why an operation did not do what was asked. The list is closed: each value is one `org.bulkhead1.Error.*` name
/// on the bus and one line of resources/doc/dbus-api.md.
enum class ErrorCode {
    InvalidArgument, ///< the caller's words are wrong; the message names what, where and what to do
    NotFound,        ///< no such domain, template, job …
    AlreadyExists,   ///< the name is taken
    WrongState,      ///< not possible in the present state (start of a running domain …)
    Busy,            ///< another operation on the same object has not ended
    NotAuthorized,   ///< the caller may not do this
    NoSpace,         ///< disk space or quota
    LimitExceeded,   ///< memory, uid range, message size …
    Unavailable,     ///< a service that we need is not there (libvirt, the channel …)
    TimedOut,
    Cancelled,
    GuestFailure, ///< the guest did not boot, answered wrongly or died
    HostFailure,  ///< anything else on this side
};

/// The CamelCase name of the code, as used after `org.bulkhead1.Error.`.
std::string_view nameOf(ErrorCode code);

/// An expected failure. `message` says what failed, on what, and why; sentence without a final dot; never a
/// secret, and never guest text that has not gone through escapeUntrusted().
struct Error {
    ErrorCode code = ErrorCode::HostFailure;
    std::string message;

    /// The same error seen from one level up: "context: message".
    [[nodiscard]] Error in(std::string_view context) const { return {code, std::string(context) + ": " + message}; }
    bool operator==(const Error&) const = default;
};

template <class T> using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}

/// Fails with HostFailure (NoSpace for ENOSPC and EDQUOT) and the text of `errorNumber`.
[[nodiscard]] tl::unexpected<Error> failErrno(std::string_view what, int errorNumber);

} // namespace bulkhead
