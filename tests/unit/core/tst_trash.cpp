// SPDX-License-Identifier: Apache-2.0
// Deleted domains: kept for a time, restored with all that they had, and gone after it.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

#include <chrono>
#include <memory>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kWeek = 7 * 24 * 3600;

struct Scene {
    SnapshotWorld world;
    DomainId work;
    SnapshotId node;
    SnapshotWorld::Content home;

    Scene() {
        world.outside.keepDeleted = std::chrono::seconds(kWeek);
        world.restart();
        work = world.create("work");
        world.start(work);
        world.write(work, "file", "old");
        node = world.take(work);
        world.write(work, "file", "new");
        home = world.home(work);
    }
    void removeDomain() { world.done(domains().remove(kAlice, work, {.force = true})); }
    DomainService& domains() { return world.daemon->domains; }
    TrashService& trash() { return world.daemon->trash; }
    [[nodiscard]] std::size_t living() const { return world.daemon->table.all().size(); }
    [[nodiscard]] std::size_t deleted() const { return world.daemon->table.deleted().size(); }
};

} // namespace

class TestTrash : public QObject {
    Q_OBJECT

private slots:
    void removedDomain_comesBackStopped_withItsLineage() {
        Scene scene;
        scene.removeDomain();
        QCOMPARE(scene.living(), 0U);
        QVERIFY(!scene.domains().findByName(kAlice, "work"));
        QVERIFY(scene.world.outside.hypervisor.list()->empty());
        const auto listed = scene.trash().list(kAlice, false).value();
        QCOMPARE(listed.size(), 1U);
        QCOMPARE(listed[0].record.name, "work");
        QCOMPARE(listed[0].goesAt, scene.world.outside.clock.now() + kWeek);
        QVERIFY(listed[0].sizeOnDisk > 0);
        QCOMPARE(scene.world.problems(), QString());

        QCOMPARE(scene.domains().restore(kAlice, "work", {}).value(), scene.work);
        QCOMPARE(scene.world.state(scene.work), DomainState::Stopped);
        QCOMPARE(scene.deleted(), 0U);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        QCOMPARE(scene.world.head(scene.work).node.value(), scene.node);
        scene.world.start(scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        scene.world.revert(scene.node);
        QCOMPARE(scene.world.problems(), QString());
    }
    void restored_afterRestart_byId() {
        Scene scene;
        scene.removeDomain();
        scene.world.restart();
        QCOMPARE(scene.living(), 0U);
        QCOMPARE(scene.deleted(), 1U);
        QCOMPARE(scene.domains().restore(kAlice, scene.work.text().substr(0, 8), {}).value(), scene.work);
        scene.world.restart();
        QCOMPARE(scene.living(), 1U);
        QVERIFY(scene.world.daemon->table.find(scene.work)->definitionProblem.empty());
        QVERIFY(scene.world.home(scene.work) == scene.home);
    }
    void newDomainOfTheName_hasAnotherHome_andKeepsTheOldOneFromComingBackUnderIt() {
        Scene scene;
        scene.removeDomain();
        const DomainId other = scene.world.create("work");
        QVERIFY(other != scene.work);
        QVERIFY(scene.world.home(other) != scene.home);
        const auto refused = scene.domains().restore(kAlice, "work", {});
        QCOMPARE(refused.error().code, ErrorCode::AlreadyExists);
        QVERIFY(refused.error().message.find("--as OTHER") != std::string::npos);
        QCOMPARE(scene.domains().restore(kAlice, "work", "before").value(), scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        scene.world.restart();
        QCOMPARE(scene.living(), 2U);
        QCOMPARE(scene.domains().findByName(kAlice, "before")->record.id, scene.work);
        QCOMPARE(scene.world.problems(), QString());
    }
    void handWrittenFileOfTheName_isNotOverwritten() {
        Scene scene;
        scene.removeDomain();
        DomainDefinition written;
        written.name = "work";
        written.owner = kAlice.uid;
        written.templateName = "minimal";
        written.label = "red";
        QVERIFY(scene.world.outside.definitions.save(written).has_value());
        QCOMPARE(scene.domains().restore(kAlice, "work", {}).error().code, ErrorCode::AlreadyExists);
        QCOMPARE(scene.deleted(), 1U);
        QCOMPARE(scene.domains().restore(kAlice, "work", "before").value(), scene.work);
    }
    void others_seeAndRestoreNothing() {
        Scene scene;
        scene.removeDomain();
        QVERIFY(scene.trash().list(kMallory, false)->empty());
        QCOMPARE(scene.trash().list(kMallory, true).error().code, ErrorCode::NotAuthorized);
        QCOMPARE(scene.trash().list(kRoot, true)->size(), 1U);
        for (const std::string& which : {std::string("work"), scene.work.text()}) {
            QCOMPARE(scene.domains().restore(kMallory, which, {}).error().code, ErrorCode::NotFound);
            QCOMPARE(scene.trash().purge(kMallory, which).error().code, ErrorCode::NotFound);
        }
    }
    void forGood_isForGood() {
        Scene scene;
        scene.world.done(scene.domains().remove(kAlice, scene.work, {.force = true, .forGood = true}));
        QCOMPARE(scene.deleted(), 0U);
        QVERIFY(scene.world.outside.store.homes.empty());
        QCOMPARE(scene.domains().restore(kAlice, "work", {}).error().code, ErrorCode::NotFound);
    }
    void purge_removesOneThatIsDeleted_andAsksWhichWhenSeveralAreMeant() {
        Scene scene;
        scene.removeDomain();
        const DomainId other = scene.world.create("work");
        scene.world.done(scene.domains().remove(kAlice, other, {}));
        QCOMPARE(scene.trash().purge(kAlice, "work").error().code, ErrorCode::WrongState);
        scene.world.done(scene.trash().purge(kAlice, other.text()));
        QVERIFY(!scene.world.outside.store.homes.contains(other));
        scene.world.done(scene.trash().purge(kAlice, "work"));
        QVERIFY(scene.world.outside.store.homes.empty());
        QVERIFY(scene.world.outside.domains.all()->empty());
        QCOMPARE(scene.world.problems(), QString());
    }
    /// Both tries ended in the middle, and nothing could be taken back.
    static void failTwice(Scene& scene) {
        scene.world.outside.homes.failRename = Error{ErrorCode::HostFailure, "its manifest is damaged"};
        for (int i = 0; i < 2; ++i) {
            QVERIFY(!scene.domains().restore(kAlice, "work", {}));
        }
        QVERIFY(scene.world.daemon->table.deleted().front().record.phase == DomainRecord::Phase::Restoring);
    }
    void restorationThatFailedTwice_canBeMadeUnderAnotherName() {
        Scene scene;
        scene.world.stop(scene.work);
        scene.removeDomain();
        failTwice(scene);
        scene.world.outside.homes.failRename.reset();
        QCOMPARE(scene.domains().restore(kAlice, "work", "other").value(), scene.work);
        QCOMPARE(scene.domains().findByName(kAlice, "other")->record.id, scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        // The name is free again, and nothing of it is left.
        QVERIFY(!scene.domains().findByName(kAlice, "work"));
        scene.world.create("work");
        scene.world.restart();
        QCOMPARE(scene.living(), 2U);
        QCOMPARE(scene.world.problems(), QString());
    }
    void restorationThatFailedTwice_canBeRemovedForGood() {
        Scene scene;
        scene.world.stop(scene.work);
        scene.removeDomain();
        failTwice(scene);
        scene.world.done(scene.trash().purge(kAlice, "work"));
        QCOMPARE(scene.deleted(), 0U);
        QVERIFY(scene.world.outside.store.homes.empty());
        QVERIFY(scene.world.outside.definitions.domains.empty());
        QVERIFY(scene.world.outside.setAside.aside.empty());
        scene.world.restart();
        QCOMPARE(scene.living() + scene.deleted(), 0U);
        QCOMPARE(scene.world.problems(), QString());
    }
    void restoring_waitsForNoErasure() {
        Scene scene;
        scene.removeDomain();
        const DomainId other = scene.world.create("other");
        scene.world.done(scene.domains().remove(kAlice, other, {}));
        // While the gigabytes of one go, another one is restored.
        std::optional<ErrorCode> twice;
        std::optional<DomainId> restored;
        scene.world.outside.store.whileRemovingHome = [&](const DomainId& id) {
            if (id == other) {
                restored = scene.domains().restore(kAlice, "work", {}).value();
                twice = scene.world.end(scene.trash().purge(kAlice, other.text())).error->code;
            }
        };
        scene.world.done(scene.trash().purge(kAlice, "other"));
        scene.world.outside.store.whileRemovingHome = {};
        QVERIFY(restored == scene.work);
        QVERIFY(twice == ErrorCode::Busy);
        QVERIFY(!scene.world.outside.store.homes.contains(other));
        QCOMPARE(scene.world.problems(), QString());
    }
    void revertOfADeletedDomain_saysHowToGetItBack() {
        Scene scene;
        scene.removeDomain();
        const auto refused = scene.world.daemon->snapshots.revert(kAlice, scene.node, {});
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        for (const std::string& said : {"bulkhead domain restore " + scene.work.text().substr(0, 8),
                                        "bulkhead snapshot fork " + shortId(scene.node)}) {
            QVERIFY2(refused.error().message.find(said) != std::string::npos, refused.error().message.c_str());
        }
    }
    void expired_goesAtTheNextLook() {
        Scene scene;
        scene.removeDomain();
        scene.world.outside.clock.advance(kWeek - 1);
        scene.trash().purgeExpired();
        QCOMPARE(scene.deleted(), 1U);
        scene.world.outside.clock.advance(1);
        scene.world.restart();
        QCOMPARE(scene.deleted(), 1U); // the reconciler takes nothing away
        scene.trash().purgeExpired();
        QCOMPARE(scene.deleted(), 0U);
        QVERIFY(scene.world.outside.store.homes.empty());
        QVERIFY(scene.world.outside.setAside.aside.empty());
    }
    void lostDatabase_deletedStaysDeleted_andRestorable() {
        Scene scene;
        scene.removeDomain();
        const DomainId other = scene.world.create("work");
        scene.world.outside.database.domains.clear();
        scene.world.outside.database.heads.clear();
        scene.world.outside.database.snapshots.clear();
        scene.world.restart();
        QCOMPARE(scene.living(), 1U);
        QCOMPARE(scene.domains().findByName(kAlice, "work")->record.id, other);
        QCOMPARE(scene.deleted(), 1U);
        QCOMPARE(scene.domains().restore(kAlice, "work", "before").value(), scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        QCOMPARE(scene.world.head(scene.work).node.value(), scene.node);
        QCOMPARE(scene.world.problems(), QString());
    }
    void oldDatabase_believesWhereTheDefinitionIs() {
        Scene scene;
        scene.world.stop(scene.work);
        const auto before = scene.world.outside.database.domains;
        scene.removeDomain();
        const auto between = scene.world.outside.database.domains;
        scene.world.outside.database.domains = before;
        scene.world.restart();
        QCOMPARE(scene.living(), 0U);
        QCOMPARE(scene.deleted(), 1U);
        QCOMPARE(scene.domains().restore(kAlice, "work", "after").value(), scene.work);
        scene.world.outside.database.domains = between;
        scene.world.restart();
        QCOMPARE(scene.deleted(), 0U);
        QCOMPARE(scene.domains().findByName(kAlice, "after")->record.id, scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
    }
    void nodesOfDeletedDomains_stay() {
        Scene scene;
        scene.removeDomain();
        scene.world.remove(scene.node);
        QCOMPARE(scene.domains().restore(kAlice, "work", {}).value(), scene.work);
        QVERIFY(scene.world.home(scene.work) == scene.home);
        QVERIFY(!scene.world.head(scene.work).node);
        scene.world.start(scene.work);
        QCOMPARE(scene.world.problems(), QString());
    }
    void managed_isRefusedAsBefore() {
        Scene scene;
        DomainDefinition managed = scene.world.daemon->table.find(scene.work)->definition;
        managed.isManaged = true;
        scene.world.daemon->table.setDefinition(scene.work, managed);
        QCOMPARE(scene.domains().remove(kAlice, scene.work, {.force = true}).error().code, ErrorCode::NotAuthorized);
    }

    void everyCut_leavesTheDomainOrOneToRestore_data() {
        QTest::addColumn<QString>("verb");
        QTest::addColumn<int>("cut");
        for (const char* verb : {"delete", "restore", "restore as", "purge"}) {
            for (const auto cut : {CallGate::Cut::Before, CallGate::Cut::After, CallGate::Cut::Once}) {
                QTest::addRow("%s, %d", verb, int(cut)) << verb << int(cut);
            }
        }
    }
    void everyCut_leavesTheDomainOrOneToRestore() {
        QFETCH(QString, verb);
        QFETCH(int, cut);
        const auto kind = static_cast<CallGate::Cut>(cut);
        const auto act = [&](Scene& scene) {
            if (verb == "delete") {
                scene.world.end(scene.domains().remove(kAlice, scene.work, {.force = true}));
            } else if (verb == "purge") {
                scene.world.end(scene.trash().purge(kAlice, "work"));
            } else {
                [[maybe_unused]] const auto tried = scene.domains().restore(
                    kAlice, "work", verb == "restore" ? std::nullopt : std::optional<std::string>("other"));
            }
        };
        unsigned points = 0;
        for (unsigned at = 1; points == 0 || at <= points; ++at) {
            Scene scene;
            scene.world.stop(scene.work);
            if (verb != "delete") {
                scene.removeDomain();
            }
            CallGate& gate = scene.world.outside.gate;
            if (points == 0) {
                gate.arm(CallGate::Cut::Never, 0, {});
                act(scene);
                points = static_cast<unsigned>(gate.calls().size());
                QVERIFY(points > 2);
                at = 0;
                continue;
            }
            gate.arm(kind, at, {kind == CallGate::Cut::Once ? ErrorCode::HostFailure : ErrorCode::Unavailable, "cut"});
            act(scene);
            const QByteArray where =
                QByteArray::fromStdString(std::to_string(at) + " of " + std::to_string(points) + ", " + gate.cutAt());
            if (kind == CallGate::Cut::Once) {
                gate.heal();
                act(scene); // another try finishes it
            } else {
                scene.world.restart();
            }
            QVERIFY2(scene.world.report.problems.empty(), where.constData());
            QVERIFY2(scene.world.problems().isEmpty(), (where + ": " + scene.world.problems().toUtf8()).constData());
            const bool isGone = scene.living() + scene.deleted() == 0;
            QVERIFY2(verb == "purge" || !isGone, where.constData());
            if (isGone) {
                QVERIFY2(scene.world.outside.store.homes.empty(), where.constData());
                continue;
            }
            QVERIFY2(scene.living() + scene.deleted() == 1, where.constData());
            if (scene.deleted() == 1) {
                const auto back = scene.domains().restore(kAlice, "work", {});
                QVERIFY2(back && *back == scene.work, where.constData());
            }
            const auto entry = scene.world.daemon->table.find(scene.work);
            QVERIFY2(entry && entry->definitionProblem.empty() && entry->head.node == scene.node, where.constData());
            QVERIFY2(scene.world.home(scene.work) == scene.home, where.constData());
            scene.world.start(scene.work);
            QVERIFY2(scene.world.problems().isEmpty(), where.constData());
        }
    }
};

QTEST_GUILESS_MAIN(TestTrash)
#include "tst_trash.moc"
