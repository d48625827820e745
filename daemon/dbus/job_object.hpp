// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "dbus/bus_context.hpp"
#include "dbus/options.hpp"

#include "org.bulkhead1.Job.adaptor.hpp"

namespace bulkhead::dbus {

/// /org/bulkhead1/jobs/<opaque id>. Loop thread only.
class JobObject final : public sdbus::AdaptorInterfaces<org::bulkhead1::Job_adaptor> {
public:
    JobObject(sdbus::IConnection& connection, const BusContext& context, const JobId& id);
    ~JobObject();
    JobObject(const JobObject&) = delete;
    JobObject& operator=(const JobObject&) = delete;

private:
    core::Caller admit(std::string_view method);

    Options Describe() override;
    void Cancel() override;

    const BusContext& m_context;
    JobId m_id;
};

} // namespace bulkhead::dbus
