// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::session {

/// What a .desktop file says of an app, as far as a list of apps needs it. Text is cleaned and cut to the limits of
/// session.proto.App.
struct DesktopEntry {
    std::string name;
    std::string comment;
    std::string categories; ///< "Network;WebBrowser"
    std::string tryExec;    ///< a program without which the app is of no use; empty: always of use
    bool isHidden = false;  ///< NoDisplay or Hidden, or not for desktops such as ours
};

/// Files larger than this are not read.
constexpr std::size_t kLargestDesktopFile = std::size_t{512} * 1024;

/// Reads the group [Desktop Entry]; others are skipped. None: it is no application that could be started (wrong type,
/// no name, nothing to run, no such group). `desktops`: the names of XDG_CURRENT_DESKTOP. Any bytes are fine.
[[nodiscard]] std::optional<DesktopEntry> parseDesktopFile(std::string_view text,
                                                           const std::vector<std::string>& desktops);

/// Splits at `separator`; empty pieces are dropped.
[[nodiscard]] std::vector<std::string> splitList(std::string_view text, char separator);

} // namespace bulkhead::session
