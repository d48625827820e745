// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "core/model/instance.hpp"
#include "core/model/warm_image.hpp"
#include "core/ports/image_store.hpp"

#include <optional>
#include <sys/types.h>

namespace bulkhead::core {

/// An emulator that was created for a warm image ahead of time and stands still before it has loaded anything. It has
/// disks, a uid, an address and a token of its own, but no domain yet.
struct Shell {
    InstanceRecord record;
    InstancePlan plan;
    InstanceFiles files;
    pid_t emulator = 0;
    WarmImage image;
};

/// Where starts get shells. Thread-safe; called from the threads of jobs.
class WaitingShells {
public:
    virtual ~WaitingShells() = default;
    /// One for this image, with a home disk of this size that goes with the instance (another of that size can take its
    /// place, of another size none can); it is the caller's from now on.
    /// None: there is none. Either way it is known afterwards that such starts are made. Never waits.
    virtual std::optional<Shell> claim(const WarmImage& image, Bytes homeSize) = 0;
    /// Ends, soon and until it is done, what was claimed but cannot be used.
    virtual void endLater(const InstanceRecord& shell) = 0;
    /// Ends all that wait, since a start needs memory; returns when they have ended. False: none did.
    virtual bool giveMemoryBack() = 0;
    /// A template or a warm image was made, replaced or removed: those that no start would use any more end soon.
    virtual void onImagesChanged() = 0;
};

} // namespace bulkhead::core
