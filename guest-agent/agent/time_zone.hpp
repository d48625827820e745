// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace bulkhead::agent {

/// Makes `name` the time zone of the system below `root` ("" is this one): /etc/localtime and /etc/timezone, each
/// replaced as a whole. Programs that run see it at their next look at the clock, as far as they ask the C library.
/// 0 or an errno: EINVAL when that is no name of a time zone, ENOENT when the system does not have it; then nothing
/// has changed.
int installTimeZone(const std::string& root, const std::string& name);

} // namespace bulkhead::agent
