// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/displays.hpp"
#include "core/services/domain_service.hpp"

namespace bulkhead::core {

/// Hands the owner of a running domain what shows its windows. Every call checks the caller as DomainService does.
/// Thread-safe, blocking.
class DisplayService {
public:
    DisplayService(DomainService& domains, Displays& displays, GuestSessions& sessions)
        : m_domains(domains)
        , m_displays(displays)
        , m_sessions(sessions) {}

    Result<UniqueFd> openDisplay(const Caller& caller, const DomainId& id);
    Result<Displays::Picture> screenshot(const Caller& caller, const DomainId& id, unsigned head);
    Result<UniqueFd> openSession(const Caller& caller, const DomainId& id);

private:
    Result<DomainEntry> findWithDisplay(const Caller& caller, const DomainId& id);

    DomainService& m_domains;
    Displays& m_displays;
    GuestSessions& m_sessions;
};

} // namespace bulkhead::core
