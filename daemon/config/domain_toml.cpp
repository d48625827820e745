// SPDX-License-Identifier: Apache-2.0
#include "config/domain_toml.hpp"

#include "base/escaping.hpp"
#include "config/limits.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_text.hpp"
#include "core/model/definition_change.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::config {

namespace {

/// Keys that the vocabulary of definitions has, but that this version cannot honour: saying "unknown" would make people
/// look for a typing error.
constexpr std::string_view kLaterKeys[] = {"default_disposable", "internal", "autostart", "limits", "apps"};

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

void readAudio(TomlTable& table, core::DomainDefinition& definition) {
    if (const auto name = table.text("audio")) {
        if (const auto audio = core::audioFrom(*name)) {
            definition.audio = *audio;
        } else {
            table.addProblem("audio", "\"audio\" is \"" + escapeUntrusted(*name, 80) +
                                          "\"; accepted are \"off\" and \"out\" (it can be heard; a microphone is not "
                                          "possible yet)");
        }
    }
}

/// Reads a text that must be a simple name.
void readName(TomlTable& table, std::string_view key, std::string_view what, std::string& target) {
    if (const auto name = table.text(key)) {
        table.check(key, core::checkSimpleName(what, *name));
        target = *name;
    }
}

/// Each key with its value as TOML; none: the key is left out.
std::vector<std::pair<std::string_view, std::optional<std::string>>> linesOf(const core::DomainDefinition& definition) {
    const auto unlessEmpty = [](const std::string& text) {
        return text.empty() ? std::nullopt : std::optional(tomlQuoted(text));
    };
    std::optional<std::string> tags;
    for (const std::string& tag : definition.tags) {
        tags = (tags ? *tags + ", " : "[") + tomlQuoted(tag);
    }
    const auto& idle = definition.idleSuspend;
    return {
        {"kind", definition.kind == core::DomainKind::Standalone ? "\"standalone\"" : "\"app\""},
        {"template", tomlQuoted(definition.templateName)},
        {"size", unlessEmpty(definition.size)},
        {"label", tomlQuoted(definition.label)},
        {"egress", tomlQuoted(definition.egress)},
        {"tags", tags ? std::optional(*tags + "]") : std::nullopt},
        {"home_size", definition.homeSize ? std::optional(tomlQuoted(exactBytes(*definition.homeSize))) : std::nullopt},
        {"audio",
         definition.audio == core::Audio::Off ? std::nullopt : std::optional(tomlQuoted(nameOf(definition.audio)))},
        {"snapshot_on_stop", definition.snapshotOnStop ? std::optional<std::string>("true") : std::nullopt},
        {"idle_suspend", idle ? std::optional(tomlQuoted(core::textOf(idle))) : std::nullopt}};
}

/// Where a place of toml++ (lines and characters, both counted from 1) is in the text; none: nowhere.
std::optional<std::size_t> offsetOf(std::string_view text, const toml::source_position& place) {
    std::size_t at = 0;
    for (std::uint32_t line = 1; line < place.line; ++line) {
        at = text.find('\n', at);
        if (at == std::string_view::npos) {
            return std::nullopt;
        }
        ++at;
    }
    const auto isInsideCharacter = [&] {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    for (std::uint32_t column = 1; column < place.column; ++column) {
        if (at >= text.size()) {
            return std::nullopt;
        }
        do {
            ++at;
        } while (isInsideCharacter());
    }
    return at;
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
    readAudio(table, definition);
    definition.snapshotOnStop = table.flag("snapshot_on_stop").value_or(false);
    if (const auto idle = table.text("idle_suspend")) {
        const auto read = core::parseIdleSuspend(*idle);
        table.check("idle_suspend", read ? Status() : Status(fail(read.error().in("\"idle_suspend\""))));
        definition.idleSuspend = read.value_or(std::nullopt);
    }
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
    for (const auto& [key, value] : linesOf(definition)) {
        if (value) {
            text += std::string(key) + " = " + *value + "\n";
        }
    }
    return text;
}

std::optional<std::string> editDomainToml(std::string_view text, const core::DomainDefinition& wanted) {
    auto present = parseDomainToml(text, {{}, wanted.name, wanted.owner});
    auto document = TomlDocument::parse(text, {});
    if (!present || !document) {
        return std::nullopt;
    }
    const TomlTable table = document->root();
    struct Edit {
        std::size_t begin;
        std::size_t end;
        std::string value;
    };
    std::vector<Edit> edits;
    std::string added;
    const auto before = linesOf(*present);
    const auto after = linesOf(wanted);
    for (std::size_t i = 0; i < after.size(); ++i) {
        const auto& [key, value] = after[i];
        if (value == before[i].second) {
            continue;
        }
        const auto place = table.placeOf(key);
        if (!place && value) {
            added += std::string(key) + " = " + *value + "\n";
            continue;
        }
        const auto begin = place ? offsetOf(text, place->begin) : std::nullopt;
        const auto end = place ? offsetOf(text, place->end) : std::nullopt;
        // Keys that are to go would take their lines with them; some can say that there is nothing.
        const auto none = key == "tags"               ? std::optional<std::string>("[]")
                          : key == "audio"            ? std::optional<std::string>("\"off\"")
                          : key == "snapshot_on_stop" ? std::optional<std::string>("false")
                          : key == "idle_suspend"     ? std::optional<std::string>("\"off\"")
                                                      : std::nullopt;
        if (!begin || !end || *end < *begin || (!value && !none)) {
            return std::nullopt;
        }
        edits.push_back({*begin, *end, value ? *value : *none});
    }
    std::string edited(text);
    std::ranges::sort(edits, std::greater{}, &Edit::begin);
    for (const Edit& edit : edits) {
        edited.replace(edit.begin, edit.end - edit.begin, edit.value);
    }
    if (!added.empty() && !edited.empty() && edited.back() != '\n') {
        edited += '\n';
    }
    return edited + added;
}

} // namespace bulkhead::config
