// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

namespace bulkhead::viewer {

/// Takes from this process, with all its threads, what a viewer never needs and an intruder would: starting programs,
/// every socket but local ones, other processes' memory, mounts, namespaces, keys, and the corners of the kernel that
/// are reached by few and attacked by many. What is refused fails with EPERM, so that a library that tries goes on
/// without. Call it before the first byte of a guest is read. Fails with HostFailure.
client::Outcome<void> confine();

} // namespace bulkhead::viewer
