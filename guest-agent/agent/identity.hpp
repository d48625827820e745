// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// What tells one machine from another.
namespace bulkhead::agent {

bool hasMachineId();
/// A new one in /etc/machine-id.
void makeMachineId();
/// Programs that ask for the boot's id from now on get a new one: a file over the kernel's, which cannot be changed.
void makeBootId();
/// Gives these bytes to the kernel's random numbers and has it begin anew from them, so that what any program asks for
/// from here on has nothing to do with what a sibling of this machine gets. 0 or an errno.
int mixEntropy(std::string_view bytes);

} // namespace bulkhead::agent
