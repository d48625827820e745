// SPDX-License-Identifier: Apache-2.0
#include "dbus/job_object.hpp"

#include "dbus/describe.hpp"

namespace bulkhead::dbus {

JobObject::JobObject(sdbus::IConnection& connection, const BusContext& context, const JobId& id)
    : AdaptorInterfaces(connection, jobPath(id))
    , m_context(context)
    , m_id(id) {
    registerAdaptor();
}

JobObject::~JobObject() {
    unregisterAdaptor();
}

core::Caller JobObject::admit(std::string_view method) {
    return m_context.door.admit(getObject(), INTERFACE_NAME, method, [this]() -> Result<std::optional<uid_t>> {
        constexpr uid_t kRoot = 0; // our own look-up, to learn the owner
        return m_context.jobs.describe({.uid = kRoot, .busName = {}}, m_id).map([](const auto& job) {
            return std::optional(job.owner);
        });
    });
}

Options JobObject::Describe() {
    const auto caller = admit("Describe");
    const auto info = m_context.jobs.describe(caller, m_id);
    if (!info) {
        throwError(info.error());
    }
    return describeJob(*info);
}

void JobObject::Cancel() {
    const auto caller = admit("Cancel");
    if (auto cancelled = m_context.jobs.cancel(caller, m_id); !cancelled) {
        throwError(cancelled.error());
    }
}

} // namespace bulkhead::dbus
