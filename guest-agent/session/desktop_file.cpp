// SPDX-License-Identifier: Apache-2.0
#include "session/desktop_file.hpp"

#include "protocol/session_limits.hpp"
#include "session/text.hpp"

#include <algorithm>
#include <map>

namespace bulkhead::session {
namespace {

constexpr std::size_t kLongestPath = 4096;

constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The escapes of values of type string.
std::string unescape(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            plain += text[i];
            continue;
        }
        switch (text[++i]) {
        case 's':
            plain += ' ';
            break;
        case 'n':
            plain += '\n';
            break;
        case 't':
            plain += '\t';
            break;
        case 'r':
            plain += '\r';
            break;
        case '\\':
            plain += '\\';
            break;
        default:
            plain += '\\';
            plain += text[i];
            break;
        }
    }
    return plain;
}

using Values = std::map<std::string_view, std::string_view>;

/// The keys of the group [Desktop Entry]; of a key that comes twice the first counts.
std::optional<Values> readGroup(std::string_view text) {
    Values values;
    bool wasThere = false;
    bool isInside = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.front() == '#') {
            continue;
        }
        if (line.front() == '[') {
            if (wasThere) {
                break; // the group is over: nothing else is of interest
            }
            isInside = line == "[Desktop Entry]";
            wasThere = isInside;
            continue;
        }
        const std::size_t equals = line.find('=');
        if (isInside && equals != std::string_view::npos) {
            values.emplace(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
        }
    }
    return wasThere ? std::optional(std::move(values)) : std::nullopt;
}

std::string_view valueOf(const Values& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view{} : found->second;
}

bool isTrue(const Values& values, std::string_view key) {
    return valueOf(values, key) == "true";
}

bool namesOneOf(std::string_view list, const std::vector<std::string>& desktops) {
    const auto named = splitList(list, ';');
    return std::any_of(desktops.begin(), desktops.end(), [&](const std::string& desktop) {
        return std::find(named.begin(), named.end(), desktop) != named.end();
    });
}

} // namespace

std::vector<std::string> splitList(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        if (end > 0) {
            pieces.emplace_back(text.substr(0, end));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return pieces;
}

std::optional<DesktopEntry> parseDesktopFile(std::string_view text, const std::vector<std::string>& desktops) {
    if (text.size() > kLargestDesktopFile) {
        return std::nullopt;
    }
    const auto values = readGroup(text);
    if (!values || valueOf(*values, "Type") != "Application") {
        return std::nullopt;
    }
    DesktopEntry entry;
    entry.isHidden = isTrue(*values, "Hidden") || isTrue(*values, "NoDisplay");
    entry.name = cleanText(unescape(valueOf(*values, "Name")), protocol::kMostAppName);
    const bool canRun = !valueOf(*values, "Exec").empty() || isTrue(*values, "DBusActivatable");
    // One that hides another of the same name needs nothing else.
    if (!entry.isHidden && (entry.name.find_first_not_of(' ') == std::string::npos || !canRun)) {
        return std::nullopt;
    }
    if (values->contains("OnlyShowIn") && !namesOneOf(valueOf(*values, "OnlyShowIn"), desktops)) {
        entry.isHidden = true;
    }
    if (namesOneOf(valueOf(*values, "NotShowIn"), desktops)) {
        entry.isHidden = true;
    }
    entry.comment = cleanText(unescape(valueOf(*values, "Comment")), protocol::kMostComment);
    for (const std::string& category : splitList(valueOf(*values, "Categories"), ';')) {
        const std::string clean = cleanText(category, protocol::kMostCategories);
        if (entry.categories.size() + clean.size() + 1 > protocol::kMostCategories) {
            break;
        }
        entry.categories += (entry.categories.empty() ? "" : ";") + clean;
    }
    const std::string tryExec = unescape(valueOf(*values, "TryExec"));
    if (tryExec.size() < kLongestPath && tryExec.find('\0') == std::string::npos) {
        entry.tryExec = tryExec;
    }
    return entry;
}

} // namespace bulkhead::session
