// SPDX-License-Identifier: Apache-2.0
#include "cli/grammar/parts.hpp"

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

CLI::App* addVerb(CLI::App* parent, const char* name, const char* description, bool& json) {
    CLI::App* verb = parent->add_subcommand(name, description);
    verb->add_flag("--json", json, "Print JSON");
    return verb;
}

} // namespace bulkhead::cli::grammar
