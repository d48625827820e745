// SPDX-License-Identifier: Apache-2.0
#include "dbus/domain_object.hpp"

#include "core/model/exec_check.hpp"
#include "dbus/describe.hpp"
#include "dbus/interfaces/exec_stream.hpp"
#include "dbus/snapshot_options.hpp"

namespace bulkhead::dbus {
namespace {

const auto kSendJobPath = [](const auto& reply, const JobId& id) { reply.returnResults(jobPath(id)); };

void finishReading(const OptionReader& reader) {
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
}

sdbus::UnixFd handOver(UniqueFd fd) {
    return {fd.release(), sdbus::adopt_fd};
}

const auto kSendDescriptor = [](const auto& reply, UniqueFd fd) { reply.returnResults(handOver(std::move(fd))); };

Options describe(const BusContext& context, const core::DomainEntry& entry) {
    return describeDomain(entry, context.domains.runningExecs(entry),
                          context.templates.newestVersion(entry.definition.templateName));
}

} // namespace

DomainObject::DomainObject(sdbus::IConnection& connection, const BusContext& context, const DomainId& id)
    : AdaptorInterfaces(connection, domainPath(id))
    , m_context(context)
    , m_id(id) {
    registerAdaptor();
}

DomainObject::~DomainObject() {
    unregisterAdaptor();
}

core::Caller DomainObject::admit(std::string_view method) {
    return m_context.door.admit(getObject(), INTERFACE_NAME, method, [this]() -> Result<std::optional<uid_t>> {
        const auto entry = m_context.table.find(m_id);
        if (!entry) {
            return fail(ErrorCode::NotFound, "no such object");
        }
        return entry->record.owner;
    });
}

void DomainObject::Describe(sdbus::Result<Options>&& result) {
    const auto caller = admit("Describe");
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id]() -> Result<Options> {
            return context.domains.find(caller, id).map([&](const auto& entry) { return describe(context, entry); });
        },
        [](const auto& reply, const Options& description) { reply.returnResults(description); });
}

void DomainObject::SetDefinition(sdbus::Result<Options>&& result, Options changes) {
    const auto caller = admit("SetDefinition");
    const auto settings = settingsFrom(changes);
    if (!settings) {
        throwError(settings.error());
    }
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, settings = *settings]() -> Result<Options> {
            return context.domains.setDefinition(caller, id, settings).map([&](const auto& entry) {
                return describe(context, entry);
            });
        },
        [](const auto& reply, const Options& description) { reply.returnResults(description); });
}

void DomainObject::Start(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Start");
    OptionReader reader(options);
    const bool isCold = reader.flag("cold");
    finishReading(reader);
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, isCold] { return context.lifecycle.start(caller, id, isCold); },
        kSendJobPath);
}

void DomainObject::Stop(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Stop");
    constexpr std::uint64_t kLongestGraceMs = 600'000;
    OptionReader reader(options);
    core::LifecycleService::StopOptions wanted;
    wanted.force = reader.flag("force");
    wanted.grace = std::chrono::milliseconds(
        reader.number("grace", static_cast<std::uint64_t>(wanted.grace.count()), kLongestGraceMs));
    const bool isDiscard = reader.flag("discard");
    finishReading(reader);
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, wanted, isDiscard] {
            return isDiscard ? context.snapshots.discard(caller, id) : context.lifecycle.stop(caller, id, wanted);
        },
        kSendJobPath);
}

void DomainObject::Snapshot(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Snapshot");
    const auto wanted = takeOptionsFrom(options);
    if (!wanted) {
        throwError(wanted.error());
    }
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, wanted = *wanted] {
            return context.snapshots.create(caller, id, wanted);
        },
        kSendJobPath);
}

void DomainObject::Suspend(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Suspend");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.snapshots.suspend(caller, id); }, kSendJobPath);
}

void DomainObject::Pause(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Pause");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.pauses.pause(caller, id); }, kSendJobPath);
}

