// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/domain_toml.hpp"
#include "core/ports/repositories.hpp"

#include <filesystem>
#include <mutex>
#include <vector>

namespace bulkhead::config {

/// core::DefinitionStore over folders of TOML files. Folders that do not exist are empty.
class FileDefinitionStore final : public core::DefinitionStore {
public:
    struct Folders {
        std::filesystem::path adminDomains; ///< /etc/bulkhead/domains.d: NAME.toml
        std::filesystem::path userDomains;  ///< /var/lib/bulkhead/domains: UID/NAME.toml; made at the first save
        /// A file in a later folder masks the one of the same name in an earlier one, also when it is broken. So do the
        /// drop-ins NAME.d/*.toml, which add packages to NAME.toml wherever that lies. We write into the last folder.
        std::vector<std::filesystem::path> templates;
    };
    explicit FileDefinitionStore(Folders folders, UserLookup users = lookUpUser)
        : m_folders(std::move(folders))
        , m_users(std::move(users)) {}

    /// An admin's definition wins over the same owner's own one of that name, which is then a problem.
    Loaded loadDomains() override;
    Result<core::DomainDefinition> reload(const core::DomainDefinition& definition) override;
    /// InvalidArgument when the definition would not be readable afterwards; NotAuthorized for an admin's one.
    Result<core::DomainDefinition> save(core::DomainDefinition definition) override;
    Status removeDefinition(const core::DomainDefinition& definition) override;
    LoadedTemplates loadTemplates() override;
    Status saveAddedPackages(const std::string& templateName, const std::vector<std::string>& packages) override;

private:
    void loadDomainFolder(int folder, const std::filesystem::path& path, std::optional<uid_t> owner,
                          Loaded& loaded) const;
    void loadUserFolders(Loaded& loaded) const;
    /// That `text` is the definition and nothing else.
    [[nodiscard]] Status checkText(const std::string& text, const core::DomainDefinition& definition) const;
    [[nodiscard]] std::filesystem::path userFile(const core::DomainDefinition& definition) const;
    /// Lays the template's drop-ins over the definition; their problems.
    std::vector<core::DefinitionProblem> addDropIns(core::TemplateDefinition& definition) const;
    /// The owner's folder; not open when it is absent and `make` is not set.
    [[nodiscard]] Result<UniqueFd> openUserFolder(uid_t owner, bool make) const;

    Folders m_folders;
    UserLookup m_users;
    std::mutex m_mutex;
};

} // namespace bulkhead::config
