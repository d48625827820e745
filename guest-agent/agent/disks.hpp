// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bulkhead::agent {

/// Writes what / and /home have in memory to their disks. 0 or an errno.
int writeDisks();
/// As writeDisks(), and then has both stand still: whoever writes to them waits until thawDisks(). All or none. 0 or an
/// errno. May hang for as long as somebody's write does.
int freezeDisks();
/// What does not stand still stays as it is. Waits where one is just about to come to a stand.
void thawDisks();

} // namespace bulkhead::agent
