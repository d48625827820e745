// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <optional>
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

/// An option that takes a duration such as 90s.
CLI::Option* addDuration(CLI::App* app, const char* name, std::optional<std::chrono::milliseconds>& target,
                         const char* description);

/// A verb of `parent`, with --json.
CLI::App* addVerb(CLI::App* parent, const char* name, const char* description, bool& json);

/// A command line that cannot be used, with what to do about it.
ParseEnd mistake(std::string text, std::string hint);

/// Options as manual pages show them, without CLI11's notes on which excludes which (the messages say so).
class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter() {
        label("SUBCOMMAND", "COMMAND");
        label("SUBCOMMANDS", "COMMANDS");
        column_width(28);
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        return option->get_type_size() == 0 || option->get_type_name().empty() ? "" : " " + option->get_type_name();
    }
    std::string make_option_name(const CLI::Option* option, bool isPositional) const override {
        const std::string name = CLI::Formatter::make_option_name(option, isPositional);
        return name.starts_with("--disposable") ? "--disposable[=TEMPLATE]" : name;
    }
};

} // namespace bulkhead::cli::grammar
