// SPDX-License-Identifier: Apache-2.0
#include "dbus/manager_object.hpp"

#include "base/version.hpp"
#include "dbus/describe.hpp"
#include "dbus/snapshot_options.hpp"

namespace bulkhead::dbus {
namespace {

const auto kSendDomainPath = [](const auto& reply, const DomainId& id) { reply.returnResults(domainPath(id)); };
const auto kSendJobPath = [](const auto& reply, const JobId& id) { reply.returnResults(jobPath(id)); };

template <class T> T valueOrThrow(Result<T> result) {
    if (!result) {
        throwError(result.error());
    }
    return std::move(*result);
}

} // namespace

ManagerObject::ManagerObject(sdbus::IConnection& connection, const BusContext& context,
                             core::AccelerationProbe& acceleration)
    : AdaptorInterfaces(connection, "/org/bulkhead1")
    , m_context(context)
    , m_acceleration(acceleration) {
    registerAdaptor();
}

ManagerObject::~ManagerObject() {
    unregisterAdaptor();
}

core::Caller ManagerObject::admit(std::string_view method) {
    return m_context.door.admit(getObject(), INTERFACE_NAME, method,
                                [] { return Result<std::optional<uid_t>>(std::nullopt); });
}

Options ManagerObject::Describe() {
    admit("Describe");
    const auto outcome = m_acceleration.remembered();
    const std::string acceleration = outcome.isKnown ? std::string(nameOf(outcome.acceleration)) : "unknown";
    return {
        {"version", sdbus::Variant(std::string(kVersion))},
        {"features", sdbus::Variant(std::vector<std::string>{"run", "domains", "templates", "snapshots", "doctor"})},
        {"acceleration", sdbus::Variant(acceleration)},
        {"acceleration-reason", sdbus::Variant(outcome.reason)}};
}

void ManagerObject::ListDomains(sdbus::Result<Paths>&& result, Options options) {
    const auto caller = admit("ListDomains");
    OptionReader reader(options);
    const bool everybody = reader.flag("all");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, everybody]() -> Result<Paths> {
            const auto entries = m_context.domains.list(caller, everybody);
            if (!entries) {
                return fail(entries.error());
            }
            Paths paths;
            for (const auto& entry : *entries) {
                paths.emplace(domainPath(entry.record.id),
                              describeDomain(entry, m_context.domains.runningExecs(entry),
                                             m_context.templates.newestVersion(entry.definition.templateName)));
            }
            return paths;
        },
        [](const auto& reply, const Paths& paths) { reply.returnResults(paths); });
}

void ManagerObject::FindDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string name) {
    const auto caller = admit("FindDomain");
    m_context.answer(
        caller, std::move(result),
        [this, caller, name]() -> Result<DomainId> {
            return m_context.domains.findByName(caller, name).map([](const auto& entry) { return entry.record.id; });
        },
        kSendDomainPath);
}

void ManagerObject::CreateDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) {
    const auto caller = admit("CreateDomain");
    OptionReader reader(options);
    core::CreateOptions wanted;
    wanted.templateName = reader.text("template", wanted.templateName);
    wanted.size = reader.text("size");
    wanted.label = reader.text("label", wanted.label);
    wanted.egress = reader.text("egress", wanted.egress);
    wanted.homeSize = reader.bytes("home-size");
    wanted.tags = reader.list("tags");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, name, wanted] { return m_context.domains.create(caller, name, wanted); }, kSendDomainPath);
}

