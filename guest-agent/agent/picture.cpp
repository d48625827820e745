// SPDX-License-Identifier: Apache-2.0
#include "agent/picture.hpp"

#include <cerrno>
#include <utility>

namespace bulkhead::agent {

Picture::Picture(EventLoop& loop, System& system, const Limits& limits)
    : m_loop(loop)
    , m_system(system)
    , m_limits(limits) {}

Picture::~Picture() {
    m_done = {};
    end();
    if (!mayWrite()) {
        m_system.releaseDisks(); // as far as it got
    }
}

void Picture::begin(const protocol::Session& session, bool ofMemory, std::function<void(int)> done) {
    if (m_settling) {
        done(EBUSY);
        return;
    }
    end();
    m_session = &session;
    m_ofMemory = ofMemory;
    m_done = std::move(done);
    m_settling = std::make_unique<Aside>(
        m_loop, [this, ofMemory] { return m_system.settleDisks(!ofMemory); }, [this](int why) { onSettled(why); });
    m_stage = Stage::Settling;
    m_timer = m_loop.after(ofMemory ? m_limits.writing : m_limits.freezing, [this] { onLate(); });
}

void Picture::onSettled(int why) {
    m_settling.reset();
    if (m_stage != Stage::Settling) {
        if (!m_ofMemory && why == 0) {
            m_system.releaseDisks(); // nobody waits for this any more
        }
        return;
    }
    if (why != 0) {
        leave();
        if (why == EIO && !m_ofMemory) {
            release(); // killed, and perhaps halfway
        }
    } else if (m_ofMemory) {
        enter(Stage::Pictured, m_limits.pictured);
    } else {
        enter(Stage::Frozen, m_limits.frozen);
    }
    answer(why);
}

void Picture::onLate() {
    m_timer = 0;
    if (m_ofMemory) {
        enter(Stage::Pictured, m_limits.pictured);
        answer(0);
    } else {
        leave();
        answer(ETIMEDOUT);
    }
}

void Picture::enter(Stage stage, std::chrono::milliseconds limit) {
    m_stage = stage;
    m_loop.cancel(m_timer);
    m_timer = m_loop.after(limit, [this] {
        m_timer = 0;
        end();
    });
}

/// Whoever is still about to have them stand still may have done so with one of them, and wait for a program that waits
/// for that one. Also aside: the other one may be busy.
void Picture::release() {
    if (!m_releasing) {
        m_releasing = std::make_unique<Aside>(
            m_loop,
            [this] {
                m_system.releaseDisks();
                return 0;
            },
            [this](int) { m_releasing.reset(); });
    }
}

void Picture::leave() {
    m_loop.cancel(std::exchange(m_timer, 0));
    if (m_stage == Stage::Settling && m_settling && !m_ofMemory) {
        release();
    }
    m_stage = Stage::None;
    m_session = nullptr;
}

void Picture::end() {
    const Stage stage = m_stage;
    leave();
    if (stage == Stage::Frozen) {
        m_system.releaseDisks();
    }
    answer(ECANCELED);
}

bool Picture::endsWith(const protocol::Session& session) {
    if (m_session != &session) {
        return false;
    }
    m_session = nullptr;
    m_done = {};
    const bool isPictured = m_stage == Stage::Pictured;
    if (m_stage != Stage::Frozen) {
        leave();
    }
    return isPictured;
}

void Picture::forgetAnswer(const protocol::Session& session) {
    if (m_session == &session) {
        m_done = {};
    }
}

void Picture::answer(int why) {
    if (m_done) {
        std::exchange(m_done, {})(why);
    }
}

} // namespace bulkhead::agent
