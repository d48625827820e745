// SPDX-License-Identifier: Apache-2.0
#include "dbus/options.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead::dbus {

const sdbus::Variant* OptionReader::take(const std::string& key) {
    m_known.push_back(key);
    const auto found = m_options.find(key);
    return found == m_options.end() ? nullptr : &found->second;
}

void OptionReader::complain(const std::string& key, const std::string& wanted) {
    if (!m_error) {
        m_error = Error{ErrorCode::InvalidArgument, "option \"" + key + "\" must be " + wanted};
    }
}

std::optional<std::string> OptionReader::textIfGiven(const std::string& key) {
    const auto* value = take(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->containsValueOfType<std::string>()) {
        complain(key, "a text");
        return std::nullopt;
    }
    return value->get<std::string>();
}

std::string OptionReader::text(const std::string& key, const std::string& fallback) {
    return textIfGiven(key).value_or(fallback);
}

bool OptionReader::flag(const std::string& key, bool fallback) {
    return flagIfGiven(key).value_or(fallback);
}

std::optional<bool> OptionReader::flagIfGiven(const std::string& key) {
    const auto* value = take(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->containsValueOfType<bool>()) {
        return value->get<bool>();
    }
    if (value->containsValueOfType<std::string>()) {
        const auto text = value->get<std::string>();
        if (text == "true" || text == "false") {
            return text == "true";
        }
    }
    complain(key, "true or false");
    return std::nullopt;
}

std::uint64_t OptionReader::number(const std::string& key, std::uint64_t fallback, std::uint64_t largest) {
    const auto* value = take(key);
    if (value == nullptr) {
        return fallback;
    }
    std::optional<std::uint64_t> number;
    if (value->containsValueOfType<std::uint64_t>()) {
        number = value->get<std::uint64_t>();
    } else if (value->containsValueOfType<std::uint32_t>()) {
        number = value->get<std::uint32_t>();
    } else if (value->containsValueOfType<std::string>()) {
        const auto text = value->get<std::string>();
        std::uint64_t parsed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
        if (error == std::errc{} && end == text.data() + text.size()) {
            number = parsed;
        }
    }
    if (!number || *number > largest) {
        complain(key, "a whole number up to " + std::to_string(largest));
        return fallback;
    }
    return *number;
}

std::optional<Bytes> OptionReader::bytes(const std::string& key) {
    const auto* value = take(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->containsValueOfType<std::uint64_t>()) {
        return value->get<std::uint64_t>();
    }
    if (value->containsValueOfType<std::string>()) {
        if (const auto parsed = parseBytes(value->get<std::string>())) {
            return *parsed;
        }
    }
    complain(key, "a size such as 512MiB or 2GiB");
    return std::nullopt;
}

std::vector<std::string> OptionReader::list(const std::string& key) {
    const auto* value = take(key);
    if (value == nullptr) {
        return {};
    }
    if (value->containsValueOfType<std::vector<std::string>>()) {
        return value->get<std::vector<std::string>>();
    }
    complain(key, "a list of texts");
    return {};
}

Status OptionReader::finish() const {
    if (m_error) {
        return fail(*m_error);
    }
    for (const auto& [key, value] : m_options) {
        if (std::find(m_known.begin(), m_known.end(), key) == m_known.end()) {
            std::string known;
            for (const auto& name : m_known) {
                known += (known.empty() ? "" : ", ") + name;
            }
            return fail(ErrorCode::InvalidArgument, "unknown option \"" + escapeUntrusted(key, 64) +
                                                        "\"; there are: " + (known.empty() ? "none" : known));
        }
    }
    return {};
}

Result<core::Settings> settingsFrom(const Options& changes) {
    core::Settings settings;
    for (const auto& [key, value] : changes) {
        if (value.containsValueOfType<std::string>()) {
            settings.emplace(key, value.get<std::string>());
        } else if (value.containsValueOfType<std::vector<std::string>>()) {
            settings.emplace(key, value.get<std::vector<std::string>>());
        } else if (value.containsValueOfType<bool>()) {
            settings.emplace(key, std::string(value.get<bool>() ? "true" : "false"));
        } else if (value.containsValueOfType<std::uint64_t>()) {
            settings.emplace(key, Bytes{value.get<std::uint64_t>()});
        } else {
            return fail(ErrorCode::InvalidArgument,
                        escapeUntrusted(key, 64) +
                            ": the value must be a text, a list of texts, true or false, or a size in bytes");
        }
    }
    return settings;
}

} // namespace bulkhead::dbus
