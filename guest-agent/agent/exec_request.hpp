// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/child_process.hpp"
#include "protocol/agent.pb.h"

#include <tl/expected.hpp>

namespace bulkhead::agent {

/// Checks a request against the limits and turns it into a plan. `changeAccount`: programs run as the account that is
/// named (`user` when none is); otherwise only as this process's own.
tl::expected<ChildPlan, ExecFailed::Reason> planFor(const ExecRequest& request, bool changeAccount);

} // namespace bulkhead::agent
