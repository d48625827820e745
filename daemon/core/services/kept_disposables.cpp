// SPDX-License-Identifier: Apache-2.0
#include "core/services/kept_disposables.hpp"

#include "core/services/lineage_table.hpp"
#include "core/services/snapshot_service.hpp"
#include "core/services/worker_pool.hpp"

namespace bulkhead::core {

bool outlivesEmulator(const DomainEntry& entry, const LineageTable& lineage) {
    if (!entry.record.isKept || !entry.head.node) {
        return false;
    }
    // What it only began in is another domain's, and holds nothing of what was done in it.
    const auto node = lineage.find(*entry.head.node);
    return node && node->domain == entry.record.id && node->memory;
}

void KeptDisposables::suspendSoon(const DomainId& disposable) {
    m_pool.post([this, disposable] { tryToSuspend(disposable); });
}

void KeptDisposables::tryToSuspend(const DomainId& disposable) {
    const auto job = m_snapshots.suspendUnused(disposable);
    if (!job && job.error().code == ErrorCode::LimitExceeded) {
        m_pool.postAfter(m_retry, [this, disposable] { tryToSuspend(disposable); });
    }
}

} // namespace bulkhead::core
