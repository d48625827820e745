// SPDX-License-Identifier: Apache-2.0
#include "config/domain_toml.hpp"

#include "base/escaping.hpp"
#include "config/limits.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_text.hpp"

#include <limits>
#include <pwd.h>
#include <unistd.h>

namespace bulkhead::config {

namespace {

/// Keys that the vocabulary of definitions has, but that this version cannot honour: saying "unknown" would make people
/// look for a typing error.
constexpr std::string_view kLaterKeys[] = {"default_disposable", "internal", "audio", "autostart",
                                           "idle_suspend",       "limits",   "apps"};

void readOwner(TomlTable& table, const DomainFile& file, const UserLookup& users, core::DomainDefinition& definition) {
    if (file.owner) {
        definition.owner = *file.owner;
        table.refuse("owner", "\"owner\" is not for users' files; the folder says whose domain it is");
        return;
    }
    definition.isManaged = true;
    if (!table.has("owner")) {
        table.addMissing("owner", "the user it belongs to, like owner = \"alice\"");
    }
    if (table.isInteger("owner")) {
        // The last number means "no user" to the system.
        if (const auto uid = table.integer("owner", 0, std::numeric_limits<uid_t>::max() - 1)) {
            definition.owner = static_cast<uid_t>(*uid);
        }
        return;
    }
    if (const auto name = table.text("owner")) {
        if (const auto uid = users(*name)) {
            definition.owner = *uid;
        } else {
            table.addProblem("owner", "there is no user \"" + escapeUntrusted(*name, 80) +
                                          "\" on this host; write a user name, or a uid without quotes");
        }
    }
}

void readKind(TomlTable& table, core::DomainDefinition& definition) {
    const auto kind = table.text("kind");
    if (!kind || *kind == "app") {
        definition.kind = core::DomainKind::App;
    } else if (*kind == "standalone") {
        definition.kind = core::DomainKind::Standalone;
    } else {
        table.addProblem("kind", "\"kind\" is \"" + escapeUntrusted(*kind, 80) +
                                     "\"; accepted are \"app\" and \"standalone\" (disposables have no definition)");
    }
}

/// Reads a text that must be a simple name.
void readName(TomlTable& table, std::string_view key, std::string_view what, std::string& target) {
    if (const auto name = table.text(key)) {
        table.check(key, core::checkSimpleName(what, *name));
        target = *name;
    }
}

} // namespace

std::optional<uid_t> lookUpUser(const std::string& name) {
    const long hint = ::sysconf(_SC_GETPW_R_SIZE_MAX);
    std::vector<char> buffer(hint > 0 ? static_cast<std::size_t>(hint) : 16384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
        return std::nullopt;
    }
    return found->pw_uid;
}

tl::expected<core::DomainDefinition, Problems> parseDomainToml(std::string_view text, const DomainFile& file,
                                                               const UserLookup& users) {
    if (const Status named = core::checkDomainName(file.name); !named) {
        return tl::unexpected(Problems{{ErrorCode::InvalidArgument, file.path + ": " + named.error().message}});
    }
    auto document = TomlDocument::parse(text, file.path);
    if (!document) {
        return tl::unexpected(Problems{document.error()});
    }
    TomlTable table = document->root();
    core::DomainDefinition definition;
    definition.name = file.name;
    definition.file = file.path;
    readOwner(table, file, users, definition);
    readKind(table, definition);
    if (!table.has("template")) {
        table.addMissing("template", "template = \"minimal\"");
    }
    readName(table, "template", "template", definition.templateName);
    readName(table, "size", "size", definition.size);
    readName(table, "label", "label", definition.label);
    readName(table, "egress", "profile", definition.egress);
    if (auto tags = table.textList("tags", 32)) {
        for (const std::string& tag : *tags) {
            table.check("tags", core::checkSimpleName("tag", tag));
        }
        definition.tags = std::move(*tags);
    }
    definition.homeSize = table.size("home_size", kLeastDisk, kMostDisk);
    for (const std::string_view key : kLaterKeys) {
        table.refuse(key, "\"" + std::string(key) + "\" is not supported by this version; remove it");
    }
    table.finish();
    if (document->hasProblems()) {
        return tl::unexpected(document->takeProblems());
    }
    return definition;
}

std::optional<uid_t> ownerInDomainToml(std::string_view text, const UserLookup& users) {
    auto document = TomlDocument::parse(text, {});
    if (!document) {
        return std::nullopt;
    }
    TomlTable table = document->root();
    core::DomainDefinition definition;
    readOwner(table, {}, users, definition);
    return document->hasProblems() ? std::nullopt : std::optional(definition.owner);
}

std::string writeDomainToml(const core::DomainDefinition& definition) {
    std::string text = "# Written by bulkheadd.\n";
    const auto line = [&](std::string_view key, const std::string& value) {
        text += std::string(key) + " = " + value + "\n";
    };
    line("kind", definition.kind == core::DomainKind::Standalone ? "\"standalone\"" : "\"app\"");
    line("template", tomlQuoted(definition.templateName));
    if (!definition.size.empty()) {
        line("size", tomlQuoted(definition.size));
    }
    line("label", tomlQuoted(definition.label));
    line("egress", tomlQuoted(definition.egress));
    if (!definition.tags.empty()) {
        std::string list;
        for (const std::string& tag : definition.tags) {
            list += (list.empty() ? "" : ", ") + tomlQuoted(tag);
        }
        line("tags", "[" + list + "]");
    }
    if (definition.homeSize) {
        line("home_size", tomlQuoted(exactBytes(*definition.homeSize)));
    }
    return text;
}

} // namespace bulkhead::config
