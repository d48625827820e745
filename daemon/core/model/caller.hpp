// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/types.h>

namespace bulkhead::core {

/// Who asks: always the sender of the message, never anything that the message says.
struct Caller {
    uid_t uid = static_cast<uid_t>(-1);
    std::string busName; ///< the unique name of the connection; empty for the daemon's own acts

    [[nodiscard]] bool isRoot() const { return uid == 0; }
    /// Root sees everything; everybody else only what is theirs.
    [[nodiscard]] bool mayUse(uid_t owner) const { return isRoot() || uid == owner; }
};

} // namespace bulkhead::core
