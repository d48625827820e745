// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.hpp"

namespace bulkhead::cli {

int exitCodeFor(const client::Failure& failure) {
    namespace code = client::code;
    if (failure.code == code::kInterrupted) {
        return exit_code::kSignalBase + failure.signal;
    }
    if (failure.code == code::kInvalidArgument) {
        return exit_code::kUsage;
    }
    if (failure.code == code::kDenied) {
        return exit_code::kDenied;
    }
    if (failure.code == code::kNotFound) {
        return exit_code::kNotFound;
    }
    if (failure.code == code::kNotAuthorized) {
        return exit_code::kNotAuthorized;
    }
    return exit_code::kFailed;
}

int runExitCodeFor(const client::Failure& failure) {
    return failure.code == client::code::kInterrupted ? exit_code::kSignalBase + failure.signal : exit_code::kOurs;
}

} // namespace bulkhead::cli
