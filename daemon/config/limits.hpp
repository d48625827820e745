// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"

#include <cstddef>

namespace bulkhead::config {

/// A definition is a page of text; anything larger is a mistake.
constexpr std::size_t kMostFileBytes = 64 * 1024;
/// Below this neither a kernel nor a file system is of use.
constexpr Bytes kLeastDisk = 64 * kMiB;
constexpr Bytes kMostDisk = 16 * 1024 * kGiB;
constexpr Bytes kLeastMemory = 64 * kMiB;
constexpr Bytes kMostMemory = 1024 * kGiB;
constexpr unsigned kMostVcpus = 64;
constexpr std::size_t kMostPackages = 2000;

} // namespace bulkhead::config
