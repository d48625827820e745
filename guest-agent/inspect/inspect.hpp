// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sub-commands of the agent's program, for a guest that was made to look into disks or at itself. Both write records
/// (dbus/interfaces/diff_stream.hpp) to `output`, say what keeps them from it on standard error, and return the status
/// to exit with.
namespace bulkhead::inspect {

/// Compares the disks with the serial numbers a-system, a-home, b-system and b-home as far as they are there.
int inspectDisks(bool isDeep, int output);

/// The processes and listening sockets of this machine.
int reportFacts(int output);

} // namespace bulkhead::inspect
