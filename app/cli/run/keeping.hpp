// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/run/program.hpp"

namespace bulkhead::cli {

struct KeepSubject {
    bool isDisposable = false; ///< a kept one: the daemon suspends it by itself when its program has ended
    bool wasLeft = false;      ///< the command was left, and may still be ending
};

/// After the command: suspends its domain, so that it can be gone on with. Whatever comes of that is for people to be
/// told, and changes nothing of how the command ended.
KeptDomain keepAsItIs(Session& session, Place& place, const KeepSubject& subject, const RunArguments& arguments);

} // namespace bulkhead::cli
