// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "core/ports/deleted_domains.hpp"

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace bulkhead::config {

/// core::DeletedDefinitions as UID/deleted/NAME.ID.SECONDS.toml in the folder of users' definitions: a rename is all
/// that it takes, and the name of the file says all that there is to know of it.
class FileDeletedDefinitions final : public core::DeletedDefinitions {
public:
    explicit FileDeletedDefinitions(std::filesystem::path userDomains)
        : m_userDomains(std::move(userDomains)) {}

    Status setAside(const core::SetAsideDefinition& what) override;
    Status bringBack(const DomainId& id, uid_t owner, const std::string& name) override;
    Status remove(const DomainId& id, uid_t owner) override;
    Result<std::vector<core::SetAsideDefinition>> all() override;

private:
    struct Folders {
        UniqueFd present; ///< of the owner; not open when it is absent
        UniqueFd deleted; ///< in it; not open when it is absent
    };
    [[nodiscard]] Result<Folders> open(uid_t owner, bool make) const;
    /// The file of the domain's definition; none: there is none.
    [[nodiscard]] Result<std::optional<std::string>> find(const Folders& folders, const DomainId& id,
                                                          uid_t owner) const;
    [[nodiscard]] std::filesystem::path folderOf(uid_t owner) const;

    std::filesystem::path m_userDomains;
    std::mutex m_mutex;
};

} // namespace bulkhead::config
