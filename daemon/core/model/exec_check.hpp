// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"

namespace bulkhead::core {

constexpr std::size_t kMaxArguments = 1024;
constexpr std::size_t kMaxEnvironment = 256;
/// All words of an exec together: fits one message of the channel (64 KiB) with room for its other fields.
constexpr std::size_t kMaxExecBytes = 60 * 1024;

/// InvalidArgument that says what is wrong and what to do instead.
Status checkExecRequest(const ExecRequest& request);

} // namespace bulkhead::core
