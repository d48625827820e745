// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "core/ports/host.hpp"
#include "dbus/bus_context.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <set>

namespace bulkhead::dbus {

class DomainObject;
class JobObject;
class ManagerObject;

/// Hands what the core tells, from any thread, to the bus service on the loop's thread. It exists before the services
/// and the bus; what comes before attach() needs no telling, since nobody can have subscribed.
class BusEvents final : public core::EventSink {
public:
    explicit BusEvents(Loop& loop)
        : m_loop(loop) {}
    /// From the loop's thread. Not owned; detach with nullptr before it goes.
    void attach(class BusService* service) { m_service = service; }

    void domainStateChanged(const DomainId& id, core::DomainState state) override;
    void domainsChanged() override;
    void snapshotsChanged(const DomainId& id) override;
    void jobProgress(const JobId& id, double fraction) override;
    void jobFinished(const JobId& id) override;

private:
    template <class Tell> void tell(Tell tell);

    Loop& m_loop;
    BusService* m_service = nullptr; ///< read and written on the loop's thread only
};

/// The daemon on the bus: objects for what there is, signals, clients that leave. Loop thread only.
class BusService {
public:
    /// Registers the objects, then takes the name. Throws sdbus::Error when the name cannot be had (another daemon, or
    /// the bus policy forbids it).
    BusService(sdbus::IConnection& connection, BusContext context, core::AccelerationProbe& acceleration);
    ~BusService();
    BusService(const BusService&) = delete;
    BusService& operator=(const BusService&) = delete;

    void syncObjects();
    void emitStateChanged(const DomainId& id, core::DomainState state);
    void emitDomainsChanged();
    void emitSnapshotsChanged(const DomainId& id);
    void emitJobProgress(const JobId& id, double fraction);
    void emitJobFinished(const JobId& id);

private:
    void watchClients();
    template <class Id, class Object>
    void syncMap(std::map<Id, std::unique_ptr<Object>>& objects, const std::set<Id>& wanted);

    sdbus::IConnection& m_connection;
    BusContext m_context;
    std::unique_ptr<ManagerObject> m_manager;
    std::map<DomainId, std::unique_ptr<DomainObject>> m_domains;
    std::map<JobId, std::unique_ptr<JobObject>> m_jobs;
    sdbus::Slot m_clientWatch;
};

} // namespace bulkhead::dbus
