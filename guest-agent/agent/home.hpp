// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/accounts.hpp"
#include "base/result.hpp"

#include <string>

/// The home disk, which is another one than the system's: it is what the user keeps.
namespace bulkhead::agent {

/// Mounts the disk `device` on the folder `where`, which is made.
Status mountHome(const std::string& device, const std::string& where);

/// A home from /etc/skel. Only when there is none: what lies there is the user's.
void makeHome(const Account& account);

/// The home disk of a machine that was begun from a memory image: the kernel there knows the size and perhaps blocks of
/// another disk in the same slot, so the driver takes the disk anew before it is mounted on /home. Blocks for some
/// milliseconds.
Status takeHomeAnew();

} // namespace bulkhead::agent
