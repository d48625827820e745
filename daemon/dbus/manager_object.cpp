// SPDX-License-Identifier: Apache-2.0
#include "dbus/manager_object.hpp"

#include "base/version.hpp"
#include "dbus/describe.hpp"

namespace bulkhead::dbus {
namespace {

const auto kSendDomainPath = [](const auto& reply, const DomainId& id) { reply.returnResults(domainPath(id)); };
const auto kSendJobPath = [](const auto& reply, const JobId& id) { reply.returnResults(jobPath(id)); };

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
    return {{"version", sdbus::Variant(std::string(kVersion))},
            {"features", sdbus::Variant(std::vector<std::string>{"run", "domains", "templates", "doctor"})},
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
    const bool isCold = reader.flag("cold");
    if (auto read = reader.finish(); !read) {
        throwError(read.error());
    }
    m_context.answer(
        caller, std::move(result),
        [this, caller, templateName, size, isCold]() -> Result<JobId> {
            return m_context.domains.createDisposable(caller, templateName, size).and_then([&](const DomainId& id) {
                return m_context.lifecycle.startDisposable(caller, id, isCold);
            });
        },
        [this, caller](const auto& reply, const JobId& id) {
            reply.returnResults(jobPath(id));
            // A client that left before its disposable was in the table: nobody else will tell of it.
            if (!m_context.door.knows(caller.busName)) {
                m_context.lifecycle.onClientLeft(caller.busName);
            }
        });
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
