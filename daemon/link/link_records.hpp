// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"

#include <filesystem>

namespace bulkhead::link {

/// What a link was opened with, so that it can be made anew, also by a later daemon: FOLDER/INSTANCE.link, for root
/// only. They hold the guests' tokens, so the folder must be one of the runtime directory, which never meets a disk.
class LinkRecords {
public:
    explicit LinkRecords(std::filesystem::path folder)
        : m_folder(std::move(folder)) {}
    /// Replaces an earlier one.
    Status keep(const core::GuestLinkSpec& spec);
    /// NotFound; HostFailure when the file is not one that keep() wrote, or somebody else could have written it.
    Result<core::GuestLinkSpec> read(const InstanceId& instance) const;
    /// Success when there is none.
    void forget(const InstanceId& instance);

private:
    [[nodiscard]] std::filesystem::path pathOf(const InstanceId& instance) const;
    std::filesystem::path m_folder;
};

} // namespace bulkhead::link