void DomainObject::Unpause(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Unpause");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.pauses.unpause(caller, id); }, kSendJobPath);
}

void DomainObject::Contain(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Contain");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.containment.contain(caller, id); }, kSendJobPath);
}

void DomainObject::Fork(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) {
    const auto caller = admit("Fork");
    const auto wanted = forkOptionsFrom(options);
    if (!wanted) {
        throwError(wanted.error());
    }
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, name, wanted = *wanted] {
            return context.snapshots.forkNow(caller, id, name, wanted);
        },
        kSendJobPath);
}

void DomainObject::Remove(sdbus::Result<sdbus::ObjectPath>&& result, Options options) {
    const auto caller = admit("Remove");
    OptionReader reader(options);
    core::DomainService::RemoveOptions wanted;
    wanted.force = reader.flag("force");
    wanted.forGood = reader.flag("now");
    finishReading(reader);
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, wanted] { return context.domains.remove(caller, id, wanted); },
        kSendJobPath);
}

void DomainObject::Exec(
    sdbus::Result<std::uint64_t, sdbus::UnixFd, sdbus::UnixFd, sdbus::UnixFd, sdbus::UnixFd>&& result,
    std::vector<std::string> argv, Options options) {
    const auto caller = admit("Exec");
    OptionReader reader(options);
    core::ExecRequest request;
    request.argv = std::move(argv);
    request.user = reader.text("user");
    request.cwd = reader.text("cwd");
    request.environment = reader.list("env");
    request.terminal = reader.flag("terminal");
    request.rows = static_cast<std::uint32_t>(reader.number("rows", 24, 10000));
    request.columns = static_cast<std::uint32_t>(reader.number("columns", 80, 10000));
    request.term = reader.text("term");
    request.timeoutMs = reader.number("timeout", 0, std::uint64_t{exec_stream::kLongestTimeoutMs});
    request.limitProcesses = reader.number("processes", 0, 1'000'000);
    finishReading(reader);
    // Before anything is queued: a whole D-Bus message of arguments is no burden to us.
    if (auto checked = core::checkExecRequest(request); !checked) {
        throwError(checked.error());
    }
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, request] { return context.domains.exec(caller, id, request); },
        [](const auto& reply, core::ExecStreams streams) {
            reply.returnResults(streams.id, handOver(std::move(streams.control)), handOver(std::move(streams.input)),
                                handOver(std::move(streams.output)), handOver(std::move(streams.error)));
        });
}

void DomainObject::Status(sdbus::Result<Options>&& result) {
    const auto caller = admit("Status");
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id]() -> Result<Options> {
            return context.domains.status(caller, id).map(describeStatus);
        },
        [](const auto& reply, const Options& status) { reply.returnResults(status); });
}

void DomainObject::OpenDisplay(sdbus::Result<sdbus::UnixFd>&& result, Options options) {
    const auto caller = admit("OpenDisplay");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.displays.openDisplay(caller, id); },
        kSendDescriptor);
}

void DomainObject::Screenshot(sdbus::Result<sdbus::UnixFd, std::string>&& result, Options options) {
    const auto caller = admit("Screenshot");
    OptionReader reader(options);
    const auto head = static_cast<unsigned>(reader.number("head", 0, core::kMostHeads - 1));
    finishReading(reader);
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id, head] { return context.displays.screenshot(caller, id, head); },
        [](const auto& reply, core::Displays::Picture picture) {
            reply.returnResults(handOver(std::move(picture.bytes)), picture.type);
        });
}

void DomainObject::OpenSession(sdbus::Result<sdbus::UnixFd>&& result, Options options) {
    const auto caller = admit("OpenSession");
    finishReading(OptionReader(options));
    m_context.answer(
        caller, std::move(result),
        [&context = m_context, caller, id = m_id] { return context.displays.openSession(caller, id); },
        kSendDescriptor);
}

} // namespace bulkhead::dbus