void ManagerObject::StartDisposable(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("StartDisposable");
    OptionReader reader(options);
    const auto templateName = reader.text("template");
    const auto size = reader.text("size");
    const auto from = reader.text("from");
    const bool isDiskOnly = reader.flag("disk");
    const bool isKept = reader.flag("keep");
    const bool isCold = reader.flag("cold");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    std::optional<SnapshotId> node;
    if (!from.empty()) {
        node = valueOrThrow(snapshotIdFrom(from));
    }
    if (node ? !templateName.empty() || !size.empty() : isDiskOnly) {
        throwError({ErrorCode::InvalidArgument, node ? "a snapshot has its template and its size: leave them out"
                                                     : "disk: goes with a snapshot to begin from only"});
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, templateName, size, node, isDiskOnly, isKept, isCold]() -> Result<JobId> {
            auto made =
                node ? m_context.snapshots.forkDisposable(caller, *node, {.isDiskOnly = isDiskOnly, .isKept = isKept})
                     : m_context.domains.createDisposable(caller, templateName, size, {.isKept = isKept});
            return made.and_then(
                [&](const DomainId& id) { return m_context.lifecycle.startDisposable(caller, id, isCold); });
        },
        [this, caller](const auto& reply, const JobId& id) { sendDisposable(caller, reply, id); });
}

void ManagerObject::Inspect(sdbus::Result<sdbus::ObjectPath>&& result, std::string a, std::string b, Options options) {
    const auto caller = admit("Inspect");
    if (auto read = OptionReader(options).finish(); !read) {
        throwError(read.error());
    }
    const auto first = valueOrThrow(snapshotIdFrom(a));
    const auto second = valueOrThrow(snapshotIdFrom(b));
    m_context.answer(
        caller, std::move(result),
        [this, caller, first, second] {
            return m_context.snapshots.inspect(caller, first, second).and_then([&](const DomainId& id) {
                return m_context.lifecycle.startDisposable(caller, id, false);
            });
        },
        [this, caller](const auto& reply, const JobId& id) { sendDisposable(caller, reply, id); });
}

void ManagerObject::sendDisposable(const core::Caller& caller, const sdbus::Result<sdbus::ObjectPath>& reply,
                                   const JobId& id) {
    reply.returnResults(jobPath(id));
    // A client that left before its disposable was in the table: nobody else will tell of it.
    if (!m_context.door.knows(caller.busName)) {
        m_context.lifecycle.onClientLeft(caller.busName);
    }
}

void ManagerObject::ListDeleted(sdbus::Result<std::vector<Options>>&& result, Options options) {
    const auto caller = admit("ListDeleted");
    OptionReader reader(options);
    const bool everybody = reader.flag("all");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, everybody]() -> Result<std::vector<Options>> {
            const auto domains = m_context.trash.list(caller, everybody);
            if (!domains) {
                return fail(domains.error());
            }
            std::vector<Options> described;
            for (const auto& domain : *domains) {
                described.push_back(describeDeleted(domain));
            }
            return described;
        },
        [](const auto& reply, const std::vector<Options>& list) { reply.returnResults(list); });
}

void ManagerObject::RestoreDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string which, Options options) {
    const auto caller = admit("RestoreDomain");
    OptionReader reader(options);
    const auto otherName = reader.textIfGiven("as");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, which, otherName] { return m_context.domains.restore(caller, which, otherName); },
        kSendDomainPath);
}

void ManagerObject::PurgeDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string which, Options options) {
    const auto caller = admit("PurgeDomain");
    if (auto read = OptionReader(options).finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result), [this, caller, which] { return m_context.trash.purge(caller, which); },
        kSendJobPath);
}

void ManagerObject::ListSnapshots(sdbus::Result<std::vector<Options>>&& result) {
    const auto caller = admit("ListSnapshots");
    m_context.answer(
        caller, std::move(result),
        [this, caller]() -> Result<std::vector<Options>> {
            const auto records = m_context.snapshots.list(caller);
            if (!records) {
                return fail(records.error());
            }
            std::vector<Options> described;
            for (const auto& record : *records) {
                described.push_back(describeSnapshot(record));
            }
            return described;
        },
        [](const auto& reply, const std::vector<Options>& list) { reply.returnResults(list); });
}

