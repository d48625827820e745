// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace bulkhead::session {

/// From now on children that ended leave nothing behind. Once, before the first start.
void forgetChildren();

/// Starts a program that then lives on its own: a session of its own, our environment, standard input from /dev/null,
/// our standard output and error, no other descriptor of ours. 0, or the errno of what stopped it (ENOENT: there is no
/// such program). Waits until the program runs, not until it ends.
[[nodiscard]] int startProgram(const std::vector<std::string>& argv);

} // namespace bulkhead::session
