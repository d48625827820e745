// SPDX-License-Identifier: Apache-2.0
// Who is told the time when the host's clock jumped, how often, and that nobody is killed for silence.
#include <QTest>

#include "core/services/guest_clocks.hpp"
#include "core/services/worker_pool.hpp"
#include "support/fakes/fake_host.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <thread>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;
using namespace std::chrono_literals;

namespace {

/// Answers as told; by default at once, and well.
class FakeGuestClock final : public GuestClock {
public:
    Status setToHosts(const InstanceId& instance) override {
        std::unique_lock lock(m_mutex);
        m_asked.push_back(instance);
        m_changed.notify_all();
        m_changed.wait(lock, [&] { return !m_isHeld; });
        if (m_failures > 0) {
            --m_failures;
            return fail(m_error);
        }
        if (m_late > 0) {
            --m_late;
            lock.unlock();
            std::this_thread::sleep_for(kFresh + 5ms); // lint-allow(sleep): an answer that comes late
        }
        return {};
    }
    void failNext(unsigned times, ErrorCode code) {
        const std::lock_guard lock(m_mutex);
        m_failures = times;
        m_error = {code, "a test"};
    }
    void answerLate(unsigned times) {
        const std::lock_guard lock(m_mutex);
        m_late = times;
    }
    void hold(bool isHeld) {
        const std::lock_guard lock(m_mutex);
        m_isHeld = isHeld;
        m_changed.notify_all();
    }
    std::vector<InstanceId> asked() {
        const std::lock_guard lock(m_mutex);
        return m_asked;
    }
    void waitAsked(std::size_t count) {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return m_asked.size() >= count; });
    }
    static constexpr std::chrono::milliseconds kFresh{20};

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<InstanceId> m_asked;
    unsigned m_failures = 0;
    unsigned m_late = 0;
    bool m_isHeld = false;
    Error m_error{ErrorCode::TimedOut, {}};
};

struct World {
    RecordingEvents events;
    DomainTable table{events};
    FakeGuestClock guests;
    std::unique_ptr<WorkerPool> workers = std::make_unique<WorkerPool>(2);
    GuestClocks clocks{guests, table, *workers, {.retry = 1ms, .tries = 4, .fresh = 1h}};

    /// A domain in that state, with an emulator.
    InstanceId add(const std::string& name, DomainState state) {
        DomainEntry entry;
        entry.record.id = randomId<DomainId>();
        entry.record.name = name;
        entry.state = state;
        entry.instance.emplace();
        entry.instance->id = randomId<InstanceId>();
        const InstanceId instance = entry.instance->id;
        if (!table.insert(std::move(entry))) {
            throw std::logic_error("not added");
        }
        return instance;
    }
    /// Until everything that was posted is done. What waits for a later try is dropped.
    void finish() { workers.reset(); }
};

} // namespace

class TestGuestClocks : public QObject {
    Q_OBJECT

private slots:
    void eachThatRunsIsSet_theOthersAreLeftAlone() {
        World world;
        std::vector<InstanceId> running{world.add("one", DomainState::Running), world.add("two", DomainState::Running)};
        for (const auto state : {DomainState::Paused, DomainState::Starting, DomainState::Stopping, DomainState::Failed,
                                 DomainState::Suspended, DomainState::Stopped}) {
            world.add("in-state-" + std::to_string(static_cast<int>(state)), state);
        }
        world.clocks.setAllSoon();
        world.finish();
        auto asked = world.guests.asked();
        std::ranges::sort(asked);
        std::ranges::sort(running);
        QVERIFY(asked == running);
    }

