// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_snapshot_repository.hpp"

#include "storage/stored_words.hpp"

#include <string_view>

namespace bulkhead::storage {
namespace {

std::string storedLayers(const core::Disk& disk) {
    std::string text;
    for (const core::DiskLayer& layer : disk.layers) {
        text += std::string(storedWord(layer.format)) + " " + layer.path.native() + "\n";
    }
    return text;
}

Result<core::Disk> layersFromStored(std::string_view text) {
    core::Disk disk;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto space = text.find(' ');
        if (end == std::string_view::npos || space == std::string_view::npos || space > end) {
            return fail(ErrorCode::HostFailure, "the database holds a damaged list of layers");
        }
        const auto format = diskFormatFromStored(text.substr(0, space));
        if (!format) {
            return fail(format.error());
        }
        disk.layers.push_back({std::string(text.substr(space + 1, end - space - 1)), *format});
        text.remove_prefix(end + 1);
    }
    return disk;
}

/// Collects the first error while a row is read field by field.
class Reading {
public:
    template <class T> T take(Result<T> value) {
        if (!value) {
            m_error = m_error ? m_error : std::optional(value.error());
            return T{};
        }
        return std::move(*value);
    }
    [[nodiscard]] const std::optional<Error>& error() const { return m_error; }

private:
    std::optional<Error> m_error;
};

constexpr int kFirstOfMemory = 18;

std::optional<core::SnapshotMemory> memoryFrom(const Row& row, Reading& reading) {
    if (row.text(kFirstOfMemory).empty()) {
        return std::nullopt;
    }
    core::SnapshotMemory memory;
    memory.delta = row.text(kFirstOfMemory);
    memory.devices = row.text(kFirstOfMemory + 1);
    if (const std::string file = row.text(kFirstOfMemory + 2); !file.empty()) {
        memory.parent = core::MemoryImageRef{file, row.text(kFirstOfMemory + 3)};
    }
    memory.machine.memory = static_cast<Bytes>(row.integer(kFirstOfMemory + 4));
    memory.machine.vcpus = reading.take(unsignedFromStored(row.integer(kFirstOfMemory + 5)));
    memory.machine.heads = reading.take(unsignedFromStored(row.integer(kFirstOfMemory + 6)));
    memory.machine.acceleration = reading.take(accelerationFromStored(row.text(kFirstOfMemory + 7)));
    memory.machine.transport = reading.take(transportFromStored(row.text(kFirstOfMemory + 8)));
    memory.machine.version = row.text(kFirstOfMemory + 9);
    memory.machine.audio = reading.take(audioFromStored(row.text(kFirstOfMemory + 10)));
    return memory;
}

Result<core::SnapshotRecord> snapshotFrom(const Row& row) {
    Reading reading;
    core::SnapshotRecord record;
    record.id = reading.take(snapshotIdFromStored(row.text(0)));
    if (!row.text(1).empty()) {
        record.parent = reading.take(snapshotIdFromStored(row.text(1)));
    }
    record.domain = reading.take(domainIdFromStored(row.text(2)));
    record.owner = reading.take(unsignedFromStored(row.integer(3)));
    record.domainName = row.text(4);
    record.kind = reading.take(snapshotKindFromStored(row.text(5)));
    record.phase = reading.take(snapshotPhaseFromStored(row.text(6)));
    record.createdAt = row.integer(7);
    record.reason = row.text(8);
    record.label = row.text(9);
    record.isPinned = row.integer(10) != 0;
    record.suspect = row.text(11);
    record.templateName = row.text(12);
    record.templateVersion = row.text(13);
    record.size = row.text(14);
    record.sizeOnDisk = static_cast<Bytes>(row.integer(15));
    record.system = reading.take(layersFromStored(row.text(16)));
    record.home = reading.take(layersFromStored(row.text(17)));
    record.memory = memoryFrom(row, reading);
    if (reading.error()) {
        return fail(reading.error()->in("snapshot " + row.text(0)));
    }
    return record;
}

Status saveMemory(Connection& connection, const core::SnapshotRecord& record) {
    if (!record.memory) {
        return {};
    }
    const core::SnapshotMemory& memory = *record.memory;
    const auto parent = memory.parent.value_or(core::MemoryImageRef{});
    const auto changed = connection.change(
        "INSERT INTO snapshot_memories (snapshot, delta, devices, parent_file, parent_digest, memory, vcpus, heads, "
        "acceleration, transport, machine, audio) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {record.id.text(), memory.delta.native(), memory.devices.native(), parent.file.native(), parent.digest,
         static_cast<std::int64_t>(memory.machine.memory), std::int64_t{memory.machine.vcpus},
         std::int64_t{memory.machine.heads}, std::string(storedWord(memory.machine.acceleration)),
         std::string(storedWord(memory.machine.transport)), memory.machine.version,
         std::string(storedWord(memory.machine.audio))});
    return changed ? Status() : Status(fail(changed.error()));
}

} // namespace

