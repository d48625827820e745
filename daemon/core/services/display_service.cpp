// SPDX-License-Identifier: Apache-2.0
#include "core/services/display_service.hpp"

namespace bulkhead::core {
namespace {

template <class T> Result<T> about(const DomainEntry& domain, Result<T> result) {
    return result ? std::move(result) : fail(result.error().in("domain \"" + domain.record.name + "\""));
}

} // namespace

Result<UniqueFd> DisplayService::openDisplay(const Caller& caller, const DomainId& id) {
    const auto domain = m_domains.findRunning(caller, id);
    return domain ? about(*domain, m_displays.openDisplay(domain->instance->id)) : fail(domain.error());
}

Result<UniqueFd> DisplayService::openSession(const Caller& caller, const DomainId& id) {
    const auto domain = m_domains.findRunning(caller, id);
    return domain ? about(*domain, m_sessions.openSession(domain->instance->id)) : fail(domain.error());
}

} // namespace bulkhead::core
