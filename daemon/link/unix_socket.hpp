// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>

namespace bulkhead::link {

/// Binds and listens (SOCK_SEQPACKET), replacing what lies there; mode 0600.
Result<UniqueFd> listenSeqPacket(const std::filesystem::path& path);
/// `type`: SOCK_STREAM or SOCK_SEQPACKET. The descriptor is non-blocking and close-on-exec.
Result<UniqueFd> connectUnix(const std::filesystem::path& path, int type);

} // namespace bulkhead::link
