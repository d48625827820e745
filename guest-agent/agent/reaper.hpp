// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <sys/types.h>

namespace bulkhead::agent {

/// Reaps the children that have ended, except those of `kept`: they stay zombies, and so nobody else gets their
/// numbers. Does not wait.
void reapAllBut(const std::set<pid_t>& kept);

} // namespace bulkhead::agent
