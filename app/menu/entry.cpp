// SPDX-License-Identifier: Apache-2.0
#include "menu/entry.hpp"

#include "client/domain_name.hpp"
#include "client/terminal_text.hpp"

#include <QString>

#include <algorithm>
#include <array>
#include <vector>

namespace bulkhead::menu {
namespace {

constexpr std::size_t kLongestId = 128;
/// Characters of the guest's name: menus cut long lines at their end, where the domain stands.
constexpr std::size_t kLongestName = 48;

constexpr std::array<std::string_view, 13> kMainCategories{
    "AudioVideo", "Audio",  "Video",   "Development", "Education", "Game",   "Graphics",
    "Network",    "Office", "Science", "Settings",    "System",    "Utility"};

bool isIdCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

/// One line without what reorders, hides or pushes the domain out of sight.
std::string shownName(const App& app) {
    const std::string safe = client::terminalSafe(app.name);
    const std::string name = QString::fromStdString(safe).simplified().toStdString();
    return client::cutToWidth(name.empty() ? app.id : name, kLongestName);
}

} // namespace

bool isExportableDomain(std::string_view domain) {
    return client::domainNameProblem(QString::fromUtf8(domain.data(), static_cast<qsizetype>(domain.size()))).isEmpty();
}

bool isAppId(std::string_view id) {
    return !id.empty() && id.size() <= kLongestId && id.front() != '-' && id.front() != '.' &&
           std::ranges::all_of(id, isIdCharacter);
}

std::string fileNamePrefix(std::string_view domain) {
    return "org.bulkhead." + std::string(domain) + ".";
}

std::string fileName(std::string_view domain, std::string_view appId) {
    return fileNamePrefix(domain) + std::string(appId) + ".desktop";
}

std::string stringValue(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '\\':
            out += "\\\\";
            break;
        case '\n':
            out += "\\n";
            break;
        case '\r':
            out += "\\r";
            break;
        case '\t':
            out += "\\t";
            break;
        case ' ':
            out += out.empty() ? "\\s" : " "; // one at the beginning would be taken for the space behind "="
            break;
        default:
            out += c;
        }
    }
    return out;
}

std::string execArgument(std::string_view argument) {
    constexpr std::string_view kReserved = " \t\n\"'\\><~|&;$*?#()`";
    constexpr std::string_view kEscaped = "\"`$\\";
    const bool quotes = argument.empty() || argument.find_first_of(kReserved) != std::string_view::npos;
    std::string out;
    for (const char c : argument) {
        if (kEscaped.find(c) != std::string_view::npos) {
            out += '\\';
        }
        out += c;
        if (c == '%') {
            out += c; // a single one begins a field code
        }
    }
    return quotes ? '"' + out + '"' : out;
}

std::string categoriesValue(std::string_view categories) {
    const auto given = split(categories, ';');
    const auto has = [&](std::string_view category) { return std::ranges::find(given, category) != given.end(); };
    std::string out;
    for (const std::string_view category : kMainCategories) {
        // Audio and Video are valid only beside AudioVideo.
        if (has(category) || (category == "AudioVideo" && (has("Audio") || has("Video")))) {
            out += std::string(category) + ';';
        }
    }
    return out + "X-Bulkhead;";
}

std::string entryText(std::string_view domain, const App& app) {
    const std::string name(domain);
    const std::string exec = "bulkhead domain launch " + execArgument(domain) + ' ' + execArgument(app.id);
    return "[Desktop Entry]\n"
           "Type=Application\n"
           "Name=" +
           stringValue(shownName(app) + " (" + name + ")") +
           "\n"
           "Comment=" +
           stringValue("Opens in the domain " + name) +
           "\n"
           "Exec=" +
           stringValue(exec) +
           "\n"
           "TryExec=bulkhead\n"
           "Icon=org.bulkhead.Tray\n"
           "Terminal=false\n"
           "Categories=" +
           categoriesValue(app.categories) +
           "\n"
           "StartupWMClass=" +
           stringValue("bulkhead-" + name) + "\n" + std::string(kDomainKey) + "=" + stringValue(domain) +
           "\n"
           "X-Bulkhead-App=" +
           stringValue(app.id) + "\n";
}

std::string ownerOf(std::string_view entryText) {
    const std::string start = std::string(kDomainKey) + "=";
    bool isInEntry = false;
    for (const std::string_view line : split(entryText, '\n')) {
        if (line.starts_with('[')) {
            if (isInEntry || line != "[Desktop Entry]") {
                return {};
            }
            isInEntry = true;
        } else if (isInEntry && line.starts_with(start)) {
            return std::string(line.substr(start.size()));
        }
    }
    return {};
}

} // namespace bulkhead::menu
