// SPDX-License-Identifier: Apache-2.0
#include "imaging/image_layout.hpp"

#include "base/escaping.hpp"
#include "core/model/domain.hpp"

#include <algorithm>

namespace bulkhead::imaging {

bool isTemplateVersion(std::string_view version) {
    return version.size() == 32 && std::all_of(version.begin(), version.end(),
                                               [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<std::filesystem::path> ImageLayout::templateVersion(std::string_view name, std::string_view version) const {
    if (auto named = core::checkSimpleName("template", name); !named) {
        return fail(named.error());
    }
    if (!isTemplateVersion(version)) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + escapeUntrusted(version, 60) + "\" is not the version of a template");
    }
    return templates() / name / version;
}

Status ImageLayout::prepare() const {
    const Access passable{0711, m_owner, m_ownerGroup};
    for (const auto& [folder, access] : {std::pair{m_state, passable},
                                         {m_runtime, passable},
                                         {templates(), sharedFolder()},
                                         {bases(), sharedFolder()},
                                         {homes(), sharedFolder()},
                                         {instances(), sharedFolder()},
                                         {snapshots(), sharedFolder()},
                                         {memoryImages(), sharedFolder()},
                                         {runtimeInstances(), Access{0711, m_owner, m_ownerGroup}}}) {
        if (auto made = ensureFolder(folder, access); !made) {
            return made;
        }
    }
    return {};
}

} // namespace bulkhead::imaging
