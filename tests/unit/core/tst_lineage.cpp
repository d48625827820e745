// SPDX-License-Identifier: Apache-2.0
// The rules of the snapshot tree, without any file.
#include "core/model/domain.hpp"
#include "core/model/lineage.hpp"

#include <QTest>

#include <functional>
#include <initializer_list>

using namespace bulkhead;
using namespace bulkhead::core;

namespace {

const DomainId kWork = randomId<DomainId>();
const DomainId kOther = randomId<DomainId>();
const std::filesystem::path kFolder = "/state/snapshots";

SnapshotRecord node(const std::optional<SnapshotId>& parent = {}, const std::string& reason = "manual",
                    std::int64_t at = 0, Bytes size = 1) {
    SnapshotRecord record;
    record.id = randomId<SnapshotId>();
    record.parent = parent;
    record.domain = kWork;
    record.phase = SnapshotRecord::Phase::Present;
    record.reason = reason;
    record.createdAt = at;
    record.sizeOnDisk = size;
    record.home.layers = {{kFolder / record.id.text() / "home.qcow2", DiskFormat::Qcow2}};
    return record;
}

/// Its layers lie above all of `below`.
SnapshotRecord above(const SnapshotRecord& below, const std::string& reason = "manual", std::int64_t at = 0) {
    auto record = node(below.id, reason, at);
    record.home.layers.insert(record.home.layers.end(), below.home.layers.begin(), below.home.layers.end());
    return record;
}

} // namespace

class TestLineage : public QObject {
    Q_OBJECT

private slots:
    void aNodeWithChildrenGoesOnlyWithThem() {
        const auto root = node();
        const auto child = above(root);
        const auto grandchild = above(child);
        const auto sibling = above(root);
        const Lineage lineage{root, child, grandchild, sibling};
        const auto refused = nodesToRemove(lineage, child.id, false, {});
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        QVERIFY(refused.error().message.find("--cascade") != std::string::npos);
        QVERIFY(nodesToRemove(lineage, child.id, true, {}).value() == (std::vector{child.id, grandchild.id}));
        QVERIFY(nodesToRemove(lineage, sibling.id, false, {}).value() == std::vector{sibling.id});
        QCOMPARE(nodesToRemove(lineage, randomId<SnapshotId>(), false, {}).error().code, ErrorCode::NotFound);
    }

    void pinsAndSuspendedDomainsHoldTheirNodes() {
        auto root = node();
        auto child = above(root);
        child.isPinned = true;
        const Lineage lineage{root, child};
        QVERIFY(nodesToRemove(lineage, root.id, true, {}).error().message.find("pinned") != std::string::npos);
        QVERIFY(nodesToRemove({root}, root.id, false, {root.id}).error().message.find("suspended") !=
                std::string::npos);
    }

    void disposablesHoldWhatTheyBeganIn() {
        const auto root = node();
        const auto child = above(root);
        const auto refused = nodesToRemove({root, child}, root.id, true, {}, {child.id});
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        QVERIFY(refused.error().message.find("disposable") != std::string::npos);
        QVERIFY(nodesToRemove({root, child}, root.id, true, {}, {randomId<SnapshotId>()}));
    }

    void whatGoesWithADisposable() {
        const auto source = node();
        const auto disposable = randomId<DomainId>();
        const auto suspendedIn = [&](const SnapshotRecord& parent) {
            auto record = above(parent);
            record.domain = disposable;
            record.reason = kReasonSuspend;
            return record;
        };
        const auto first = suspendedIn(source);
        const auto second = suspendedIn(first);
        const auto third = suspendedIn(second);
        const Lineage lineage{third, first, source, second}; // a database has no order
        QVERIFY(nodesOfGone(lineage, disposable, {}) == (std::vector{first.id, second.id, third.id}));
        QVERIFY(nodesOfGone(lineage, randomId<DomainId>(), {}).empty());
        // Where others stand, and what that came from.
        QVERIFY(nodesOfGone(lineage, disposable, {second.id}) == std::vector{third.id});
        const auto others = above(second);
        QVERIFY(nodesOfGone({first, second, third, others}, disposable, {}) == std::vector{third.id});
        for (const auto& want : std::initializer_list<std::function<void(SnapshotRecord&)>>{
                 [](SnapshotRecord& record) { record.isPinned = true; },
                 [](SnapshotRecord& record) { record.label = "mine"; },
                 [](SnapshotRecord& record) { record.reason = kReasonManual; }}) {
            auto wanted = third;
            want(wanted);
            QVERIFY(nodesOfGone({first, second, wanted}, disposable, {}).empty());
        }
    }

    void removedNodesStayAsLongAsSomethingLiesAboveThem() {
        auto root = node();
        root.phase = SnapshotRecord::Phase::Removed;
        const auto child = above(root);
        QVERIFY(nodesToErase({root, child}, {}, kFolder).empty());
        auto gone = child;
        gone.phase = SnapshotRecord::Phase::Removed;
        QVERIFY(nodesToErase({root, gone}, {}, kFolder) == (std::vector{root.id, gone.id}));
        // A domain's home lies above it.
        QVERIFY(nodesToErase({root, gone}, {root.home.layers.front().path}, kFolder) == std::vector{gone.id});
        // A name that only begins alike is another folder.
        QVERIFY(nodesToErase({root}, {kFolder / (root.id.text() + "x") / "home.qcow2"}, kFolder) ==
                std::vector{root.id});
    }

