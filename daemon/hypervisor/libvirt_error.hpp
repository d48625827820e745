// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <string_view>

struct _virError;

namespace bulkhead::hypervisor {

/// What libvirt's error means to us. `what` says what we wanted ("cannot start the emulator").
Error errorFrom(const _virError* error, std::string_view what);
/// The calling thread's last libvirt error: ask at once after the failed call.
Error lastLibvirtError(std::string_view what);
/// True when the calling thread's last error says that there is no such domain.
bool lastErrorIsNoDomain();

} // namespace bulkhead::hypervisor
