// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bulkhead::imaging::build {

/// What to build. All names have been checked: they are package and suite names and nothing else.
struct BuildOptions {
    std::string name; ///< of the template, for what its domains say; empty: they say nothing
    std::filesystem::path output;
    std::filesystem::path agent;
    std::string suite;
    std::string kernel;
    Bytes systemSize = 0;
    std::optional<std::filesystem::path> mirrorFile;
    std::vector<std::string> packages;
    bool isSystemd = false;                       ///< --init: what the agent hands over to; else it stays first
    std::optional<std::filesystem::path> files;   ///< a folder to lay over the system
    std::optional<std::filesystem::path> session; ///< the program that manages windows
};

/// Reads the command line (without the program's name). InvalidArgument names the word that is wrong.
Result<BuildOptions> parseOptions(std::span<char* const> arguments);
std::string usageText();

/// Debian's rule for package names: two or more of [a-z0-9+.-], the first a letter or digit.
bool isPackageName(std::string_view name);

} // namespace bulkhead::imaging::build
