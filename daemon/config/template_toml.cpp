// SPDX-License-Identifier: Apache-2.0
#include "config/template_toml.hpp"

#include "base/escaping.hpp"
#include "config/limits.hpp"
#include "config/nearest_name.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_text.hpp"

#include <algorithm>

namespace bulkhead::config {

namespace {

bool isLowerOrDigit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

Status checkSuite(std::string_view suite) {
    const bool good = !suite.empty() && suite.size() <= 40 && isLowerOrDigit(suite.front()) &&
                      std::all_of(suite.begin(), suite.end(), [](char c) { return isLowerOrDigit(c) || c == '-'; });
    if (!good) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + escapeUntrusted(suite, 80) + "\" is not a Debian suite; write \"bookworm\"");
    }
    return {};
}

std::string requiredText(TomlTable& table, std::string_view key, std::string_view example) {
    if (!table.has(key)) {
        table.addMissing(key, example);
    }
    return table.text(key).value_or("");
}

Bytes requiredSize(TomlTable& table, std::string_view key, Bytes least, Bytes most, std::string_view example) {
    if (!table.has(key)) {
        table.addMissing(key, example);
    }
    return table.size(key, least, most).value_or(0);
}

void readSizes(TomlTable& table, core::TemplateDefinition& definition) {
    if (!table.has("sizes")) {
        table.addMissing("sizes", "a table [sizes.small] with memory and vcpus");
    }
    std::vector<std::string> names;
    for (auto& [name, size] : table.tables("sizes")) {
        size.check("", core::checkSimpleName("size", name));
        core::TemplateSize value;
        value.memory = requiredSize(size, "memory", kLeastMemory, kMostMemory, "memory = \"512MiB\"");
        if (!size.has("vcpus")) {
            size.addMissing("vcpus", "vcpus = 1");
        }
        value.vcpus = static_cast<unsigned>(size.integer("vcpus", 1, kMostVcpus).value_or(1));
        size.finish();
        definition.sizes.emplace(name, value);
        names.push_back(name);
    }
    definition.defaultSize = requiredText(table, "default_size", "default_size = \"small\"");
    if (!definition.defaultSize.empty() && !definition.sizes.empty() &&
        !definition.sizes.contains(definition.defaultSize)) {
        std::string message =
            "\"default_size\" is \"" + escapeUntrusted(definition.defaultSize, 80) + "\", but there is only";
        for (std::size_t i = 0; i < names.size(); ++i) {
            message += (i == 0 ? " " : ", ") + ("[sizes." + escapeUntrusted(names[i], 80) + "]");
        }
        table.addProblem("default_size", message);
    }
}

std::vector<std::string> readPackages(TomlTable& table) {
    auto packages = table.textList("packages", kMostPackages);
    if (!packages) {
        return {};
    }
    for (const std::string& package : *packages) {
        table.check("packages", core::checkPackageName(package));
    }
    return std::move(*packages);
}

/// A folder beside the definition, or anywhere by its whole path. Only looked at when the template is built.
Status checkFiles(std::string_view name) {
    const bool isBeside = !name.empty() && name.size() <= 64 && isLowerOrDigit(name.front()) &&
                          std::all_of(name.begin(), name.end(), [](char c) { return isLowerOrDigit(c) || c == '-'; });
    const bool isAbsolute = name.starts_with('/') && name.size() <= 4000 && escapeUntrusted(name, 4000) == name;
    if (!isBeside && !isAbsolute) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + escapeUntrusted(name, 80) +
                        "\" is no folder of files: write the name of one beside this file (lower-case letters, "
                        "digits, -) or an absolute path");
    }
    return {};
}

/// What is inside the system besides packages, and what it shows.
void readSystem(TomlTable& table, core::TemplateDefinition& definition) {
    if (const auto init = table.text("init")) {
        const auto known = core::templateInitFrom(*init);
        if (!known) {
            table.addProblem("init", "\"init\" is \"" + escapeUntrusted(*init, 80) +
                                         "\"; write \"agent\" (the agent is the first process) or \"systemd\"");
        }
        definition.init = known.value_or(core::TemplateInit::Agent);
    }
    definition.heads = static_cast<unsigned>(table.integer("heads", 0, core::kMostHeads).value_or(0));
    if (definition.heads > 0 && definition.init != core::TemplateInit::Systemd) {
        table.addProblem("heads", "\"heads\" gives the domain a display, and only systemd starts what draws on it; add "
                                  "init = \"systemd\", or leave \"heads\" out");
    }
    if (const auto files = table.text("files")) {
        table.check("files", checkFiles(*files));
        // An absolute one stays as it is.
        definition.files = definition.file.parent_path() / *files;
    }
}

} // namespace

tl::expected<core::TemplateDefinition, Problems> parseTemplateToml(std::string_view text, const std::string& path,
                                                                   const std::string& name) {
    if (const Status named = core::checkSimpleName("template", name); !named) {
        return tl::unexpected(Problems{{ErrorCode::InvalidArgument, path + ": " + named.error().message}});
    }
    auto document = TomlDocument::parse(text, path);
    if (!document) {
        return tl::unexpected(Problems{document.error()});
    }
    TomlTable table = document->root();
    core::TemplateDefinition definition;
    definition.file = path;
    definition.name = requiredText(table, "name", "name = \"" + name + "\"");
    if (table.has("name") && definition.name != name) {
        table.addProblem("name", "\"name\" is \"" + escapeUntrusted(definition.name, 80) +
                                     "\", but the file is called " + name + ".toml; they must agree");
    }
    definition.description = table.text("description").value_or("");
    if (definition.description.size() > 200 || escapeUntrusted(definition.description) != definition.description) {
        table.addProblem("description",
                         "\"description\" must be one line of at most 200 bytes without control characters");
    }
    definition.suite = requiredText(table, "suite", "suite = \"bookworm\"");
    if (table.has("suite")) {
        table.check("suite", checkSuite(definition.suite));
    }
    definition.kernel = requiredText(table, "kernel", "kernel = \"linux-image-cloud-amd64\"");
    if (table.has("kernel")) {
        table.check("kernel", core::checkPackageName(definition.kernel));
    }
    definition.packages = readPackages(table);
    readSystem(table, definition);
    definition.systemSize = requiredSize(table, "system_size", kLeastDisk, kMostDisk, "system_size = \"8GiB\"");
    definition.homeSize = requiredSize(table, "home_size", kLeastDisk, kMostDisk, "home_size = \"8GiB\"");
    readSizes(table, definition);
    table.finish();
    if (document->hasProblems()) {
        return tl::unexpected(document->takeProblems());
    }
    return definition;
}

tl::expected<std::vector<std::string>, Problems> parseTemplateDropIn(std::string_view text, const std::string& path) {
    auto document = TomlDocument::parse(text, path);
    if (!document) {
        return tl::unexpected(Problems{document.error()});
    }
    TomlTable table = document->root();
    if (!table.has("packages")) {
        table.addMissing("packages", "packages = [\"git\"]");
    }
    auto packages = readPackages(table);
    table.finish();
    if (document->hasProblems()) {
        return tl::unexpected(document->takeProblems());
    }
    return packages;
}

std::string writeTemplateDropIn(const std::string& name, const std::vector<std::string>& packages) {
    std::string text = "# Written by bulkheadd: what \"bulkhead template install " + name +
                       "\" has added. Take a line out and run\n# \"bulkhead template build " + name +
                       "\" to be rid of a package.\npackages = [\n";
    for (const std::string& package : packages) {
        text += "    " + tomlQuoted(package) + ",\n";
    }
    return text + "]\n";
}

} // namespace bulkhead::config