void ManagerObject::SetSnapshot(sdbus::Result<Options>&& result, std::string id, Options changes) {
    const auto caller = admit("SetSnapshot");
    const auto snapshot = valueOrThrow(snapshotIdFrom(id));
    const auto wanted = valueOrThrow(snapshotChangesFrom(changes));
    m_context.answer(
        caller, std::move(result),
        [this, caller, snapshot, wanted]() -> Result<Options> {
            auto record = m_context.snapshots.find(caller, snapshot);
            // The label first: it is what may be refused, and then nothing has changed.
            if (record && wanted.label) {
                record = m_context.snapshots.setLabel(caller, snapshot, *wanted.label);
            }
            if (record && wanted.isPinned) {
                record = m_context.snapshots.setPinned(caller, snapshot, *wanted.isPinned);
            }
            return record.map(describeSnapshot);
        },
        [](const auto& reply, const Options& description) { reply.returnResults(description); });
}

void ManagerObject::RemoveSnapshot(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, Options options) {
    const auto caller = admit("RemoveSnapshot");
    const auto snapshot = valueOrThrow(snapshotIdFrom(id));
    OptionReader reader(options);
    const bool isCascade = reader.flag("cascade");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, snapshot, isCascade] { return m_context.snapshots.remove(caller, snapshot, isCascade); },
        kSendJobPath);
}

void ManagerObject::Revert(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, Options options) {
    const auto caller = admit("Revert");
    const auto snapshot = valueOrThrow(snapshotIdFrom(id));
    const auto wanted = valueOrThrow(revertOptionsFrom(options));
    m_context.answer(
        caller, std::move(result),
        [this, caller, snapshot, wanted] { return m_context.snapshots.revert(caller, snapshot, wanted); },
        kSendJobPath);
}

void ManagerObject::ForkSnapshot(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, std::string name,
                                 Options options) {
    const auto caller = admit("ForkSnapshot");
    const auto snapshot = valueOrThrow(snapshotIdFrom(id));
    const auto wanted = valueOrThrow(forkOptionsFrom(options));
    m_context.answer(
        caller, std::move(result),
        [this, caller, snapshot, name, wanted] { return m_context.snapshots.fork(caller, snapshot, name, wanted); },
        kSendJobPath);
}

void ManagerObject::ListTemplates(sdbus::Result<std::vector<Options>>&& result) {
    const auto caller = admit("ListTemplates");
    m_context.answer(
        caller, std::move(result),
        [this]() -> Result<std::vector<Options>> {
            const auto infos = m_context.templates.list();
            if (!infos) {
                return fail(infos.error());
            }
            std::vector<Options> described;
            for (const auto& info : *infos) {
                described.push_back(describeTemplate(info, false));
            }
            return described;
        },
        [](const auto& reply, const std::vector<Options>& list) { reply.returnResults(list); });
}

void ManagerObject::DescribeTemplate(sdbus::Result<Options>&& result, std::string name) {
    const auto caller = admit("DescribeTemplate");
    m_context.answer(
        caller, std::move(result),
        [this, name]() -> Result<Options> {
            return m_context.templates.find(name).map([&](const auto& info) {
                return describeTemplate(info, info.installed ? m_context.warmImages.all(*info.installed)
                                                             : std::vector<core::WarmImage>());
            });
        },
        [](const auto& reply, const Options& description) { reply.returnResults(description); });
}

void ManagerObject::BuildTemplate(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) {
    const auto caller = admit("BuildTemplate");
    OptionReader reader(options);
    core::TemplateBuildOptions wanted;
    wanted.force = reader.flag("force");
    wanted.update = reader.flag("update");
    wanted.packages = reader.list("packages");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, name, wanted] { return m_context.templates.build(caller, name, wanted); }, kSendJobPath);
}

void ManagerObject::MakeWarmImage(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) {
    const auto caller = admit("MakeWarmImage");
    OptionReader reader(options);
    const auto size = reader.text("size");
    const bool force = reader.flag("force");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, name, size, force] { return m_context.warmImages.make(caller, name, size, force); },
        kSendJobPath);
}

void ManagerObject::Doctor(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Doctor");
    OptionReader reader(options);
    const bool refresh = reader.flag("refresh");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result), [this, caller, refresh] { return m_context.doctor.begin(caller, refresh); },
        kSendJobPath);
}

} // namespace bulkhead::dbus
