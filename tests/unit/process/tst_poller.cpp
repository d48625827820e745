// SPDX-License-Identifier: Apache-2.0
#include "process/child_reaper.hpp"
#include "process/pidfd_watch.hpp"
#include "process/poller.hpp"

#include <QTest>

#include <atomic>
#include <csignal>
#include <future>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::process;
using namespace std::chrono_literals;

namespace {

void ring(int fd) {
    const std::uint64_t one = 1;
    QCOMPARE(::write(fd, &one, sizeof(one)), ssize_t{8});
}
void quiet(int fd) {
    std::uint64_t value = 0;
    [[maybe_unused]] const auto got = ::read(fd, &value, sizeof(value));
}

ProcessSpec sleeper() {
    ProcessSpec spec;
    spec.program = "/bin/sleep";
    spec.arguments = {"100"};
    return spec;
}

} // namespace

class TestPoller : public QObject {
    Q_OBJECT

private slots:
    void event_reachesTheCallback() {
        Poller poller;
        const UniqueFd fd(::eventfd(0, EFD_NONBLOCK));
        std::promise<std::uint32_t> seen;
        QVERIFY(poller.add(fd.get(), EPOLLIN, [&](std::uint32_t events) {
            quiet(fd.get());
            seen.set_value(events);
        }));
        QCOMPARE(poller.add(fd.get(), EPOLLIN, {}).error().code, ErrorCode::AlreadyExists);
        ring(fd.get());
        auto future = seen.get_future();
        QVERIFY(future.wait_for(5s) == std::future_status::ready);
        QVERIFY((future.get() & EPOLLIN) != 0);
        poller.remove(fd.get());
        poller.remove(fd.get());
        QCOMPARE(poller.modify(fd.get(), EPOLLIN).error().code, ErrorCode::NotFound);
    }
    void remove_waitsForARunningCallback() {
        Poller poller;
        const UniqueFd fd(::eventfd(1, EFD_NONBLOCK));
        std::promise<void> entered;
        std::promise<void> go;
        std::atomic<bool> isDone = false;
        QVERIFY(poller.add(fd.get(), EPOLLIN, [&](std::uint32_t) {
            quiet(fd.get());
            entered.set_value();
            go.get_future().wait();
            isDone = true;
        }));
        entered.get_future().wait();
        auto removed = std::async(std::launch::async, [&] { poller.remove(fd.get()); });
        QVERIFY(removed.wait_for(50ms) == std::future_status::timeout); // it waits for the callback
        go.set_value();
        QVERIFY(removed.wait_for(5s) == std::future_status::ready);
        QVERIFY(isDone);
    }
    void remove_insideTheCallback_returnsAtOnce() {
        Poller poller;
        const UniqueFd fd(::eventfd(1, EFD_NONBLOCK));
        std::promise<void> done;
        std::atomic<int> calls = 0;
        QVERIFY(poller.add(fd.get(), EPOLLIN, [&](std::uint32_t) {
            ++calls;
            poller.remove(fd.get()); // still readable: a second call would follow otherwise
            poller.post([&] { done.set_value(); });
        }));
        QVERIFY(done.get_future().wait_for(5s) == std::future_status::ready);
        QCOMPARE(calls.load(), 1);
    }
    void descriptor_reusedInsideACallback_getsNoStaleEvent() {
        Poller poller;
        // Both are ready in one round; whichever runs first replaces the other by a quiet descriptor of the same
        // number.
        UniqueFd first(::eventfd(0, EFD_NONBLOCK));
        UniqueFd second(::eventfd(0, EFD_NONBLOCK));
        std::atomic<int> stale = 0;
        std::atomic<int> replaced = 0;
        std::promise<void> done;
        const auto replace = [&](UniqueFd& self, UniqueFd& other) {
            quiet(self.get());
            if (replaced++ == 0) {
                const int number = other.get();
                poller.remove(number);
                const UniqueFd fresh(::eventfd(0, EFD_NONBLOCK));
                ::dup2(fresh.get(), number);
                QVERIFY(poller.add(number, EPOLLIN, [&](std::uint32_t) { ++stale; }));
            }
            poller.startTimer(20ms, [&] { done.set_value(); });
        };
        std::promise<void> start;
        poller.post([&, future = std::make_shared<std::future<void>>(start.get_future())] { future->wait(); });
        QVERIFY(poller.add(first.get(), EPOLLIN, [&](std::uint32_t) { replace(first, second); }));
        QVERIFY(poller.add(second.get(), EPOLLIN, [&](std::uint32_t) { replace(second, first); }));
        ring(first.get());
        ring(second.get());
        start.set_value();
        QVERIFY(done.get_future().wait_for(5s) == std::future_status::ready);
        QCOMPARE(stale.load(), 0);
        QCOMPARE(replaced.load(), 1);
        poller.remove(first.get());
        poller.remove(second.get());
    }
    void timers_fireInOrderAndCanBeCancelled() {
        Poller poller;
        std::vector<int> order;
        std::promise<void> done;
        poller.startTimer(60ms, [&] {
            order.push_back(3);
            done.set_value();
        });
        const auto cancelled = poller.startTimer(30ms, [&] { order.push_back(99); });
        poller.startTimer(20ms, [&] { order.push_back(2); });
        poller.post([&] { order.push_back(0); });
        poller.post([&] { order.push_back(1); });
        poller.cancelTimer(cancelled);
        QVERIFY(done.get_future().wait_for(5s) == std::future_status::ready);
        QCOMPARE(order, (std::vector<int>{0, 1, 2, 3}));
        poller.cancelTimer(cancelled);
    }

