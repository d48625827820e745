// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

#include <libvirt/libvirt.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// How the adapters over libvirt find the domain of an instance.
namespace bulkhead::hypervisor {

struct DomainCloser {
    void operator()(virDomain* domain) const { virDomainFree(domain); }
};
using DomainHandle = std::unique_ptr<virDomain, DomainCloser>;

/// "cannot WHAT instance ID"
std::string aboutInstance(std::string_view what, const InstanceId& id);
/// The id when the domain is one of ours.
std::optional<InstanceId> idOf(virDomain* domain);
/// NotFound when libvirt has no such domain, or has one with this UUID that does not carry our mark.
Result<DomainHandle> lookUp(virConnect* connection, const InstanceId& id, std::string_view what);

} // namespace bulkhead::hypervisor
