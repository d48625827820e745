// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/desktop_file.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::session {

/// An app that a user could start.
struct AppEntry {
    std::string id; ///< the file's name without .desktop
    std::string path;
    DesktopEntry entry;
};

/// Where apps are looked for, and for whom.
struct AppPlaces {
    std::vector<std::string> folders;  ///< of .desktop files; an earlier one wins over a later one
    std::vector<std::string> programs; ///< PATH
    std::vector<std::string> desktops; ///< XDG_CURRENT_DESKTOP
};

/// At most this many are told of.
constexpr std::size_t kMostApps = 512;

/// The user's, the local and the distribution's folder, by the environment's HOME, XDG_DATA_HOME, PATH and
/// XDG_CURRENT_DESKTOP.
[[nodiscard]] AppPlaces placesOfEnvironment();

/// Those that are meant to be shown, by id. What cannot be read is left out.
[[nodiscard]] std::vector<AppEntry> listApps(const AppPlaces& places);
/// The file that stands for this id, shown or not. None: there is none, or it hides itself.
[[nodiscard]] std::optional<std::string> findApp(const AppPlaces& places, std::string_view id);

} // namespace bulkhead::session