Status SqliteSnapshotRepository::save(const core::SnapshotRecord& record) {
    const Status saved = m_database.write([&](Connection& connection) -> Status {
        // Its memory goes with it by the reference, and comes again.
        if (auto gone = connection.change("DELETE FROM snapshots WHERE id = ?", {record.id.text()}); !gone) {
            return fail(gone.error());
        }
        const auto changed = connection.change(
            "INSERT INTO snapshots (id, parent, domain, owner, domain_name, kind, phase, created_at, reason, label, "
            "pinned, suspect, template, template_version, size, size_on_disk, system, home) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            {record.id.text(), record.parent ? record.parent->text() : std::string(), record.domain.text(),
             std::int64_t{record.owner}, record.domainName, std::string(storedWord(record.kind)),
             std::string(storedWord(record.phase)), record.createdAt, record.reason, record.label,
             std::int64_t{record.isPinned ? 1 : 0}, record.suspect, record.templateName, record.templateVersion,
             record.size, static_cast<std::int64_t>(record.sizeOnDisk), storedLayers(record.system),
             storedLayers(record.home)});
        return changed ? saveMemory(connection, record) : Status(fail(changed.error()));
    });
    return saved ? saved : Status(fail(saved.error().in("cannot record snapshot " + record.id.text())));
}

Status SqliteSnapshotRepository::remove(const SnapshotId& id) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change("DELETE FROM snapshots WHERE id = ?", {id.text()});
        return changed ? Status() : Status(fail(changed.error()));
    });
}

Result<std::vector<core::SnapshotRecord>> SqliteSnapshotRepository::all() {
    std::vector<core::SnapshotRecord> records;
    const Status done = m_database.read([&](Connection& connection) -> Status {
        return connection.query(
            "SELECT id, parent, domain, owner, domain_name, kind, phase, created_at, reason, label, pinned, suspect, "
            "template, template_version, size, size_on_disk, system, home, COALESCE(delta, ''), COALESCE(devices, ''), "
            "COALESCE(parent_file, ''), COALESCE(parent_digest, ''), COALESCE(memory, 0), COALESCE(vcpus, 0), "
            "COALESCE(heads, 0), COALESCE(acceleration, ''), COALESCE(transport, ''), COALESCE(machine, ''), "
            "COALESCE(audio, 'off') "
            "FROM snapshots LEFT JOIN snapshot_memories ON snapshot = id ORDER BY created_at, id",
            {}, [&](const Row& row) -> Status {
                auto record = snapshotFrom(row);
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

Status SqliteSnapshotRepository::setHead(const DomainId& domain, const core::DomainHead& head) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change(
            "INSERT INTO heads (domain, node, suspended, at_version) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (domain) DO UPDATE SET node = excluded.node, suspended = excluded.suspended, "
            "at_version = excluded.at_version",
            {domain.text(), head.node ? head.node->text() : std::string(), std::int64_t{head.isSuspended ? 1 : 0},
             std::int64_t{head.isAtVersion ? 1 : 0}});
        return changed ? Status()
                       : Status(fail(changed.error().in("cannot record where domain " + domain.text() + " stands")));
    });
}

Result<std::map<DomainId, core::DomainHead>> SqliteSnapshotRepository::heads() {
    std::map<DomainId, core::DomainHead> heads;
    const Status done = m_database.read([&](Connection& connection) -> Status {
        return connection.query("SELECT domain, node, suspended, at_version FROM heads", {},
                                [&](const Row& row) -> Status {
                                    const auto domain = domainIdFromStored(row.text(0));
                                    if (!domain) {
                                        return fail(domain.error());
                                    }
                                    core::DomainHead head;
                                    if (!row.text(1).empty()) {
                                        const auto node = snapshotIdFromStored(row.text(1));
                                        if (!node) {
                                            return fail(node.error());
                                        }
                                        head.node = *node;
                                    }
                                    head.isSuspended = row.integer(2) != 0;
                                    head.isAtVersion = row.integer(3) != 0;
                                    heads.emplace(*domain, head);
                                    return {};
                                });
    });
    if (!done) {
        return fail(done.error());
    }
    return heads;
}

} // namespace bulkhead::storage
