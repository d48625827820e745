// SPDX-License-Identifier: Apache-2.0
#include "core/services/trash_service.hpp"

#include "base/escaping.hpp"
#include "base/log.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

using Phase = DomainRecord::Phase;

constexpr std::size_t kShortestId = 8;

SetAsideDefinition asideOf(const DomainRecord& record) {
    return {record.id, record.owner, record.name, record.deletedAt};
}

tl::unexpected<Error> noneDeleted(const std::string& which) {
    return fail(ErrorCode::NotFound,
                "no deleted domain \"" + escapeUntrusted(which, 64) + "\"; `bulkhead domain ls --deleted` lists yours");
}

} // namespace

Status TrashService::checkRoom(const Caller& caller) const {
    const auto deleted = m_table.deleted();
    const auto count = std::count_if(deleted.begin(), deleted.end(),
                                     [&](const DomainEntry& entry) { return entry.record.owner == caller.uid; });
    if (caller.isRoot() || count < kMostDeleted) {
        return {};
    }
    return fail(ErrorCode::LimitExceeded, "you have " + std::to_string(kMostDeleted) +
                                              " deleted domains already; remove some for good: "
                                              "bulkhead domain rm --now ID (of: bulkhead domain ls --deleted)");
}

// ---- into it --------------------------------------------------------------------------------------------------------

Status TrashService::moveIn(DomainEntry entry) {
    const std::lock_guard lock(m_mutex);
    DomainRecord& record = entry.record;
    record.phase = Phase::Deleting;
    record.deletedAt = std::max<std::int64_t>(m_ports.clock.now(), 1);
    if (auto meant = m_ports.domains.update(record); !meant) {
        return meant;
    }
    m_table.markRemoving(record.id, Phase::Deleting);
    if (auto deleted = finishDeleting(record); !deleted) {
        return deleted;
    }
    entry.state = DomainState::Stopped;
    entry.reason.clear();
    m_table.setDeleted(std::move(entry));
    return {};
}

/// The file first: a record that gives its name up must not leave a definition of that name behind.
Status TrashService::finishDeleting(DomainRecord& record) {
    return m_ports.setAside.setAside(asideOf(record)).and_then([&] {
        record.phase = Phase::Deleted;
        auto done = m_ports.domains.update(record);
        record.phase = done ? record.phase : Phase::Deleting;
        return done;
    });
}

// ---- out of it ------------------------------------------------------------------------------------------------------

Result<DomainEntry> TrashService::find(const Caller& caller, const std::string& which, bool mustBeOne) const {
    auto entries = m_table.deleted();
    std::sort(entries.begin(), entries.end(),
              [](const DomainEntry& a, const DomainEntry& b) { return a.record.deletedAt > b.record.deletedAt; });
    std::vector<DomainEntry> named;
    std::vector<DomainEntry> numbered;
    for (const DomainEntry& entry : entries) {
        if (entry.record.owner == caller.uid && entry.record.name == which) {
            named.push_back(entry);
        } else if (caller.mayUse(entry.record.owner) && which.size() >= kShortestId &&
                   entry.record.id.text().starts_with(which)) {
            numbered.push_back(entry);
        }
    }
    const auto& found = named.empty() ? numbered : named;
    if (found.empty()) {
        return noneDeleted(which);
    }
    if (found.size() > 1 && (mustBeOne || named.empty())) {
        return fail(ErrorCode::WrongState, std::to_string(found.size()) + " deleted domains are meant by \"" +
                                               escapeUntrusted(which, 64) +
                                               "\"; give the id, which `bulkhead domain ls --deleted` lists");
    }
    return found.front();
}

Result<DomainId> TrashService::restore(const Caller& caller, const std::string& which,
                                       const std::optional<std::string>& otherName) {
    if (auto checked = otherName ? checkDomainName(*otherName) : Status(); !checked) {
        return fail(checked.error());
    }
    const std::lock_guard lock(m_mutex);
    auto entry = find(caller, which, false);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->record.phase == Phase::Removing) {
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is being removed for good");
    }
    // An earlier try failed half-way, and has the name.
    if (entry->record.phase == Phase::Restoring && otherName && *otherName != entry->record.name) {
        if (auto back = takeBack(entry->record); !back) {
            return fail(back.error().in("its restoration as \"" + entry->record.name + "\" cannot be taken back"));
        }
        m_table.setDeleted(*entry);
    }
    const DomainRecord before = entry->record;
    DomainRecord record = before;
    const bool isBegun = before.phase == Phase::Restoring;
    record.name = otherName.value_or(before.name);
    record.phase = Phase::Restoring;
    const auto isTaken = [&] {
        return fail(ErrorCode::AlreadyExists, "there is a domain \"" + record.name +
                                                  "\" by now; restore it under another name: bulkhead domain restore " +
                                                  before.id.text().substr(0, kShortestId) + " --as OTHER");
    };
    if (m_table.findByName(record.owner, record.name)) {
        return isTaken();
    }
    if (auto meant = isBegun ? Status() : m_ports.domains.update(record); !meant) {
        return meant.error().code == ErrorCode::AlreadyExists ? isTaken() : fail(meant.error());
    }
    DomainEntry alive = *entry;
    alive.definition.name = record.name;
    const auto present =
        bringBack(record).and_then([&] { return readDefinition(alive); }).and_then([&] { return makePresent(record); });
    if (!present) {
        if (!undoRestoring(before, record)) {
            entry->record = record;
            m_table.setDeleted(std::move(*entry));
        }
        return present.error().code == ErrorCode::AlreadyExists
                   ? isTaken()
                   : fail(present.error().in("restoring domain \"" + before.name + "\""));
    }
    alive.record = record;
    alive.state = alive.head.isSuspended ? DomainState::Suspended : DomainState::Stopped;
    if (auto revived = m_table.revive(std::move(alive)); !revived) {
        return fail(revived.error());
    }
    log::notice("a deleted domain is restored", {{"DOMAIN", record.id.text()}});
    return record.id;
}

