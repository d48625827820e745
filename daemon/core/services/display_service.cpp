// SPDX-License-Identifier: Apache-2.0
#include "core/services/display_service.hpp"

namespace bulkhead::core {
namespace {

template <class T> Result<T> about(const DomainEntry& domain, Result<T> result) {
    return result ? std::move(result) : fail(result.error().in("domain \"" + domain.record.name + "\""));
}

} // namespace

Result<DomainEntry> DisplayService::findWithDisplay(const Caller& caller, const DomainId& id) {
    auto domain = m_domains.findRunning(caller, id);
    if (domain && domain->instance->heads == 0) {
        return fail(ErrorCode::WrongState, "domain \"" + domain->record.name +
                                               "\" has no windows: its template is without a desktop; create one with "
                                               "--template desktop");
    }
    return domain;
}

Result<UniqueFd> DisplayService::openDisplay(const Caller& caller, const DomainId& id) {
    const auto domain = findWithDisplay(caller, id);
    return domain ? about(*domain, m_displays.openDisplay(domain->instance->id)) : fail(domain.error());
}

Result<Displays::Picture> DisplayService::screenshot(const Caller& caller, const DomainId& id, unsigned head) {
    const auto domain = findWithDisplay(caller, id);
    if (!domain) {
        return fail(domain.error());
    }
    if (head >= domain->instance->heads) {
        return fail(ErrorCode::InvalidArgument, "domain \"" + domain->record.name + "\" has heads 0 to " +
                                                    std::to_string(domain->instance->heads - 1) + ", not " +
                                                    std::to_string(head));
    }
    return about(*domain, m_displays.screenshot(domain->instance->id, head));
}

Result<UniqueFd> DisplayService::openSession(const Caller& caller, const DomainId& id) {
    const auto domain = findWithDisplay(caller, id);
    return domain ? about(*domain, m_sessions.openSession(domain->instance->id)) : fail(domain.error());
}

} // namespace bulkhead::core
