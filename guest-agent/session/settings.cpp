// SPDX-License-Identifier: Apache-2.0
#include "session/settings.hpp"

#include "protocol/locale.hpp"
#include "protocol/session_limits.hpp"
#include "session/launcher.hpp"

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <locale.h>

namespace bulkhead::session {
namespace {

constexpr std::size_t kLongestName = 256;
constexpr std::string_view kDpiName = "Xft.dpi:";
/// Resources are a few hundred lines at most; whoever has more keeps the DPI he has.
constexpr std::uint32_t kMostResources = 64 * 1024;

bool isXkbName(const std::string& name) {
    const auto isFine = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::strchr("_-+,:()", c) != nullptr;
    };
    // An option of setxkbmap begins with a dash, and a NUL is in strchr's text.
    return name.size() <= kLongestName && !name.starts_with('-') && name.find('\0') == std::string::npos &&
           std::all_of(name.begin(), name.end(), isFine);
}

void setDpi(const Connection& connection, std::uint32_t dpi) {
    xcb_connection_t* const x = connection.x();
    const auto cookie =
        xcb_get_property(x, 0, connection.root(), XCB_ATOM_RESOURCE_MANAGER, XCB_ATOM_STRING, 0, kMostResources / 4);
    const Reply reply(xcb_get_property_reply(x, cookie, nullptr));
    if (!reply || reply->bytes_after > 0) {
        return;
    }
    const std::string_view old(static_cast<const char*>(xcb_get_property_value(reply.get())),
                               static_cast<std::size_t>(xcb_get_property_value_length(reply.get())));
    const std::string text = withDpi(old, dpi);
    xcb_change_property(x, XCB_PROP_MODE_REPLACE, connection.root(), XCB_ATOM_RESOURCE_MANAGER, XCB_ATOM_STRING, 8,
                        static_cast<std::uint32_t>(text.size()), text.data());
}

} // namespace

std::optional<std::vector<std::string>> keyboardCommand(const Settings& settings) {
    for (const std::string* const name : {&settings.keyboard_model(), &settings.keyboard_layout(),
                                          &settings.keyboard_variant(), &settings.keyboard_options()}) {
        if (!isXkbName(*name)) {
            return std::nullopt;
        }
    }
    std::vector<std::string> command{"setxkbmap"};
    const auto add = [&](const char* option, const std::string& value) {
        command.emplace_back(option);
        command.push_back(value);
    };
    if (!settings.keyboard_model().empty()) {
        add("-model", settings.keyboard_model());
    }
    if (!settings.keyboard_layout().empty()) {
        add("-layout", settings.keyboard_layout());
    }
    if (!settings.keyboard_layout().empty() || !settings.keyboard_variant().empty()) {
        add("-variant", settings.keyboard_variant());
    }
    if (!settings.keyboard_options().empty()) {
        add("-option", ""); // the ones before go
        add("-option", settings.keyboard_options());
    }
    if (command.size() == 1) {
        command.clear();
    }
    return command;
}

std::string withDpi(std::string_view resources, std::uint32_t dpi) {
    std::string text;
    while (!resources.empty()) {
        const std::size_t end = std::min(resources.find('\n'), resources.size());
        const std::string_view line = resources.substr(0, end);
        resources.remove_prefix(std::min(end + 1, resources.size()));
        if (!line.starts_with(kDpiName)) {
            text += line;
            text += '\n';
        }
    }
    return text + std::string(kDpiName) + "\t" + std::to_string(dpi) + "\n";
}

std::optional<std::string> localeOf(const std::string& name) {
    if (!protocol::isLocaleName(name)) {
        return std::nullopt;
    }
    const locale_t found = ::newlocale(LC_ALL_MASK, name.c_str(), nullptr);
    if (found == nullptr) {
        return "C.UTF-8";
    }
    ::freelocale(found);
    return name;
}

void applySettings(const Connection& connection, const Settings& settings) {
    if (settings.dpi() >= protocol::kLeastDpi && settings.dpi() <= protocol::kMostDpi) {
        setDpi(connection, settings.dpi());
    }
    if (const auto locale = settings.locale().empty() ? std::nullopt : localeOf(settings.locale())) {
        ::setenv("LANG", locale->c_str(), 1); // what we start from now on inherits it
    }
    const auto command = keyboardCommand(settings);
    if (command && !command->empty()) {
        if (const int error = startProgram(*command); error != 0) {
            static_cast<void>(
                std::fprintf(stderr, "bulkhead-session: cannot run setxkbmap: %s\n", std::strerror(error)));
        }
    }
}

} // namespace bulkhead::session