Status TrashService::bringBack(const DomainRecord& record) {
    return m_ports.setAside.bringBack(record.id, record.owner, record.name).and_then([&] {
        return m_ports.homes.rename(record.id, record.owner, record.name);
    });
}

/// A definition that is missing or bad is a domain's state, which its owner can mend; one that cannot be read is not.
Status TrashService::readDefinition(DomainEntry& entry) {
    auto definition = m_ports.definitions.reload(entry.definition);
    if (definition) {
        entry.definition = std::move(*definition);
        entry.definitionProblem.clear();
        return {};
    }
    if (definition.error().code != ErrorCode::NotFound && definition.error().code != ErrorCode::InvalidArgument) {
        return fail(definition.error());
    }
    entry.definitionProblem = definition.error().message;
    return {};
}

Status TrashService::makePresent(DomainRecord& record) {
    DomainRecord present = record;
    present.phase = Phase::Present;
    present.deletedAt = 0;
    auto done = m_ports.domains.update(present);
    record = done ? present : record;
    return done;
}

/// False: it stays half-way, for another try or the reconciler.
bool TrashService::undoRestoring(const DomainRecord& before, const DomainRecord& record) {
    if (before.phase == Phase::Restoring) {
        return false;
    }
    return m_ports.homes.rename(before.id, before.owner, before.name)
        .and_then([&] { return m_ports.setAside.setAside(asideOf(record)); })
        .and_then([&] { return m_ports.domains.update(before); })
        .has_value();
}

Result<std::vector<DeletedDomain>> TrashService::list(const Caller& caller, bool everybody) {
    if (everybody && !caller.isRoot()) {
        return fail(ErrorCode::NotAuthorized, "only root may see other people's domains");
    }
    std::vector<DeletedDomain> domains;
    for (const DomainEntry& entry : m_table.deleted()) {
        if (entry.record.owner != caller.uid && !everybody) {
            continue;
        }
        const auto size = m_ports.homes.sizeOnDisk(entry.record.id);
        domains.push_back({entry.record, entry.record.deletedAt + m_keep.count(), size.value_or(0)});
    }
    std::stable_sort(domains.begin(), domains.end(), [](const DeletedDomain& a, const DeletedDomain& b) {
        return a.record.deletedAt > b.record.deletedAt;
    });
    return domains;
}

// ---- for good -------------------------------------------------------------------------------------------------------

Result<JobId> TrashService::purge(const Caller& caller, const std::string& which) {
    const auto entry = find(caller, which, true);
    if (!entry) {
        return fail(entry.error());
    }
    return m_jobs.begin("remove", caller.uid,
                        [this, id = entry->record.id](const JobContext& job) -> Result<JobResult> {
                            job.report("Removing");
                            return purgeNow(id).map([] { return JobResult(std::monostate{}); });
                        });
}

/// A restoration that failed half-way is none: the definition is set aside again, and the name is free.
Status TrashService::takeBack(DomainRecord& record) {
    return m_ports.setAside.setAside(asideOf(record)).and_then([&] {
        DomainRecord deleted = record;
        deleted.phase = Phase::Deleted;
        auto done = m_ports.domains.update(deleted);
        record = done ? deleted : record;
        return done;
    });
}

Result<DomainRecord> TrashService::beginPurge(const DomainId& id) {
    const std::lock_guard lock(m_mutex);
    const auto deleted = m_table.deleted();
    const auto entry =
        std::find_if(deleted.begin(), deleted.end(), [&](const DomainEntry& other) { return other.record.id == id; });
    if (entry == deleted.end()) {
        return fail(ErrorCode::NotFound, "it is not among the deleted domains any more");
    }
    if (m_purging.contains(id)) {
        return fail(ErrorCode::Busy, "domain \"" + entry->record.name + "\" is being removed already");
    }
    DomainEntry going = *entry;
    if (going.record.phase == Phase::Restoring) {
        if (auto back = takeBack(going.record); !back) {
            return fail(back.error().in("its restoration, which has begun, cannot be taken back"));
        }
    }
    going.record.phase = Phase::Removing;
    if (auto meant = m_ports.domains.update(going.record); !meant) {
        return fail(meant.error());
    }
    m_table.setDeleted(going); // from here on it cannot be restored
    m_purging.insert(id);
    return going.record;
}

