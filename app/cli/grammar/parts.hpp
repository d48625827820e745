// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

/// What the verbs' grammars are made of. Options write to their targets, which must outlive the app.
namespace bulkhead::cli::grammar {

/// Each verb with the arguments that it fills.
using Verbs = std::vector<std::pair<CLI::App*, std::function<Invocation()>>>;

/// An option or a positional that takes one text, which must not be empty: that would silently mean "the default"
/// further down.
CLI::Option* addText(CLI::App* app, const char* name, std::string& target, const char* type, const char* description);

/// A verb of `parent`, with --json.
CLI::App* addVerb(CLI::App* parent, const char* name, const char* description, bool& json);

} // namespace bulkhead::cli::grammar
