// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "core/ports/repositories.hpp"

#include <filesystem>
#include <vector>

namespace bulkhead::config {

/// The finding "definitions": the files of domains that cannot be used, each with its place. It names files and so
/// domains of all users: for root only.
class DefinitionsProbe final : public core::HostProbe {
public:
    /// `definitions` must outlive this.
    explicit DefinitionsProbe(core::DefinitionStore& definitions)
        : m_definitions(definitions) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    core::DefinitionStore& m_definitions;
};

/// The finding "policy". No service of this version moves data between domains, so there is nothing yet that a policy
/// could allow or deny; files that an admin has put there already are said not to be in force.
class PolicyProbe final : public core::HostProbe {
public:
    explicit PolicyProbe(std::filesystem::path folder)
        : m_folder(std::move(folder)) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    std::filesystem::path m_folder;
};

} // namespace bulkhead::config