    void silentGuest_isAskedAgain_andLivesOn_data() {
        QTest::addColumn<ErrorCode>("error");
        QTest::addColumn<unsigned>("failures");
        QTest::addColumn<unsigned>("asked");
        QTest::newRow("answers late") << ErrorCode::TimedOut << 2U << 3U;
        QTest::newRow("a picture of it is taken") << ErrorCode::Busy << 1U << 2U;
        QTest::newRow("too many questions wait") << ErrorCode::LimitExceeded << 1U << 2U;
        QTest::newRow("never answers") << ErrorCode::TimedOut << 100U << 4U;
        QTest::newRow("cannot") << ErrorCode::GuestFailure << 100U << 1U;
        QTest::newRow("its channel is being made anew") << ErrorCode::Unavailable << 100U << 1U;
    }
    void silentGuest_isAskedAgain_andLivesOn() {
        QFETCH(ErrorCode, error);
        QFETCH(unsigned, failures);
        QFETCH(unsigned, asked);
        World world;
        const auto instance = world.add("work", DomainState::Running);
        world.guests.failNext(failures, error);
        world.clocks.setAllSoon();
        QTRY_COMPARE(world.guests.asked().size(), std::size_t{asked});
        // No further question is under way: another guest's comes and is the last.
        const auto other = world.add("other", DomainState::Running);
        world.guests.failNext(0, error);
        world.clocks.setSoon(other);
        world.guests.waitAsked(asked + 1);
        world.finish();
        QCOMPARE(world.guests.asked().size(), std::size_t{asked} + 1);
        QVERIFY(world.table.findByInstance(instance)->state == DomainState::Running);
    }

    void answerThatTookLong_isForATimeThatIsOver() {
        World world;
        GuestClocks clocks(world.guests, world.table, *world.workers,
                           {.retry = 1ms, .tries = 3, .fresh = FakeGuestClock::kFresh});
        world.add("work", DomainState::Running);
        world.guests.answerLate(1);
        clocks.setAllSoon();
        QTRY_VERIFY(world.guests.asked().size() >= 2); // on a busy machine the second may be late, too
        world.guests.answerLate(100);
        world.clocks.setAllSoon();
        world.finish();
        QVERIFY(world.guests.asked().size() <= 4);
    }

    void laterWake_takesOverFromAnEarlierOne() {
        World world;
        world.add("work", DomainState::Running);
        world.guests.hold(true);
        world.guests.failNext(2, ErrorCode::TimedOut);
        world.clocks.setAllSoon();
        world.guests.waitAsked(1);
        world.clocks.setAllSoon(); // while the first waits for its answer
        world.guests.waitAsked(2);
        world.guests.hold(false); // both fail; only the later one asks again
        QTRY_COMPARE(world.guests.asked().size(), std::size_t{3});
        world.clocks.setSoon(world.add("other", DomainState::Running));
        world.guests.waitAsked(4);
        world.finish();
        QCOMPARE(world.guests.asked().size(), std::size_t{4});
    }

    void guestThatEndsOrIsPausedMeanwhile_isNotAskedAgain_data() {
        QTest::addColumn<bool>("ends");
        QTest::newRow("ends") << true;
        QTest::newRow("is paused") << false;
    }
    void guestThatEndsOrIsPausedMeanwhile_isNotAskedAgain() {
        QFETCH(bool, ends);
        World world;
        const auto instance = world.add("work", DomainState::Running);
        const auto id = world.table.findByInstance(instance)->record.id;
        world.guests.hold(true);
        world.guests.failNext(100, ErrorCode::TimedOut);
        world.clocks.setAllSoon();
        world.guests.waitAsked(1);
        if (ends) {
            world.table.setInstance(id, std::nullopt);
        } else {
            QVERIFY(world.table.apply(id, DomainEvent::PauseRequested).has_value());
        }
        world.guests.hold(false);
        const auto other = world.add("other", DomainState::Running);
        world.guests.failNext(0, ErrorCode::TimedOut);
        world.clocks.setSoon(other);
        world.guests.waitAsked(2);
        world.finish();
        QCOMPARE(world.guests.asked().size(), std::size_t{2});
    }
};

QTEST_GUILESS_MAIN(TestGuestClocks)
#include "tst_guest_clocks.moc"
