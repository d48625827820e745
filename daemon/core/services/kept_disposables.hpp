// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "core/services/domain_table.hpp"

#include <chrono>

namespace bulkhead::core {

class LineageTable;
class SnapshotService;
class WorkerPool;

/// The exception among disposables (DomainRecord::isKept): when what ran in one has ended it is suspended instead of
/// removed, whoever was there to see it. Its next start goes on from there, and so it does when its emulator dies. With
/// its removal go the snapshots that it was suspended in. One in which nothing was run yet is as any other.
class KeptDisposables {
public:
    /// `retry`: until a suspension is asked for again that its owner has too many jobs for.
    KeptDisposables(SnapshotService& snapshots, WorkerPool& pool,
                    std::chrono::milliseconds retry = std::chrono::seconds(3))
        : m_snapshots(snapshots)
        , m_pool(pool)
        , m_retry(retry) {}

    /// Suspends it as a job of its owner's, unless something runs in it by then. Returns at once. Thread-safe.
    void suspendSoon(const DomainId& disposable);

private:
    void tryToSuspend(const DomainId& disposable);

    SnapshotService& m_snapshots;
    WorkerPool& m_pool;
    std::chrono::milliseconds m_retry;
};

/// True: a kept disposable that has been suspended before. Without an emulator it is suspended there again.
bool outlivesEmulator(const DomainEntry& entry, const LineageTable& lineage);

} // namespace bulkhead::core
