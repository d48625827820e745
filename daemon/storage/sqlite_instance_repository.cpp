// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_instance_repository.hpp"

#include "storage/stored_words.hpp"

namespace bulkhead::storage {

namespace {

Result<core::InstanceRecord> instanceFrom(const Row& row) {
    const auto id = instanceIdFromStored(row.text(0));
    if (!id) {
        return fail(id.error());
    }
    const std::string context = "instance " + id->text();
    // Empty: it belongs to no domain.
    const auto domain = row.text(1).empty() ? Result<DomainId>() : domainIdFromStored(row.text(1));
    if (!domain) {
        return fail(domain.error().in(context));
    }
    const auto phase = instancePhaseFromStored(row.text(2));
    if (!phase) {
        return fail(phase.error().in(context));
    }
    const auto slot = unsignedFromStored(row.integer(3));
    if (!slot) {
        return fail(slot.error().in(context));
    }
    const auto acceleration = accelerationFromStored(row.text(6));
    if (!acceleration) {
        return fail(acceleration.error().in(context));
    }
    const auto transport = transportFromStored(row.text(7));
    if (!transport) {
        return fail(transport.error().in(context));
    }
    const auto cid = unsignedFromStored(row.integer(9));
    if (!cid) {
        return fail(cid.error().in(context));
    }
    const auto heads = unsignedFromStored(row.integer(10));
    if (!heads) {
        return fail(heads.error().in(context));
    }
    const auto vcpus = unsignedFromStored(row.integer(12));
    if (!vcpus) {
        return fail(vcpus.error().in(context));
    }
    const auto audio = audioFromStored(row.text(13));
    if (!audio) {
        return fail(audio.error().in(context));
    }
    core::InstanceRecord record;
    record.id = *id;
    record.domain = *domain;
    record.phase = *phase;
    record.uidSlot = *slot;
    record.templateVersion = row.text(4);
    record.size = row.text(5);
    record.acceleration = *acceleration;
    record.transport = *transport;
    record.cid = *cid == 0 ? std::nullopt : std::optional(*cid);
    record.heads = *heads;
    record.audio = *audio;
    record.isHeld = row.integer(14) != 0;
    record.memory = static_cast<Bytes>(row.integer(11));
    record.vcpus = *vcpus;
    record.startedAt = row.integer(8);
    return record;
}

} // namespace

Status SqliteInstanceRepository::insert(const core::InstanceRecord& record) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change(
            "INSERT INTO instances (id, domain, phase, uid_slot, template_version, size, "
            "acceleration, transport, started_at, cid, heads, memory, vcpus, audio, held) "
            "VALUES (?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            {record.id.text(), record.domain.isNull() ? std::string() : record.domain.text(),
             std::string(storedWord(record.phase)), std::int64_t{record.uidSlot}, record.templateVersion, record.size,
             std::string(storedWord(record.acceleration)), std::string(storedWord(record.transport)), record.startedAt,
             std::int64_t{record.cid.value_or(0)}, std::int64_t{record.heads}, static_cast<std::int64_t>(record.memory),
             std::int64_t{record.vcpus}, std::string(storedWord(record.audio)), std::int64_t{record.isHeld ? 1 : 0}});
        return changed ? Status() : Status(fail(changed.error().in("cannot record instance " + record.id.text())));
    });
}

Status SqliteInstanceRepository::setPhase(const InstanceId& id, core::InstancePhase phase) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change("UPDATE instances SET phase = ? WHERE id = ?",
                                               {std::string(storedWord(phase)), id.text()});
        if (!changed) {
            return fail(changed.error());
        }
        if (*changed == 0) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text());
        }
        return {};
    });
}

Status SqliteInstanceRepository::setHeld(const InstanceId& id, bool isHeld) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed =
            connection.change("UPDATE instances SET held = ? WHERE id = ?", {std::int64_t{isHeld ? 1 : 0}, id.text()});
        if (!changed) {
            return fail(changed.error());
        }
        if (*changed == 0) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text());
        }
        return {};
    });
}

Status SqliteInstanceRepository::assign(const InstanceId& id, const DomainId& domain, std::int64_t startedAt) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed =
            connection.change("UPDATE instances SET domain = ?, started_at = ? WHERE id = ? AND domain IS NULL",
                              {domain.text(), startedAt, id.text()});
        if (!changed) {
            return fail(changed.error().in("cannot give instance " + id.text() + " to a domain"));
        }
        if (*changed == 0) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text() + " without a domain");
        }
        return {};
    });
}

Status SqliteInstanceRepository::remove(const InstanceId& id) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change("DELETE FROM instances WHERE id = ?", {id.text()});
        return changed ? Status() : Status(fail(changed.error()));
    });
}

Result<std::vector<core::InstanceRecord>> SqliteInstanceRepository::all() {
    std::vector<core::InstanceRecord> records;
    const Status done = m_database.read([&](Connection& connection) -> Status {
        return connection.query("SELECT id, COALESCE(domain, ''), phase, uid_slot, template_version, size, "
                                "acceleration, transport, started_at, cid, "
                                "heads, memory, vcpus, audio, held FROM instances ORDER BY started_at, id",
                                {}, [&](const Row& row) -> Status {
                                    auto record = instanceFrom(row);
                                    if (!record) {
                                        return fail(record.error());
                                    }
                                    records.push_back(std::move(*record));
                                    return {};
                                });
    });
    if (!done) {
        return fail(done.error());
    }
    return records;
}

} // namespace bulkhead::storage
