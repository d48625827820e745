// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dbus/bus_context.hpp"
#include "dbus/options.hpp"

#include "org.bulkhead1.Manager.adaptor.hpp"

namespace bulkhead::dbus {

/// /org/bulkhead1. Decodes, passes the door, calls one service, encodes. Loop thread only.
class ManagerObject final : public sdbus::AdaptorInterfaces<org::bulkhead1::Manager_adaptor> {
public:
    ManagerObject(sdbus::IConnection& connection, const BusContext& context, core::AccelerationProbe& acceleration);
    ~ManagerObject();
    ManagerObject(const ManagerObject&) = delete;
    ManagerObject& operator=(const ManagerObject&) = delete;

private:
    using Paths = std::map<sdbus::ObjectPath, Options>;

    core::Caller admit(std::string_view method);
    void sendDisposable(const core::Caller& caller, const sdbus::Result<sdbus::ObjectPath>& reply, const JobId& id);

    Options Describe() override;
    void ListDomains(sdbus::Result<Paths>&& result, Options options) override;
    void FindDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string name) override;
    void CreateDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) override;
    void StartDisposable(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Inspect(sdbus::Result<sdbus::ObjectPath>&& result, std::string a, std::string b, Options options) override;
    void ListDeleted(sdbus::Result<std::vector<Options>>&& result, Options options) override;
    void RestoreDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string which, Options options) override;
    void PurgeDomain(sdbus::Result<sdbus::ObjectPath>&& result, std::string which, Options options) override;
    void ListSnapshots(sdbus::Result<std::vector<Options>>&& result) override;
    void SetSnapshot(sdbus::Result<Options>&& result, std::string id, Options changes) override;
    void RemoveSnapshot(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, Options options) override;
    void Revert(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, Options options) override;
    void ForkSnapshot(sdbus::Result<sdbus::ObjectPath>&& result, std::string id, std::string name,
                      Options options) override;
    void ListTemplates(sdbus::Result<std::vector<Options>>&& result) override;
    void DescribeTemplate(sdbus::Result<Options>&& result, std::string name) override;
    void MakeWarmImage(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) override;
    void BuildTemplate(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) override;
    void Doctor(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;

    const BusContext& m_context;
    core::AccelerationProbe& m_acceleration;
};

} // namespace bulkhead::dbus
