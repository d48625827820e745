// SPDX-License-Identifier: Apache-2.0
#include "dbus/bus_service.hpp"

#include "base/log.hpp"
#include "dbus/describe.hpp"
#include "dbus/domain_object.hpp"
#include "dbus/job_object.hpp"
#include "dbus/manager_object.hpp"

#include <set>

namespace bulkhead::dbus {
namespace {

constexpr const char* kBusName = "org.bulkhead1";

} // namespace

template <class Tell> void BusEvents::tell(Tell tell) {
    m_loop.post([this, tell] {
        if (m_service == nullptr) {
            return;
        }
        try {
            tell(*m_service);
        } catch (const sdbus::Error& error) {
            log::error("a signal could not be sent", {{"ERROR", error.getMessage()}});
        }
    });
}

void BusEvents::domainStateChanged(const DomainId& id, core::DomainState state) {
    tell([id, state](BusService& service) { service.emitStateChanged(id, state); });
}
void BusEvents::domainsChanged() {
    tell([](BusService& service) { service.emitDomainsChanged(); });
}
void BusEvents::snapshotsChanged(const DomainId& id) {
    tell([id](BusService& service) { service.emitSnapshotsChanged(id); });
}
void BusEvents::jobProgress(const JobId& id, double fraction) {
    tell([id, fraction](BusService& service) { service.emitJobProgress(id, fraction); });
}
void BusEvents::jobFinished(const JobId& id) {
    tell([id](BusService& service) { service.emitJobFinished(id); });
}

BusService::BusService(sdbus::IConnection& connection, BusContext context, core::AccelerationProbe& acceleration)
    : m_connection(connection)
    , m_context(std::move(context)) {
    m_context.syncObjects = [this] { syncObjects(); };
    m_manager = std::make_unique<ManagerObject>(m_connection, m_context, acceleration);
    syncObjects();
    watchClients();
    m_connection.requestName(kBusName);
}

BusService::~BusService() = default;

void BusService::watchClients() {
    m_clientWatch = m_connection.addMatch(
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'",
        [this](sdbus::Message& message) {
            std::string name;
            std::string oldOwner;
            std::string newOwner;
            message >> name >> oldOwner >> newOwner;
            if (name.starts_with(':') && newOwner.empty()) {
                m_context.door.forget(name);
                m_context.lifecycle.onClientLeft(name);
            }
        });
}

void BusService::syncObjects() {
    std::set<DomainId> domains;
    for (const auto& entry : m_context.table.all()) {
        domains.insert(entry.record.id);
    }
    syncMap(m_domains, domains);
    const auto jobs = m_context.jobs.known();
    syncMap(m_jobs, std::set<JobId>(jobs.begin(), jobs.end()));
}

template <class Id, class Object>
void BusService::syncMap(std::map<Id, std::unique_ptr<Object>>& objects, const std::set<Id>& wanted) {
    std::erase_if(objects, [&](const auto& object) { return !wanted.contains(object.first); });
    for (const auto& id : wanted) {
        auto& object = objects[id];
        if (!object) {
            object = std::make_unique<Object>(m_connection, m_context, id);
        }
    }
}

void BusService::emitStateChanged(const DomainId& id, core::DomainState state) {
    if (const auto object = m_domains.find(id); object != m_domains.end()) {
        object->second->emitStateChanged(std::string(nameOf(state)));
    }
}

void BusService::emitDomainsChanged() {
    syncObjects();
    m_manager->emitDomainsChanged();
}

void BusService::emitSnapshotsChanged(const DomainId& id) {
    m_manager->emitSnapshotsChanged(domainPath(id)); // also of a domain that is gone
}

void BusService::emitJobProgress(const JobId& id, double fraction) {
    if (const auto object = m_jobs.find(id); object != m_jobs.end()) {
        object->second->emitProgress(fraction);
    }
}

void BusService::emitJobFinished(const JobId& id) {
    if (const auto object = m_jobs.find(id); object != m_jobs.end()) {
        core::Caller daemon{.uid = 0, .busName = {}};
        if (const auto info = m_context.jobs.describe(daemon, id)) {
            object->second->emitFinished(std::string(nameOf(info->state)));
        }
    }
}

} // namespace bulkhead::dbus
