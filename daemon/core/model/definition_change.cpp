// SPDX-License-Identifier: Apache-2.0
#include "core/model/definition_change.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace bulkhead::core {
namespace {

constexpr Bytes kSmallestHome = 64 * kMiB;
constexpr Bytes kLargestHome = 4096 * kGiB;
constexpr std::size_t kMostTags = 32;

/// In the order in which a picker shows them; how each looks is the business of app/client.
constexpr std::array<std::string_view, 8> kLabels{"red",  "orange", "yellow", "green",
                                                  "gray", "blue",   "purple", "black"};
constexpr std::array<std::string_view, 8> kKeys{"size", "label", "egress",           "home-size",
                                                "tags", "audio", "snapshot-on-stop", "idle-suspend"};
constexpr std::chrono::minutes kShortestIdle{1};
constexpr std::chrono::minutes kLongestIdle = std::chrono::hours(7 * 24);

std::string inQuotes(std::string_view text) {
    return "\"" + escapeUntrusted(text, 40) + "\"";
}

template <class Names> std::string listOf(const Names& names) {
    std::string list;
    for (const auto& name : names) {
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return list;
}

tl::unexpected<Error> wrong(std::string message) {
    return fail(ErrorCode::InvalidArgument, std::move(message));
}

Result<std::string> textIn(const SettingValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return *text;
    }
    return wrong("it must be a text");
}

Result<Bytes> bytesIn(const SettingValue& value) {
    if (const auto* bytes = std::get_if<Bytes>(&value)) {
        return *bytes;
    }
    return textIn(value).and_then([](const std::string& text) { return parseBytes(text); });
}

Result<bool> flagIn(const SettingValue& value) {
    const auto text = textIn(value);
    if (text && (*text == "true" || *text == "false")) {
        return *text == "true";
    }
    return wrong(text ? inQuotes(*text) + " is not possible; it is true or false" : "it must be true or false");
}

/// As text they stand between commas; spaces around them do not count.
Result<std::vector<std::string>> tagsIn(const SettingValue& value) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        return *list;
    }
    const auto text = textIn(value);
    if (!text) {
        return wrong("it must be a list of texts, or one text with commas");
    }
    std::vector<std::string> tags;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        std::string_view tag = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        while (tag.starts_with(' ')) {
            tag.remove_prefix(1);
        }
        while (tag.ends_with(' ')) {
            tag.remove_suffix(1);
        }
        if (!tag.empty()) {
            tags.emplace_back(tag);
        }
    }
    return tags;
}

Status readOne(const std::string& key, const SettingValue& value, DefinitionChange& change) {
    const auto take = [](auto& target, auto read, auto check) -> Status {
        return read.and_then([&](const auto& taken) { return check(taken).map([&] { target = taken; }); });
    };
    if (key == "size") {
        return take(change.size, textIn(value), [](const std::string& size) {
            return size.empty() ? Status(wrong("it is empty; name one of the template's sizes")) : Status();
        });
    }
    if (key == "label") {
        return take(change.label, textIn(value), checkLabel);
    }
    if (key == "egress") {
        return take(change.egress, textIn(value), checkEgress);
    }
    if (key == "home-size") {
        return take(change.homeSize, bytesIn(value), checkHomeSize);
    }
    if (key == "audio") {
        return textIn(value).and_then([&](const std::string& text) -> Status {
            change.audio = audioFrom(text);
            return change.audio ? Status() : wrong(inQuotes(text) + " is not possible; there are: off, out");
        });
    }
    const auto anything = [](const auto&) { return Status(); };
    if (key == "snapshot-on-stop") {
        return take(change.snapshotOnStop, flagIn(value), anything);
    }
    if (key == "idle-suspend") {
        return take(change.idleSuspend, textIn(value).and_then(parseIdleSuspend), anything);
    }
    return take(change.tags, tagsIn(value), checkTags);
}

} // namespace

std::span<const std::string_view> labelNames() {
    return kLabels;
}

