// SPDX-License-Identifier: Apache-2.0
#include "viewer/window_model.hpp"

#include <QTest>

using namespace bulkhead::viewer;
using Kind = HostWindowChange::Kind;
namespace stream = bulkhead::session_stream;

namespace {

GuestWindow windowOn(std::uint32_t id, std::uint32_t head, bool active = false) {
    GuestWindow window;
    window.id = id;
    window.head = head;
    window.size = QSize(300, 200);
    window.active = active;
    window.title = QStringLiteral("w%1").arg(id);
    return window;
}

std::vector<std::uint32_t> windowsOf(const WindowModel& model, HostWindowId id) {
    const HostWindow* host = model.host(id);
    return host == nullptr ? std::vector<std::uint32_t>() : host->windows;
}

using Windows = std::vector<std::uint32_t>;

} // namespace

class TestWindowModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void eachHeadIsAHostWindow() {
        WindowModel model;
        QVERIFY((model.changed(windowOn(5, 0)) == WindowModel::Changes{{Kind::Opened, 1}}));
        QVERIFY((model.changed(windowOn(6, 3)) == WindowModel::Changes{{Kind::Opened, 2}}));
        QCOMPARE(model.hosts().size(), std::size_t{2});
        QCOMPARE(model.hostOf(6)->head, 3U);
        QVERIFY((model.gone(5) == WindowModel::Changes{{Kind::Closed, 1}}));
        QVERIFY(model.hostOf(5) == nullptr);
        QVERIFY(model.gone(5).empty());
    }

    void whatDoesNotChangeIsNotTold() {
        WindowModel model;
        model.changed(windowOn(5, 0));
        QVERIFY(model.changed(windowOn(5, 0)).empty());
        GuestWindow renamed = windowOn(5, 0);
        renamed.title = "new";
        QVERIFY((model.changed(renamed) == WindowModel::Changes{{Kind::Updated, 1}}));
        QCOMPARE(model.window(5)->title, QString("new"));
    }

    void windowsOfOneHeadShareAHostWindow() {
        WindowModel model;
        model.changed(windowOn(1, 7));
        model.changed(windowOn(2, 7));
        model.changed(windowOn(3, 7, true));
        QCOMPARE(model.hosts().size(), std::size_t{1});
        QCOMPARE(windowsOf(model, 1), (Windows{1, 2, 3}));
        QCOMPARE(model.host(1)->current, 3U); // the guest's own choice
        model.select(1, 1);
        QCOMPARE(model.host(1)->current, 1U);
        QVERIFY(model.select(1, 99).empty());
        QVERIFY(model.select(99, 1).empty());
        model.gone(1);
        QCOMPARE(model.host(1)->current, 3U); // never one that is gone
    }

    void aWindowThatMovesKeepsItsHostWindow() {
        WindowModel model;
        model.changed(windowOn(1, 0));
        QVERIFY((model.changed(windowOn(1, 4)) == WindowModel::Changes{{Kind::Updated, 1}}));
        QCOMPARE(model.host(1)->head, 4U);
    }

    void aWindowLeavesASharedHead() {
        WindowModel model;
        model.changed(windowOn(1, 7));
        model.changed(windowOn(2, 7));
        const auto changes = model.changed(windowOn(2, 3));
        QVERIFY((changes == WindowModel::Changes{{Kind::Updated, 1}, {Kind::Opened, 2}}));
        QCOMPARE(windowsOf(model, 1), Windows{1});
        QCOMPARE(windowsOf(model, 2), Windows{2});
        model.changed(windowOn(2, 7)); // and comes back
        QCOMPARE(windowsOf(model, 1), (Windows{1, 2}));
        QVERIFY(model.host(2) == nullptr);
    }

    void aRefreshDropsWhatIsNotToldAgain() {
        WindowModel model;
        model.changed(windowOn(1, 0));
        model.changed(windowOn(2, 1));
        model.changed(windowOn(3, 2));
        model.beginRefresh();
        model.changed(windowOn(2, 1));
        model.gone(3);
        QVERIFY((model.endRefresh() == WindowModel::Changes{{Kind::Closed, 1}}));
        QVERIFY(model.host(2) != nullptr);
        QVERIFY(model.endRefresh().empty());
    }

    void theEndOfASessionClosesAll() {
        WindowModel model;
        model.changed(windowOn(1, 0));
        model.changed(windowOn(2, 1));
        QCOMPARE(model.clear().size(), std::size_t{2});
        QVERIFY(model.empty());
        // Host windows are never taken for earlier ones.
        QVERIFY((model.changed(windowOn(1, 0)) == WindowModel::Changes{{Kind::Opened, 3}}));
    }

    void thereIsAMost() {
        WindowModel model;
        for (std::uint32_t id = 1; id <= 10 * stream::kMostWindows; ++id) {
            model.changed(windowOn(id, id % stream::kMostHeads));
        }
        QCOMPARE(model.hosts().size(), std::size_t{stream::kMostHeads});
        std::size_t all = 0;
        for (const auto& [id, host] : model.hosts()) {
            all += host.windows.size();
        }
        QCOMPARE(all, std::size_t{stream::kMostWindows});
    }
};

QTEST_APPLESS_MAIN(TestWindowModel)
#include "tst_window_model.moc"