Status TrashService::purgeNow(const DomainId& id) {
    const auto record = beginPurge(id);
    if (!record) {
        return fail(record.error());
    }
    const auto gone = finishPurge(*record);
    {
        const std::lock_guard lock(m_mutex);
        m_purging.erase(id);
        if (gone) {
            m_table.eraseDeleted(id);
        }
    }
    if (!gone) {
        return fail(gone.error().in("removing domain \"" + record->name + "\""));
    }
    if (m_whenRemoved) {
        m_whenRemoved();
    }
    return {};
}

/// The definition first, which says that there is something to restore; the record last.
Status TrashService::finishPurge(const DomainRecord& record) {
    return m_ports.setAside.remove(record.id, record.owner)
        .and_then([&] { return m_ports.store.removeHome(record.id); })
        .and_then([&] { return m_ports.domains.remove(record.id); });
}

void TrashService::purgeExpired() {
    const std::int64_t now = m_ports.clock.now();
    for (const DomainEntry& entry : m_table.deleted()) {
        if (entry.record.phase == Phase::Restoring || entry.record.deletedAt + m_keep.count() > now) {
            continue;
        }
        if (auto purged = purgeNow(entry.record.id); !purged && purged.error().code != ErrorCode::NotFound) {
            log::warning("a deleted domain cannot be removed yet",
                         {{"DOMAIN", entry.record.id.text()}, {"ERROR", purged.error().message}});
            continue;
        }
        log::notice("a deleted domain was kept long enough and is removed", {{"DOMAIN", entry.record.id.text()}});
    }
}

void TrashService::begin(WorkerPool& workers) {
    purgeExpired();
    workers.postAfter(kInterval, [this, &workers] { begin(workers); });
}

std::string TrashService::hint(uid_t owner) {
    Bytes size = 0;
    unsigned count = 0;
    for (const DomainEntry& entry : m_table.deleted()) {
        if (entry.record.owner == owner) {
            size += m_ports.homes.sizeOnDisk(entry.record.id).value_or(0);
            ++count;
        }
    }
    if (count == 0) {
        return {};
    }
    return "your " + std::string(count == 1 ? "deleted domain holds " : "deleted domains hold ") + formatBytes(size) +
           "; to free it: bulkhead domain rm --now ID (of: bulkhead domain ls --deleted)";
}

// ---- after a crash --------------------------------------------------------------------------------------------------

Result<std::vector<TrashService::Settled>> TrashService::settle(std::vector<DomainRecord>& records, unsigned& undone,
                                                                std::vector<Error>& problems) {
    const std::lock_guard lock(m_mutex);
    const auto aside = m_ports.setAside.all();
    if (!aside) {
        return fail(aside.error());
    }
    std::vector<Settled> deleted;
    const auto note = [&](const Status& done) {
        ++undone;
        if (!done) {
            problems.push_back(done.error());
        }
        return done.has_value();
    };
    const auto asideFor = [&](const DomainId& id) {
        return std::find_if(aside->begin(), aside->end(), [&](const SetAsideDefinition& one) { return one.id == id; });
    };
    std::vector<DomainRecord> others;
    for (DomainRecord& record : records) {
        const auto found = asideFor(record.id);
        const bool isAside = found != aside->end();
        if (record.phase == Phase::Deleting) {
            note(finishDeleting(record));
        } else if (record.phase == Phase::Restoring) {
            note(bringBack(record).and_then([&] { return makePresent(record); }));
        } else if (record.phase == Phase::Removing && record.deletedAt != 0) {
            if (note(finishPurge(record))) {
                continue;
            }
        } else if (record.phase == Phase::Present && isAside) {
            // An old copy of the database: the definition is right.
            record.phase = Phase::Deleted;
            record.deletedAt = found->deletedAt;
            record.name = found->name;
            note(m_ports.domains.update(record));
        }
        if (record.deletedAt != 0) {
            deleted.push_back({record, isAside || record.phase == Phase::Deleting});
        } else {
            others.push_back(record);
        }
    }
    // The database was lost.
    for (const SetAsideDefinition& one : *aside) {
        const bool isKnown = std::any_of(records.begin(), records.end(),
                                         [&](const DomainRecord& record) { return record.id == one.id; });
        if (isKnown) {
            continue;
        }
        DomainRecord record;
        record.id = one.id;
        record.owner = one.owner;
        record.name = one.name;
        record.phase = Phase::Deleted;
        record.createdAt = one.deletedAt;
        record.deletedAt = one.deletedAt;
        note(m_ports.domains.insert(record));
        deleted.push_back({record, true});
    }
    records = std::move(others);
    return deleted;
}

} // namespace bulkhead::core
