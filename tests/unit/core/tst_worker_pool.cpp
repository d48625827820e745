// SPDX-License-Identifier: Apache-2.0
#include <QTest>

#include "core/services/worker_pool.hpp"

#include <atomic>
#include <memory>

using bulkhead::core::WorkerPool;

class TestWorkerPool : public QObject {
    Q_OBJECT

private slots:
    /// An answer on the bus waits, in its end, for the bus's thread, which may just be posting the next call: a pool
    /// that ended tasks under its own lock stood still for ever then, and the daemon with it.
    void whatATaskHolds_mayPostWhileItEnds() {
        std::atomic<int> ran{0};
        WorkerPool pool(1);
        struct PostsAtItsEnd {
            WorkerPool& pool;
            std::atomic<int>& ran;
            ~PostsAtItsEnd() {
                pool.post([&ran = ran] { ++ran; });
            }
        };
        for (int i = 1; i <= 20; ++i) {
            pool.post([held = std::shared_ptr<PostsAtItsEnd>(new PostsAtItsEnd{pool, ran})] {});
            QTRY_VERIFY(ran >= i);
        }
    }

    void delayed_runInTheOrderOfTheirTimes() {
        std::atomic<int> last{0};
        WorkerPool pool(1);
        pool.postAfter(std::chrono::milliseconds(40), [&] { last = last * 10 + 2; });
        pool.postAfter(std::chrono::milliseconds(1), [&] { last = last * 10 + 1; });
        QTRY_COMPARE(last.load(), 12);
    }
};

QTEST_GUILESS_MAIN(TestWorkerPool)
#include "tst_worker_pool.moc"
