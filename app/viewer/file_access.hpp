// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bulkhead::viewer {

/// The files that this process may still open.
struct FileAccess {
    /// Files, and folders with all that is in them. Those that are not there are left out.
    std::vector<std::string> readable;
    std::vector<std::string> writable; ///< devices and the like; readable, too
};

/// What Qt, fonts, themes and input methods of a viewer need: the system, how the user wants programs to look, and the
/// key to the X server. Nothing else of the user's. `environment` gives a variable's value, empty when it is not set.
FileAccess filesOfAViewer(const std::function<std::string(const char*)>& environment);

/// Gives up all other files for good (landlock(7)); the threads that this one starts are bound by it, those that there
/// are already are not: call it first. Sockets that have a name can still be connected to. False: this kernel cannot
/// do it. Fails with HostFailure.
client::Outcome<bool> giveUpFiles(const FileAccess& access);

} // namespace bulkhead::viewer
