// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_kept_homes.hpp"

#include "imaging/file_tree.hpp"

namespace bulkhead::imaging {

Status FileKeptHomes::rename(const DomainId& id, uid_t owner, const std::string& name) {
    if (!isThere(m_layout.homeFolder(id))) {
        return {};
    }
    auto manifest = m_layers.homeManifest(id);
    if (!manifest) {
        return fail(manifest.error());
    }
    if (manifest->owner == owner && manifest->name == name) {
        return {};
    }
    manifest->owner = owner;
    manifest->name = name;
    return m_layers.replaceHome(id, *manifest);
}

Result<Bytes> FileKeptHomes::sizeOnDisk(const DomainId& id) {
    const auto folder = m_layout.homeFolder(id);
    if (!isThere(folder)) {
        return Bytes{0};
    }
    const auto names = listFolder(folder);
    if (!names) {
        return fail(names.error());
    }
    Bytes size = 0;
    for (const std::string& name : *names) {
        const auto facts = factsOf(folder / name);
        size += facts ? facts->allocated : 0;
    }
    return size;
}

} // namespace bulkhead::imaging
