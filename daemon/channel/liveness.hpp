// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/poller.hpp"

namespace bulkhead::channel {

/// Decides when to ask a quiet guest whether it still answers, and when it counts as silent. Pure: it is told the time.
/// A guest always has its time after the question: whoever asks may have stood still himself (frozen while the host
/// went to sleep), and the guest with him.
class Liveness {
public:
    enum class Act { Nothing, Ping, Silent, Back };

    /// The guest said something (whatever it was).
    void heard(TimePoint now);
    /// What to do now; each once for each silence. Call it again until it says Nothing.
    [[nodiscard]] Act turn(TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const;

private:
    TimePoint m_lastHeard{};
    TimePoint m_pinged{};
    bool m_isWatching = false;
    bool m_hasPinged = false;
    bool m_isSilent = false;
    bool m_isBack = false;
};

} // namespace bulkhead::channel
