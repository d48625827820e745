// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/model/domain.hpp"
#include "core/model/template.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What may be changed in a domain's definition, and to what. Functions of their arguments only.
namespace bulkhead::core {

/// A value as the caller gave it: in its own type, or as text, as a command line has it.
using SettingValue = std::variant<std::string, std::vector<std::string>, Bytes>;
/// By key: size, label, egress, home-size, tags, audio, snapshot-on-stop, idle-suspend.
using Settings = std::map<std::string, SettingValue>;

/// See DomainDefinition::idleSuspend.
using IdleSuspend = std::optional<std::chrono::minutes>;

/// The settings that were given, read and checked as far as that goes without the template.
struct DefinitionChange {
    std::optional<std::string> size;
    std::optional<std::string> label;
    std::optional<std::string> egress;
    std::optional<Bytes> homeSize;
    std::optional<Audio> audio;
    std::optional<std::vector<std::string>> tags; ///< all of them; empty: none
    std::optional<bool> snapshotOnStop;
    std::optional<IdleSuspend> idleSuspend;
};

/// InvalidArgument for an unknown key, a value of the wrong form, or no settings at all. Its message begins with the
/// key and ": ", where there is one, so that a form can show it at the field; it names the value and what is accepted.
Result<DefinitionChange> readChange(const Settings& settings);
/// What becomes of the definition.
DomainDefinition changedBy(DomainDefinition definition, const DefinitionChange& change);

/// The labels that there are.
std::span<const std::string_view> labelNames();

// The rules for each value, for new domains too. InvalidArgument names the value and what is accepted.
Status checkLabel(std::string_view label);
Status checkEgress(std::string_view profile);
Status checkHomeSize(Bytes size);
Status checkTags(const std::vector<std::string>& tags);
/// "30m", "2h", "1d", from one minute to seven days; or "off".
Result<IdleSuspend> parseIdleSuspend(std::string_view text);
/// As parseIdleSuspend() reads it, in the largest unit that it is a whole number of.
std::string textOf(const IdleSuspend& idle);
Status checkSize(const TemplateDefinition& definition, std::string_view size);

} // namespace bulkhead::core