    void pidfdWatch_tellsOnce() {
        Poller poller;
        PidfdWatch watch(poller);
        const auto child = spawn(sleeper());
        QVERIFY(child);
        std::promise<void> gone;
        QVERIFY(watch.watch(randomId<InstanceId>(), child->pid, [&] { gone.set_value(); }));
        auto future = gone.get_future();
        QVERIFY(future.wait_for(50ms) == std::future_status::timeout);
        ::kill(child->pid, SIGKILL);
        QVERIFY(future.wait_for(5s) == std::future_status::ready);
        QVERIFY(*reap(*child));
    }
    void pidfdWatch_ofAProcessThatIsGone_tellsSoon() {
        Poller poller;
        PidfdWatch watch(poller);
        const auto child = spawn(sleeper());
        QVERIFY(child);
        ::kill(child->pid, SIGKILL);
        ::waitpid(child->pid, nullptr, 0);
        std::promise<void> gone;
        const auto id = randomId<InstanceId>();
        QVERIFY(watch.watch(id, child->pid, [&] {
            watch.forget(id); // from inside: no deadlock
            gone.set_value();
        }));
        QVERIFY(gone.get_future().wait_for(5s) == std::future_status::ready);
    }
    void pidfdWatch_forgotten_saysNothing() {
        Poller poller;
        PidfdWatch watch(poller);
        const auto child = spawn(sleeper());
        QVERIFY(child);
        const auto id = randomId<InstanceId>();
        std::atomic<int> first = 0;
        std::promise<void> second;
        QVERIFY(watch.watch(id, child->pid, [&] { ++first; }));
        QVERIFY(watch.watch(id, child->pid, [&] { second.set_value(); })); // replaces
        ::kill(child->pid, SIGKILL);
        QVERIFY(second.get_future().wait_for(5s) == std::future_status::ready);
        QCOMPARE(first.load(), 0);
        QVERIFY(watch.watch(id, child->pid, [&] { ++first; })); // a zombie: has ended
        QTRY_COMPARE(first.load(), 1);
        watch.forget(id);
        QCOMPARE(watch.watch(id, 0, [] {}).error().code, ErrorCode::InvalidArgument);
        QVERIFY(*reap(*child));
    }
    void pidfdWatch_forget_waitsForGone_data() {
        QTest::addColumn<bool>("isZombie");
        QTest::newRow("process that ends") << false;
        QTest::newRow("process that is gone") << true;
    }
    void pidfdWatch_forget_waitsForGone() {
        QFETCH(bool, isZombie);
        Poller poller;
        PidfdWatch watch(poller);
        const auto child = spawn(sleeper());
        QVERIFY(child);
        ::kill(child->pid, SIGKILL);
        if (isZombie) {
            ::waitpid(child->pid, nullptr, 0);
        }
        const auto id = randomId<InstanceId>();
        std::promise<void> begun;
        std::promise<void> goOn;
        std::atomic<bool> isOver = false;
        QVERIFY(watch.watch(id, child->pid, [&] {
            begun.set_value();
            goOn.get_future().wait_for(5s);
            isOver = true;
        }));
        QVERIFY(begun.get_future().wait_for(5s) == std::future_status::ready);
        std::promise<bool> forgotten;
        std::thread forgetter([&] {
            watch.forget(id);
            forgotten.set_value(isOver);
        });
        auto future = forgotten.get_future();
        const bool returnedEarly = future.wait_for(50ms) == std::future_status::ready;
        goOn.set_value();
        forgetter.join();
        QVERIFY(!returnedEarly);
        QVERIFY(future.get());
        if (!isZombie) {
            QVERIFY(*reap(*child));
        }
    }
    void pidfdWatch_watchedAgainFromInside() {
        Poller poller;
        PidfdWatch watch(poller);
        const auto child = spawn(sleeper());
        QVERIFY(child);
        ::kill(child->pid, SIGKILL);
        const auto id = randomId<InstanceId>();
        std::promise<void> second;
        QVERIFY(watch.watch(id, child->pid, [&] {
            if (!watch.watch(id, child->pid, [&] { second.set_value(); })) {
                qWarning("cannot watch again");
            }
        }));
        QVERIFY(second.get_future().wait_for(5s) == std::future_status::ready);
        watch.forget(id);
        QVERIFY(*reap(*child));
    }

    void reaper_leavesNoZombie() {
        Poller poller;
        ChildReaper reaper(poller);
        auto child = spawn(sleeper());
        QVERIFY(child);
        const pid_t pid = child->pid;
        std::promise<std::optional<ExitStatus>> ended;
        QVERIFY(reaper.keep(std::move(*child), [&](std::optional<ExitStatus> status) { ended.set_value(status); }));
        ::kill(pid, SIGTERM);
        auto future = ended.get_future();
        QVERIFY(future.wait_for(5s) == std::future_status::ready);
        QCOMPARE(future.get()->signal, SIGTERM);
        QCOMPARE(::kill(pid, 0), -1); // not even a zombie
    }
};

QTEST_GUILESS_MAIN(TestPoller)
#include "tst_poller.moc"
