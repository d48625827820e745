// SPDX-License-Identifier: Apache-2.0
#include "cli/grammar/parts.hpp"

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"

namespace bulkhead::cli::grammar {

CLI::Option* addText(CLI::App* app, const char* name, std::string& target, const char* type, const char* description) {
    return app
        ->add_option_function<std::string>(
            name,
            [&target, name](const std::string& text) {
                if (text.empty()) {
                    throw CLI::ValidationError(name, "it is empty");
                }
                target = text;
            },
            description)
        ->type_name(type);
}

/// CLI11 offers durations as validators only; ours turns the text into a value.
CLI::Option* addDuration(CLI::App* app, const char* name, std::optional<std::chrono::milliseconds>& target,
                         const char* description) {
    return app
        ->add_option_function<std::string>(
            name,
            [&target, name](const std::string& text) {
                target = parseDuration(text);
                if (!target) {
                    throw CLI::ValidationError(name, "'" + text + "' is not a duration such as 90s, 15m or 1h30m");
                }
            },
            description)
        ->type_name("DURATION");
}

CLI::App* addVerb(CLI::App* parent, const char* name, const char* description, bool& json) {
    CLI::App* verb = parent->add_subcommand(name, description);
    verb->add_flag("--json", json, "Print JSON");
    return verb;
}

ParseEnd mistake(std::string text, std::string hint) {
    return {exit_code::kUsage, std::move(text), std::move(hint)};
}

} // namespace bulkhead::cli::grammar
