// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/aside.hpp"
#include "agent/event_loop.hpp"
#include "agent/system.hpp"
#include "protocol/session.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace bulkhead::agent {

/// What goes on around a picture (a snapshot) of this machine while it runs. Without the memory: its file systems stand
/// still until the picture is taken, or for a while. With it: the machine is "pictured" meanwhile, which is how one
/// that was begun from the picture finds itself: it still has the session in which the picture was asked for, but that
/// session's host is another machine's. In the machine that runs on the host ends the picture in that same session.
///
/// A host that loses its end of the channel between the two looks the same from here: then this machine takes itself
/// for one that was begun from the picture, and does less than it could (its programs are detached, not hung up).
///
/// Lives longer than any session.
class Picture {
public:
    /// How long what may last.
    struct Limits {
        std::chrono::milliseconds writing{10'000};  ///< with the memory: what is not on the disks then is in it
        std::chrono::milliseconds freezing{30'000}; ///< without: until the file systems stand still
        std::chrono::milliseconds frozen{10'000};   ///< they go on by themselves: whoever writes to them hangs
        std::chrono::milliseconds pictured{60'000};
    };
    Picture(EventLoop& loop, System& system)
        : Picture(loop, system, Limits()) {}
    Picture(EventLoop& loop, System& system, const Limits& limits);
    /// File systems go on.
    ~Picture();
    Picture(const Picture&) = delete;
    Picture& operator=(const Picture&) = delete;

    /// `done` gets 0 or an errno, now or from the loop: EBUSY while an earlier one is still under way, ETIMEDOUT. One
    /// that was not ended is ended first.
    void begin(const protocol::Session& session, bool ofMemory, std::function<void(int)> done);
    /// File systems go on; from here on the end of the session means nothing again. One that is still under way is told
    /// ECANCELED. Nothing when there was none.
    void end();
    /// `session` is over. True: the machine is pictured, in that session, and therefore not the one that the session
    /// belongs to. From here on it is not pictured. File systems that stand still wait for end() or their time.
    [[nodiscard]] bool endsWith(const protocol::Session& session);
    /// Nobody is there to be answered.
    void forgetAnswer(const protocol::Session& session);
    /// False: file systems stand still, or may any moment; whoever writes to them hangs.
    [[nodiscard]] bool mayWrite() const { return m_ofMemory || (m_stage == Stage::None && !m_settling); }

private:
    enum class Stage { None, Settling, Frozen, Pictured };
    void onSettled(int why);
    void onLate();
    void enter(Stage stage, std::chrono::milliseconds limit);
    void leave();
    void release();
    void answer(int why);

    EventLoop& m_loop;
    System& m_system;
    Limits m_limits;
    Stage m_stage = Stage::None;
    bool m_ofMemory = true;
    const protocol::Session* m_session = nullptr; ///< in which it was asked for; never looked into
    std::function<void(int)> m_done;
    std::unique_ptr<Aside> m_settling;  ///< may go on when nobody waits for it any more
    std::unique_ptr<Aside> m_releasing; ///< while that goes on
    EventLoop::TimerId m_timer = 0;
};

} // namespace bulkhead::agent