    void memoryHoldsTheImageItIsADeltaOf() {
        auto record = node();
        record.memory =
            SnapshotMemory{.machine = {}, .delta = "/d", .devices = "/v", .parent = MemoryImageRef{"/p", "x"}};
        const auto files = filesNeeded({record});
        for (const char* const file : {"/d", "/v", "/p"}) {
            QVERIFY(std::find(files.begin(), files.end(), std::filesystem::path(file)) != files.end());
        }
        record.phase = SnapshotRecord::Phase::Removed;
        QVERIFY(filesNeeded({record}).empty());
    }

    void theLastGoodOneIsTheNearestThatCanBeTrusted() {
        const auto root = node();
        auto child = above(root);
        child.suspect = "damaged";
        const auto grandchild = above(child);
        const Lineage lineage{root, child, grandchild};
        QVERIFY(lastGood(lineage, grandchild.id)->id == root.id);
        QVERIFY(lastGood(lineage, root.id) == nullptr);
        // Damaged manifests may make a circle.
        auto one = node();
        auto other = above(one);
        one.parent = other.id;
        one.suspect = other.suspect = "damaged";
        QVERIFY(lastGood({one, other}, one.id) == nullptr);
        QCOMPARE(withDescendants({one, other}, one.id).size(), std::size_t{2});
    }

    void headsMoveUp() {
        const auto root = node();
        const auto child = above(root);
        const auto grandchild = above(child);
        const Lineage lineage{root, child, grandchild};
        QVERIFY(headAfter(lineage, grandchild.id, {child.id, grandchild.id}) == root.id);
        QVERIFY(headAfter(lineage, root.id, {root.id}) == std::nullopt);
        QVERIFY(headAfter(lineage, root.id, {child.id}) == root.id);
        QVERIFY(headAfter(lineage, std::nullopt, {child.id}) == std::nullopt);
    }

    void retentionTakesTheOldestAutomaticOnes() {
        const auto first = node({}, "before-revert", 1);
        auto pinned = node({}, "before-revert", 2);
        pinned.isPinned = true;
        const auto asked = node({}, "manual", 3);
        const auto parent = node({}, "suspend", 4);
        const auto below = above(parent, "my own words", 5);
        const auto head = node({}, "fork", 6);
        const auto last = node({}, "before-revert", 7);
        auto others = node({}, "before-revert", 0);
        others.domain = kOther;
        const Lineage lineage{last, first, pinned, asked, parent, below, head, others};
        QVERIFY(overRetention(lineage, kWork, {.mostAutomatic = 2}, {head.id}).empty());
        // What must not go costs no other its place.
        QVERIFY(overRetention(lineage, kWork, {.mostAutomatic = 1}, {head.id}) == std::vector{first.id});
        // Nor is it made up for by what people asked for.
        // One of a suspension may go, too: what came from it stays.
        QVERIFY(overRetention(lineage, kWork, {.mostAutomatic = 0}, {head.id}) ==
                (std::vector{first.id, parent.id, last.id}));
    }

    void retentionCountsEachReasonByItself() {
        auto stop = node({}, "on-stop", 1);
        const auto upgrade = node({}, "before-upgrade", 2);
        auto second = above(stop, "on-stop", 3);
        auto third = above(second, "on-stop", 4);
        const auto head = above(third, "on-stop", 5);
        const Lineage lineage{stop, upgrade, second, third, head};
        // Stops do not drive out what an upgrade has left, though they are many and come one after the other.
        QVERIFY(overRetention(lineage, kWork, {.mostAutomatic = 2}, {head.id}) == std::vector{stop.id});
        QVERIFY(overRetention(lineage, kWork, {.mostAutomatic = 1}, {head.id}) == (std::vector{stop.id, second.id}));
        // A name makes it somebody's.
        stop.label = "good";
        QVERIFY(overRetention({stop, upgrade, second, third, head}, kWork, {.mostAutomatic = 2}, {head.id}).empty());
    }

    void whatGoneDisposablesLeft_isFound() {
        auto left = node({}, "suspend", 1);
        left.domainName = disposableName(left.domain);
        auto named = node({}, "manual", 2);
        named.domain = kOther;
        named.domainName = disposableName(kOther);
        auto app = node({}, "suspend", 3);
        app.domain = kOther;
        app.domainName = "work";
        QVERIFY(goneDisposables({left, named, app}, {}) == std::vector{left.domain});
        QVERIFY(goneDisposables({left, named, app}, {left.domain}).empty());
    }

    void retentionCountsBytes() {
        const auto first = node({}, "before-revert", 1, 10);
        const auto second = node({}, "before-revert", 2, 10);
        const auto asked = node({}, "manual", 0, 1000);
        const Lineage lineage{first, second, asked};
        QVERIFY(overRetention(lineage, kWork, {.mostAutomaticBytes = 20}, {}).empty());
        QVERIFY(overRetention(lineage, kWork, {.mostAutomaticBytes = 19}, {}) == std::vector{first.id});
    }

    void textsAreForPeople() {
        QVERIFY(checkSnapshotText("label", ""));
        QVERIFY(checkSnapshotText("label", "vor dem Größten – \\o/"));
        QVERIFY(!checkSnapshotText("label", "two\nlines"));
        QVERIFY(!checkSnapshotText("label", "\x1b[31m"));
        QVERIFY(!checkSnapshotText("label", "\xff"));
        QVERIFY(!checkSnapshotText("label", std::string(201, 'x')));
    }
};

QTEST_GUILESS_MAIN(TestLineage)
#include "tst_lineage.moc"
