// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"
#include "menu/entry.hpp"

#include <cstddef>
#include <filesystem>
#include <vector>

namespace bulkhead::menu {

/// A domain has no more entries than that.
constexpr std::size_t kMostEntries = 512;

struct Changes {
    std::vector<std::string> present; ///< ids of the apps that are now in the menu, each once, sorted
    std::vector<std::string> blocked; ///< names of files that are not ours where an entry should be; left as they are
    std::size_t written = 0;          ///< of `present`: new or changed
    std::size_t removed = 0;
};

/// `$XDG_DATA_HOME/applications`, or what the specification says instead; empty: the user has no home.
std::filesystem::path userFolder();

/// The folder in which the desktop looks for the user's apps. Only files that have both the name and the mark of an
/// entry of ours are ever changed or removed; links and everything else there are somebody else's. Blocking (small
/// files); any thread; several processes at a time take turns.
class Folder {
public:
    explicit Folder(std::filesystem::path path)
        : m_path(std::move(path)) {}

    /// Makes the domain's entries exactly those for `apps`. Apps whose id is none are left out. Each file changes at
    /// once and as a whole; after a failure (HostFailure) some may have changed and others not: doing it again is safe.
    client::Outcome<Changes> agree(std::string_view domain, const std::vector<App>& apps);
    /// The same for no apps at all. Makes no folder.
    client::Outcome<Changes> removeAll(std::string_view domain) { return agree(domain, {}); }
    /// Whether the domain has entries, that is, whether the user once wanted them.
    [[nodiscard]] bool hasEntries(std::string_view domain) const;

private:
    std::filesystem::path m_path;
};

} // namespace bulkhead::menu
