// SPDX-License-Identifier: Apache-2.0
#include "imaging/warm_manifest.hpp"

#include "base/escaping.hpp"

#include <limits>
#include <optional>
#include <sstream>
#include <toml++/toml.h>

namespace bulkhead::imaging {
namespace {

constexpr std::int64_t kFormat = 1;

template <class Enum, std::size_t Count>
std::optional<Enum> named(const std::optional<std::string>& name, const std::array<Enum, Count>& all) {
    for (const Enum value : all) {
        if (name == nameOf(value)) {
            return value;
        }
    }
    return std::nullopt;
}

/// The values of a table, and the name of the last one that was missing or wrong.
class Reader {
public:
    explicit Reader(const toml::table& table)
        : m_table(table) {}

    std::string text(const char* key) {
        const auto value = m_table[key].value_exact<std::string>();
        m_wrong = value ? m_wrong : key;
        return value.value_or("");
    }
    std::uint64_t number(const char* key, std::uint64_t most = std::uint64_t{INT64_MAX}) {
        const auto value = m_table[key].value_exact<std::int64_t>();
        const bool isGood = value && *value >= 0 && static_cast<std::uint64_t>(*value) <= most;
        m_wrong = isGood ? m_wrong : key;
        return isGood ? static_cast<std::uint64_t>(*value) : 0;
    }
    template <class Enum, std::size_t Count> Enum word(const char* key, const std::array<Enum, Count>& all) {
        const auto value = named(m_table[key].value_exact<std::string>(), all);
        m_wrong = value ? m_wrong : key;
        return value.value_or(all.front());
    }
    [[nodiscard]] const std::string& wrong() const { return m_wrong; }

private:
    const toml::table& m_table;
    std::string m_wrong;
};

} // namespace

std::string writeWarmManifest(const WarmManifest& manifest) {
    toml::table parts;
    for (const auto& [name, part] : manifest.parts) {
        parts.insert_or_assign(name,
                               toml::table{{"size", static_cast<std::int64_t>(part.size)}, {"digest", part.digest}});
    }
    const auto& key = manifest.key;
    const toml::table table{{"format", kFormat},
                            {"template", key.templateName},
                            {"version", key.templateVersion},
                            {"size", key.size},
                            {"memory", static_cast<std::int64_t>(key.memory)},
                            {"vcpus", static_cast<std::int64_t>(key.vcpus)},
                            {"heads", static_cast<std::int64_t>(key.heads)},
                            {"acceleration", nameOf(key.acceleration)},
                            {"transport", nameOf(key.transport)},
                            {"machine", key.machine},
                            {"made_at", manifest.madeAt},
                            {"parts", parts}};
    std::ostringstream text;
    text << toml::toml_formatter(table) << '\n';
    return text.str();
}

Result<WarmManifest> readWarmManifest(std::string_view text, const std::string& file) {
    toml::table table;
    try {
        table = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
        return fail(ErrorCode::HostFailure, file + " is damaged: " + escapeUntrusted(error.description(), 200));
    }
    if (table["format"].value_exact<std::int64_t>() != kFormat) {
        return fail(ErrorCode::HostFailure, file + " has a format that this version does not know");
    }
    constexpr std::uint64_t kMostUnsigned = std::numeric_limits<unsigned>::max();
    Reader reader(table);
    WarmManifest manifest;
    manifest.key.templateName = reader.text("template");
    manifest.key.templateVersion = reader.text("version");
    manifest.key.size = reader.text("size");
    manifest.key.memory = reader.number("memory");
    manifest.key.vcpus = static_cast<unsigned>(reader.number("vcpus", kMostUnsigned));
    manifest.key.heads = static_cast<unsigned>(reader.number("heads", kMostUnsigned));
    manifest.key.acceleration =
        reader.word("acceleration", std::array{core::Acceleration::Kvm, core::Acceleration::Emulation});
    manifest.key.transport =
        reader.word("transport", std::array{core::Transport::VirtioSerial, core::Transport::Vsock});
    manifest.key.machine = reader.text("machine");
    manifest.madeAt = static_cast<std::int64_t>(reader.number("made_at"));
    std::string wrong = reader.wrong();
    if (const auto* const parts = table["parts"].as_table()) {
        for (const auto& [name, value] : *parts) {
            const auto* const part = value.as_table();
            if (part == nullptr) {
                wrong = "parts";
                continue;
            }
            Reader inner(*part);
            WarmManifest::Part read{inner.number("size"), inner.text("digest")};
            wrong = inner.wrong().empty() ? wrong : "parts";
            manifest.parts.emplace(std::string(name.str()), std::move(read));
        }
    } else {
        wrong = "parts";
    }
    if (!wrong.empty()) {
        return fail(ErrorCode::HostFailure, file + " is damaged: \"" + wrong + "\" is missing or wrong");
    }
    return manifest;
}

} // namespace bulkhead::imaging
