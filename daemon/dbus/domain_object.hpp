// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "dbus/bus_context.hpp"
#include "dbus/options.hpp"

#include "org.bulkhead1.Domain.adaptor.hpp"

namespace bulkhead::dbus {

/// /org/bulkhead1/domains/<opaque id>. Loop thread only.
class DomainObject final : public sdbus::AdaptorInterfaces<org::bulkhead1::Domain_adaptor> {
public:
    DomainObject(sdbus::IConnection& connection, const BusContext& context, const DomainId& id);
    ~DomainObject();
    DomainObject(const DomainObject&) = delete;
    DomainObject& operator=(const DomainObject&) = delete;

private:
    core::Caller admit(std::string_view method);

    void Describe(sdbus::Result<Options>&& result) override;
    void SetDefinition(sdbus::Result<Options>&& result, Options changes) override;
    void Start(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Stop(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Snapshot(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Suspend(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Contain(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Pause(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Unpause(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Fork(sdbus::Result<sdbus::ObjectPath>&& result, std::string name, Options options) override;
    void Remove(sdbus::Result<sdbus::ObjectPath>&& result, Options options) override;
    void Exec(sdbus::Result<std::uint64_t, sdbus::UnixFd, sdbus::UnixFd, sdbus::UnixFd, sdbus::UnixFd>&& result,
              std::vector<std::string> argv, Options options) override;
    void Status(sdbus::Result<Options>&& result) override;
    void OpenDisplay(sdbus::Result<sdbus::UnixFd>&& result, Options options) override;
    void Screenshot(sdbus::Result<sdbus::UnixFd, std::string>&& result, Options options) override;
    void OpenSession(sdbus::Result<sdbus::UnixFd>&& result, Options options) override;

    const BusContext& m_context;
    DomainId m_id;
};

} // namespace bulkhead::dbus