Status checkLabel(std::string_view label) {
    if (std::ranges::find(kLabels, label) != kLabels.end()) {
        return {};
    }
    return wrong("there is no label " + inQuotes(label) + "; there are: " + listOf(kLabels));
}

Status checkEgress(std::string_view profile) {
    if (profile == "none") {
        return {};
    }
    return wrong(inQuotes(profile) + " is not possible; the only egress profile of this version is \"none\"");
}

Status checkHomeSize(Bytes size) {
    if (size < kSmallestHome || size > kLargestHome) {
        return wrong("a home of " + formatBytes(size) + " is not possible; choose 64 MiB to 4 TiB");
    }
    if (size % kMiB != 0) {
        return wrong("a home of " + std::to_string(size) + " bytes is not possible; choose a whole number of MiB");
    }
    return {};
}

Status checkTags(const std::vector<std::string>& tags) {
    if (tags.size() > kMostTags) {
        return wrong("at most " + std::to_string(kMostTags) + " tags are possible, not " + std::to_string(tags.size()));
    }
    for (auto tag = tags.begin(); tag != tags.end(); ++tag) {
        if (auto checked = checkSimpleName("tag", *tag); !checked) {
            return checked;
        }
        if (std::find(tags.begin(), tag, *tag) != tag) {
            return wrong("the tag " + inQuotes(*tag) + " is there twice");
        }
    }
    return {};
}

Result<IdleSuspend> parseIdleSuspend(std::string_view text) {
    if (text == "off") {
        return IdleSuspend();
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const std::int64_t factor = unit == "m" ? 1 : unit == "h" ? 60 : unit == "d" ? 24 * 60 : 0;
    if (error != std::errc{} || factor == 0 || number < kShortestIdle.count() ||
        number > kLongestIdle.count() / factor) {
        return wrong(inQuotes(text) + " is not possible; it is a time such as 30m, 2h or 1d, from 1m to 7d, or off");
    }
    return IdleSuspend(std::chrono::minutes(number * factor));
}

std::string textOf(const IdleSuspend& idle) {
    if (!idle) {
        return "off";
    }
    const auto minutes = idle->count();
    return minutes % (24 * 60) == 0 ? std::to_string(minutes / (24 * 60)) + "d"
           : minutes % 60 == 0      ? std::to_string(minutes / 60) + "h"
                                    : std::to_string(minutes) + "m";
}

Status checkSize(const TemplateDefinition& definition, std::string_view size) {
    if (definition.sizes.contains(std::string(size))) {
        return {};
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : definition.sizes) {
        names.push_back(name);
    }
    return wrong("template \"" + definition.name + "\" has no size " + inQuotes(size) +
                 "; there are: " + listOf(names));
}

Result<DefinitionChange> readChange(const Settings& settings) {
    if (settings.empty()) {
        return wrong("nothing to change was given; there are: " + listOf(kKeys));
    }
    DefinitionChange change;
    for (const auto& [key, value] : settings) {
        if (std::ranges::find(kKeys, key) == kKeys.end()) {
            return wrong(escapeUntrusted(key, 40) +
                         ": there is no such setting that can be changed; there are: " + listOf(kKeys));
        }
        if (auto read = readOne(key, value, change); !read) {
            return fail(read.error().in(key));
        }
    }
    return change;
}

DomainDefinition changedBy(DomainDefinition definition, const DefinitionChange& change) {
    definition.size = change.size.value_or(definition.size);
    definition.label = change.label.value_or(definition.label);
    definition.egress = change.egress.value_or(definition.egress);
    definition.tags = change.tags.value_or(definition.tags);
    definition.audio = change.audio.value_or(definition.audio);
    if (change.homeSize) {
        definition.homeSize = change.homeSize;
    }
    definition.snapshotOnStop = change.snapshotOnStop.value_or(definition.snapshotOnStop);
    definition.idleSuspend = change.idleSuspend.value_or(definition.idleSuspend);
    return definition;
}

} // namespace bulkhead::core
