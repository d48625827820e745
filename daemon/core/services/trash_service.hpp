// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/ports/deleted_domains.hpp"
#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::core {

class WorkerPool;

/// A deleted domain as its owner sees it.
struct DeletedDomain {
    DomainRecord record;
    std::int64_t goesAt = 0; ///< seconds since the epoch: when it is removed for good
    Bytes sizeOnDisk = 0;    ///< what removing it would free now: its home, not its snapshots
};

/// Deleted domains, which keep their definition, home and place in their lineage for a time. Their homes stay where
/// they are, by their ids, so a new domain of the same name has another. Thread-safe, blocking.
class TrashService {
public:
    /// Per user but root.
    static constexpr unsigned kMostDeleted = 64;
    /// How often begin() looks for what has been kept long enough.
    static constexpr std::chrono::minutes kInterval{10};

    struct Ports {
        DomainRepository& domains;
        DefinitionStore& definitions;
        DeletedDefinitions& setAside;
        InstanceStore& store;
        KeptHomes& homes;
        Clock& clock;
    };
    /// `keep`: for how long; 0: deleted domains are removed at once.
    TrashService(Ports ports, DomainTable& table, JobService& jobs, std::chrono::seconds keep)
        : m_ports(ports)
        , m_table(table)
        , m_jobs(jobs)
        , m_keep(keep) {}

    /// As DomainService::whenRemoved().
    void whenRemoved(std::function<void()> told) { m_whenRemoved = std::move(told); }
    [[nodiscard]] bool isKeeping() const { return m_keep.count() > 0; }
    /// LimitExceeded when the caller has too many.
    [[nodiscard]] Status checkRoom(const Caller& caller) const;
    /// The caller holds the operation, and its emulator is ended. Cut off, it is finished by the next try or by the
    /// reconciler.
    Status moveIn(DomainEntry entry);
    /// Removes what a deletion that was cut off has set aside already.
    Status forget(const DomainRecord& record) { return m_ports.setAside.remove(record.id, record.owner); }
    /// `which`: a name (of several the one deleted last), an id, or at least eight characters that it begins with.
    /// AlreadyExists when its name, or `otherName`, is taken.
    Result<DomainId> restore(const Caller& caller, const std::string& which,
                             const std::optional<std::string>& otherName);
    /// The caller's, the last deleted one first. `everybody`: for root only.
    Result<std::vector<DeletedDomain>> list(const Caller& caller, bool everybody);
    /// Removes it for good, also one whose restoration has failed half-way. WrongState when several have the name.
    Result<JobId> purge(const Caller& caller, const std::string& which);
    /// Removes for good what has been kept long enough.
    void purgeExpired();
    /// purgeExpired() now and every kInterval from a thread of `workers`.
    void begin(WorkerPool& workers);
    /// For errors of a full disk: what removing the owner's deleted domains would free, and how. Empty: nothing.
    [[nodiscard]] std::string hint(uid_t owner);

    /// For the reconciler, before definitions are read: finishes what was cut off, and believes the definitions that
    /// were set aside where the database says something else. Takes the deleted domains out of `records`.
    struct Settled {
        DomainRecord record;
        bool hasDefinition = false; ///< it is set aside
    };
    Result<std::vector<Settled>> settle(std::vector<DomainRecord>& records, unsigned& undone,
                                        std::vector<Error>& problems);

private:
    Result<DomainEntry> find(const Caller& caller, const std::string& which, bool mustBeOne) const;
    Status bringBack(const DomainRecord& record);
    Status readDefinition(DomainEntry& entry);
    Status makePresent(DomainRecord& record);
    bool undoRestoring(const DomainRecord& before, const DomainRecord& record);
    Status finishDeleting(DomainRecord& record);
    Status takeBack(DomainRecord& record);
    Result<DomainRecord> beginPurge(const DomainId& id);
    Status finishPurge(const DomainRecord& record);
    Status purgeNow(const DomainId& id);

    Ports m_ports;
    DomainTable& m_table;
    JobService& m_jobs;
    std::chrono::seconds m_keep;
    std::function<void()> m_whenRemoved;
    /// One change of the trash at a time. Never held while a home is erased: calls of users wait for it.
    std::mutex m_mutex;
    std::set<DomainId> m_purging; ///< guarded by it; whose homes are being erased now
};

} // namespace bulkhead::core
