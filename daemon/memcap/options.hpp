// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <optional>
#include <span>
#include <string>
#include <sys/types.h>

namespace bulkhead::memcap {

/// The command line; memory/capture_lines.hpp shows it.
struct Options {
    pid_t pid = -1;
    Bytes ram = 0;
    Bytes maxPrivate = 0;
    std::optional<std::string> parent; ///< its digest
    bool hasMappedFile = false;
};

/// `arguments` without the program's name. InvalidArgument for anything unexpected.
Result<Options> parseOptions(std::span<const char* const> arguments);

} // namespace bulkhead::memcap
