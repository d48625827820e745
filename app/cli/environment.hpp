// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tl/expected.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::cli {

using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Turns the values of --env (NAME=VALUE, or NAME for the value that it has here) into NAME=VALUE each. Fails with a
/// sentence when a name is not one, or not set here: a command must not run with less than it was promised.
tl::expected<std::vector<std::string>, std::string> resolveEnvironment(const std::vector<std::string>& given,
                                                                       const VariableLookup& lookup);

} // namespace bulkhead::cli
