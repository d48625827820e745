// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/listener.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/session.hpp"

#include <variant>

/// The duties of a guest's first process. Each step is called once, in this order; all run before any program of the
/// guest, so nothing here races with anybody.
namespace bulkhead::agent::boot {

/// Opens /dev/null for those of 0, 1 and 2 that are not open: else a pipe's end would get such a number, and be closed
/// by a child's dup2. (Not only for a first process; prepareKernel() does it by itself.)
void openStandardDescriptors();

/// In the initramfs: mounts /dev, /proc and /sys, and loads the modules that /modules lists as `early`.
Status prepareKernel();
/// After prepareKernel(): the kernel command line has the word bulkhead.selftest.
bool isSelfTest();
/// Mounts the system disk (and the home disk where there is one) and makes it the root. The initramfs is emptied.
Status enterSystem();
/// Everything that programs expect of a running system: /run, terminals, shared memory, host name, loopback,
/// machine-id, the user's home.
Status prepareSystem();
/// In the initramfs: the system has a first process of its own, systemd.
bool handsOver();
/// After enterSystem(), when handsOver(): does what only we know of and becomes systemd. Comes back only to say why
/// not.
Status handOver();
/// Loads the modules that nothing before needed and that were not loaded yet.
void loadLateModules();

/// The channel token that QEMU's fw_cfg holds.
Result<protocol::Token> readToken();
/// Where the host is met: the virtio-serial port, or a listener where the machine has vsock instead.
using Channel = std::variant<UniqueFd, Listener>;
/// Waits for the kernel to announce the port. Loads vsock's modules first where they are needed.
Result<Channel> openChannel();

} // namespace bulkhead::agent::boot
