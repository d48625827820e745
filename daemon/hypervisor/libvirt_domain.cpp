// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_domain.hpp"

#include "hypervisor/domain_xml.hpp"
#include "hypervisor/libvirt_error.hpp"

#include <fmt/format.h>

#include <array>

namespace bulkhead::hypervisor {

std::string aboutInstance(std::string_view what, const InstanceId& id) {
    return fmt::format("cannot {} instance {}", what, id.text());
}

std::optional<InstanceId> idOf(virDomain* domain) {
    std::array<char, VIR_UUID_STRING_BUFLEN> uuid{};
    const char* name = virDomainGetName(domain);
    if (name == nullptr || virDomainGetUUIDString(domain, uuid.data()) < 0) {
        return std::nullopt;
    }
    return instanceOf(name, uuid.data());
}

Result<DomainHandle> lookUp(virConnect* connection, const InstanceId& id, std::string_view what) {
    DomainHandle domain(virDomainLookupByUUIDString(connection, id.text().c_str()));
    if (!domain) {
        return fail(lastLibvirtError(aboutInstance(what, id)));
    }
    if (idOf(domain.get()) != id) {
        return fail(ErrorCode::NotFound, aboutInstance(what, id) + ": the libvirt domain of that UUID is not ours");
    }
    return domain;
}

} // namespace bulkhead::hypervisor
