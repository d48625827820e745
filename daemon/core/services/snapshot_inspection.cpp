// SPDX-License-Identifier: Apache-2.0
// What two snapshots differ in. The host mounts no guest's file system: a guest of its own looks into both.
#include "core/services/domain_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/snapshot_service.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

/// A small guest that boots fast and trusts nothing of the domains that it looks into.
constexpr const char* kInspectorTemplate = "minimal";

/// One came from the other, or both from a third.
bool areRelated(const Lineage& lineage, const SnapshotRecord& first, const SnapshotRecord& second) {
    const auto rootOf = [&](const SnapshotRecord& record) {
        SnapshotId root = record.id;
        std::optional<SnapshotId> parent = record.parent;
        for (std::size_t steps = 0; parent && steps < lineage.size(); ++steps) {
            root = *parent;
            const auto found = std::find_if(lineage.begin(), lineage.end(),
                                            [&](const SnapshotRecord& other) { return other.id == root; });
            parent = found == lineage.end() ? std::nullopt : found->parent;
        }
        return root;
    };
    return first.domain == second.domain || rootOf(first) == rootOf(second);
}

} // namespace

Result<DomainId> SnapshotService::inspect(const Caller& caller, const SnapshotId& first, const SnapshotId& second) {
    for (const SnapshotId& id : {first, second}) {
        if (const auto node = find(caller, id); !node) {
            return fail(node.error());
        }
    }
    const std::lock_guard lock(m_removing); // they stay until somebody looks into them
    const auto a = usable(first, false);
    const auto b = usable(second, false);
    if (!a || !b) {
        return fail(!a ? a.error() : b.error());
    }
    // Both may start from one template without having anything else in common; then the disks still have.
    if (a->templateName != b->templateName && !areRelated(m_lineage.all(), *a, *b)) {
        return fail(ErrorCode::InvalidArgument, "snapshots " + shortId(first) + " and " + shortId(second) +
                                                    " have no ancestor and no template in common");
    }
    DisposableWish wish;
    wish.inspectedNodes = {first, second};
    const auto add = [&](const std::string& name, const Disk& one, const Disk& other) {
        if (one != other && !one.layers.empty() && !other.layers.empty()) {
            wish.inspected.push_back({"a-" + name, one});
            wish.inspected.push_back({"b-" + name, other});
        }
    };
    const auto systemA = m_store.systemOf(*a);
    const auto systemB = m_store.systemOf(*b);
    if (systemA && systemB) {
        add("system", *systemA, *systemB);
    } else if (const Error& why = systemA ? systemB.error() : systemA.error(); why.code != ErrorCode::NotFound) {
        return fail(why);
    }
    add("home", a->home, b->home);
    return m_domains.createDisposable(caller, kInspectorTemplate, {}, wish);
}

} // namespace bulkhead::core
