// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cerrno>
#include <system_error>

namespace bulkhead {

std::string_view nameOf(ErrorCode code) {
    switch (code) {
    case ErrorCode::InvalidArgument:
        return "InvalidArgument";
    case ErrorCode::NotFound:
        return "NotFound";
    case ErrorCode::AlreadyExists:
        return "AlreadyExists";
    case ErrorCode::WrongState:
        return "WrongState";
    case ErrorCode::Busy:
        return "Busy";
    case ErrorCode::NotAuthorized:
        return "NotAuthorized";
    case ErrorCode::NoSpace:
        return "NoSpace";
    case ErrorCode::LimitExceeded:
        return "LimitExceeded";
    case ErrorCode::Unavailable:
        return "Unavailable";
    case ErrorCode::TimedOut:
        return "TimedOut";
    case ErrorCode::Cancelled:
        return "Cancelled";
    case ErrorCode::GuestFailure:
        return "GuestFailure";
    case ErrorCode::HostFailure:
        return "HostFailure";
    }
    return "HostFailure";
}

tl::unexpected<Error> failErrno(std::string_view what, int errorNumber) {
    const bool full = errorNumber == ENOSPC || errorNumber == EDQUOT;
    return fail(full ? ErrorCode::NoSpace : ErrorCode::HostFailure,
                std::string(what) + ": " + std::generic_category().message(errorNumber));
}

} // namespace bulkhead
