// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/domain.hpp"
#include "core/model/instance.hpp"
#include "core/model/snapshot.hpp"
#include "core/ports/host.hpp"
#include "core/ports/repositories.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::core {

/// A domain as the daemon knows it now.
struct DomainEntry {
    DomainRecord record;
    DomainDefinition definition;
    DomainState state = DomainState::Stopped;
    std::string reason; ///< why it failed or is paused, for people
    std::optional<InstanceRecord> instance;
    DomainHead head; ///< where it stands in its lineage
    /// Disposables: the bus name of the client that has not started its program yet; the domain goes when it leaves.
    std::string waitingClient;
    /// Disposables: windows carry it and are open (AdoptedGuest::hasWindows).
    bool hasWindows = false;
    /// Disposables that only look into snapshots: their disks, and the snapshots, which stay for as long.
    std::vector<InspectedDisk> inspected;
    std::vector<SnapshotId> inspectedNodes;
    /// Why the definition cannot be used (bad or missing file); empty: it can.
    std::string definitionProblem;

    /// It runs, and what its definition says of the machine takes effect at the next start only.
    [[nodiscard]] bool isRestartNeeded() const { return isSizeWaiting() || isAudioWaiting(); }
    [[nodiscard]] bool isSizeWaiting() const {
        return instance && !definition.size.empty() && definition.size != instance->size;
    }
    [[nodiscard]] bool isAudioWaiting() const {
        return instance && instance->heads > 0 && definition.audio != instance->audio;
    }
};

/// Disposables have no file: what their record says.
DomainDefinition definitionOfDisposable(const DomainRecord& record);

/// All domains with their present state: the one piece of shared mutable state of the daemon. Thread-safe; every method
/// is short. State changes go through apply(), which asks the state machine and tells the event sink.
class DomainTable {
public:
    explicit DomainTable(EventSink& events)
        : m_events(events) {}

    /// AlreadyExists when the owner has a domain of that name.
    Status insert(DomainEntry entry);
    void erase(const DomainId& id);
    [[nodiscard]] std::optional<DomainEntry> find(const DomainId& id) const;
    [[nodiscard]] std::optional<DomainEntry> findByName(uid_t owner, const std::string& name) const;
    [[nodiscard]] std::optional<DomainEntry> findByInstance(const InstanceId& instance) const;
    [[nodiscard]] std::vector<DomainEntry> all() const;

    /// Deleted domains that can be restored: apart from the others, so that nobody else takes one for a domain.
    [[nodiscard]] std::vector<DomainEntry> deleted() const;
    /// all() and deleted(): both stand in their lineage.
    [[nodiscard]] std::vector<DomainEntry> withDeleted() const;
    /// Puts it among the deleted ones, whether it was known or not.
    void setDeleted(DomainEntry entry);
    /// Back among the others. AlreadyExists when the owner has another domain of its name by now.
    Status revive(DomainEntry entry);
    void eraseDeleted(const DomainId& id);

    /// WrongState names the domain, its state and what was tried. `reason` is kept when the new state is Failed or
    /// Paused.
    Status apply(const DomainId& id, DomainEvent event, const std::string& reason = {});
    /// For the reconciler: sets what was found.
    void restore(const DomainId& id, DomainState state, const std::string& reason);
    void setInstance(const DomainId& id, std::optional<InstanceRecord> instance);
    void setHead(const DomainId& id, const DomainHead& head);
    void setRanWith(const DomainId& id, const TemplateVersion& version);
    /// Tells that domains have changed.
    void setDefinition(const DomainId& id, DomainDefinition definition);
    /// From now on it can only be removed, or deleted.
    void markRemoving(const DomainId& id, DomainRecord::Phase phase = DomainRecord::Phase::Removing);
    /// With windows it no longer depends on the client that made it.
    void setHasWindows(const DomainId& id, bool hasWindows);
    void setWaitingClient(const DomainId& id, const std::string& busName);

    /// One operation per domain at a time. Busy names the operation that runs.
    class Operation {
    public:
        Operation(Operation&& other) noexcept
            : m_table(std::exchange(other.m_table, nullptr))
            , m_id(other.m_id) {}
        Operation& operator=(Operation&&) = delete;
        Operation(const Operation&) = delete;
        Operation& operator=(const Operation&) = delete;
        ~Operation();

    private:
        friend class DomainTable;
        Operation(DomainTable* table, DomainId id)
            : m_table(table)
            , m_id(std::move(id)) {}
        DomainTable* m_table;
        DomainId m_id;
    };
    /// `patience`: how long it waits for the one that runs.
    Result<Operation> beginOperation(const DomainId& id, const std::string& what,
                                     std::chrono::milliseconds patience = std::chrono::milliseconds(0));

    /// Until it goes, the domain is being asked to begin a program.
    class Beginning {
    public:
        Beginning(Beginning&& other) noexcept
            : m_table(std::exchange(other.m_table, nullptr))
            , m_id(other.m_id) {}
        Beginning& operator=(Beginning&&) = delete;
        Beginning(const Beginning&) = delete;
        Beginning& operator=(const Beginning&) = delete;
        ~Beginning();

    private:
        friend class DomainTable;
        Beginning(DomainTable* table, DomainId id)
            : m_table(table)
            , m_id(std::move(id)) {}
        DomainTable* m_table;
        DomainId m_id;
    };
    /// Until it goes, no program begins in the domain.
    class Closed {
    public:
        Closed(Closed&& other) noexcept
            : m_table(std::exchange(other.m_table, nullptr))
            , m_id(other.m_id) {}
        Closed& operator=(Closed&& other) noexcept {
            std::swap(m_table, other.m_table);
            std::swap(m_id, other.m_id);
            return *this;
        }
        Closed(const Closed&) = delete;
        Closed& operator=(const Closed&) = delete;
        ~Closed();

    private:
        friend class DomainTable;
        Closed(DomainTable* table, DomainId id)
            : m_table(table)
            , m_id(std::move(id)) {}
        DomainTable* m_table;
        DomainId m_id;
    };
    /// Busy while it is closed.
    Result<Beginning> beginProgram(const DomainId& id);
    /// None: a program is about to begin, or it is closed already.
    std::optional<Closed> closeToPrograms(const DomainId& id);

private:
    EventSink& m_events;
    mutable std::mutex m_mutex;
    std::condition_variable m_operationEnded;
    std::map<DomainId, DomainEntry> m_entries;
    std::map<DomainId, DomainEntry> m_deleted;
    std::map<DomainId, std::string> m_operations;
    std::map<DomainId, unsigned> m_beginnings; ///< of programs
    std::set<DomainId> m_closed;
};

} // namespace bulkhead::core
