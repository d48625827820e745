// SPDX-License-Identifier: Apache-2.0
// Every verb of snapshots, cut off at every single call that the core makes of a port: by a kill just before it and
// just after it, after which another daemon starts over the same world, and by an error of that call alone.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

#include <functional>
#include <set>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Cut = CallGate::Cut;
using Content = SnapshotWorld::Content;
using State = DomainState;

/// A domain that runs above two nodes, and a fork that is suspended in the first of them.
struct Scene {
    SnapshotWorld world;
    DomainId work;
    DomainId side;
    SnapshotId first;
    SnapshotId second;
    std::map<SnapshotId, SnapshotWorld::Held> nodes;
    Content before; ///< of the domain's home

    /// `patience`: a daemon that lives on waits for the hypervisor.
    explicit Scene(bool livesOn)
        : world(std::chrono::milliseconds(livesOn ? 200 : -1)) {
        work = world.create("work");
        world.start(work);
        world.write(work, "file", "one");
        first = world.take(work);
        side = world.fork(first, "side");
        world.write(work, "file", "two");
        second = world.take(work);
        world.write(work, "more", "now");
    }
    /// What is there before the verb.
    void note() {
        nodes = world.allHeld();
        before = world.home(work);
    }
};

struct Verb {
    std::function<void(Scene&)> prepare;
    std::function<Result<JobId>(Scene&)> run;
    /// What the domain may be after a kill, and after an error.
    std::set<State> states{State::Running};
    bool isRevert = false;  ///< to the first node
    bool isDiscard = false; ///< to the second
    std::function<std::vector<SnapshotId>(Scene&)> removes;
    bool isRemoval = false;
};

const SnapshotService::Options kDisk{.isDiskOnly = true, .reason = {}, .label = {}};

const std::map<std::string, Verb>& verbs() {
    static const auto nothing = [](Scene&) {};
    static const auto stopped = [](Scene& scene) { scene.world.stop(scene.work); };
    static const std::map<std::string, Verb> kVerbs{
        {"create full",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.create(kAlice, s.work, {}); },
          .removes = {}}},
        {"create disk",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.create(kAlice, s.work, kDisk); },
          .removes = {}}},
        {"create stopped",
         {.prepare = stopped,
          .run = [](Scene& s) { return s.world.daemon->snapshots.create(kAlice, s.work, {}); },
          .states = {State::Stopped},
          .removes = {}}},
        // One that was cut between the end of the old emulator and the start of the new one is stopped.
        {"revert running",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.revert(kAlice, s.first, {}); },
          .states = {State::Running, State::Suspended, State::Stopped, State::Failed},
          .isRevert = true,
          .removes = {}}},
        {"revert running, keeping nothing",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.revert(kAlice, s.first, {.keepsPresent = false}); },
          .states = {State::Running, State::Suspended, State::Stopped, State::Failed},
          .isRevert = true,
          .removes = {}}},
        {"revert stopped",
         {.prepare = stopped,
          .run = [](Scene& s) { return s.world.daemon->snapshots.revert(kAlice, s.first, {}); },
          .states = {State::Suspended, State::Stopped},
          .isRevert = true,
          .removes = {}}},
        {"discard",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.discard(kAlice, s.work); },
          .states = {State::Running, State::Stopped},
          .isDiscard = true,
          .removes = {}}},
        {"fork",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.fork(kAlice, s.second, "other", {}); },
          .removes = {}}},
        {"fork now",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.forkNow(kAlice, s.work, "other", {}); },
          .removes = {}}},
        {"suspend",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.suspend(kAlice, s.work); },
          .states = {State::Running, State::Suspended},
          .removes = {}}},
        {"resume",
         {.prepare = [](Scene& s) { s.world.suspend(s.work); },
          .run = [](Scene& s) { return s.world.daemon->lifecycle.start(kAlice, s.work); },
          .states = {State::Running, State::Suspended, State::Failed},
          .removes = {}}},
        {"stop of a suspended one",
         {.prepare = [](Scene& s) { s.world.suspend(s.work); },
          .run = [](Scene& s) { return s.world.daemon->lifecycle.stop(kAlice, s.work, {}); },
          .states = {State::Stopped, State::Suspended},
          .removes = {}}},
        {"remove a node below a domain",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->snapshots.remove(kAlice, s.second, false); },
          .removes = [](Scene& s) { return std::vector{s.second}; }}},
        {"remove nodes that nothing lies above",
         {.prepare =
              [](Scene& s) {
                  s.world.take(s.work);
                  s.world.revert(s.first, {.keepsPresent = false});
                  s.world.write(s.work, "more", "other");
              },
          .run = [](Scene& s) { return s.world.daemon->snapshots.remove(kAlice, s.second, true); },
          .removes = [](Scene& s) { return withDescendants(s.world.daemon->lineage.all(), s.second); }}},
        {"remove the domain",
         {.prepare = nothing,
          .run = [](Scene& s) { return s.world.daemon->domains.remove(kAlice, s.work, {.force = true}); },
          .states = {State::Running, State::Stopped},
          .removes = {},
          .isRemoval = true}},
    };
    return kVerbs;
}

const char* nameOf(Cut cut) {
    switch (cut) {
    case Cut::Before:
        return "killed before";
    case Cut::After:
        return "killed after";
    case Cut::Once:
        return "error of";
    case Cut::Disk:
        return "a full disk from";
    case Cut::Never:
        break;
    }
    return "not cut";
}

/// One run of one verb with one cut.
class Trial {
public:
    /// `again`: the next daemon is killed as well, before this call of its reconciler; 0: it is not.
    Trial(const Verb& verb, Cut cut, unsigned at, unsigned again = 0)
        : m_verb(verb)
        , m_cut(cut)
        , m_at(at)
        , m_again(again)
        , m_scene(cut == Cut::Once) {}

    /// What is wrong after it; empty: nothing.
    QString run() {
        try {
            m_verb.prepare(m_scene);
            m_scene.note();
            m_taken = m_scene.before;
            m_going = m_verb.removes ? m_verb.removes(m_scene) : std::vector<SnapshotId>{};
            doVerb();
            check();
            if (m_wrong.isEmpty()) {
                goOn();
            }
            if (m_wrong.isEmpty()) {
                removeAll();
            }
        } catch (const std::exception& error) {
            wrong(error.what());
        }
        return m_wrong.join("; ");
    }
    std::vector<std::string> calls() { return m_calls; }
    std::string cutAt() { return m_cutAt; }
    std::string cutAgainAt() { return world().cutAgainAt; }
    /// The reconciler had done all before it was to be killed.
    [[nodiscard]] bool wasAgainTooLate() const { return m_wasAgainTooLate; }
    [[nodiscard]] bool hasSucceeded() const { return m_hasSucceeded; }

private:
    SnapshotWorld& world() { return m_scene.world; }
    void wrong(const std::string& what) { m_wrong.append(QString::fromStdString(m_stage + what)); }

    void doVerb() {
        const Error full{ErrorCode::NoSpace, "the disk is full"};
        const Error killed{ErrorCode::Unavailable, "the daemon was killed"};
        const Error ordinary{ErrorCode::HostFailure, "a call failed"};
        CallGate& gate = world().outside.gate;
        gate.arm(m_cut, m_at, m_cut == Cut::Once ? ordinary : m_cut == Cut::Disk ? full : killed);
        const JobInfo job = world().end(m_verb.run(m_scene));
        m_hasSucceeded = job.state == JobState::Succeeded;
        if (m_hasSucceeded) {
            if (const auto* const taken = std::get_if<SnapshotResult>(&job.result)) {
                m_reported.push_back(taken->snapshot);
            } else if (const auto* const reverted = std::get_if<RevertResult>(&job.result)) {
                m_reported.insert(m_reported.end(), reverted->kept ? 1 : 0, reverted->kept.value_or(SnapshotId()));
            }
        }
        m_calls = gate.calls();
        m_cutAt = gate.cutAt();
        if (m_cut == Cut::Once) {
            settle();
            gate.heal();
            // One that is half removed can only be removed: another try goes on with it.
            const auto entry = world().daemon->table.find(m_scene.work);
            if (entry && entry->record.phase == DomainRecord::Phase::Removing) {
                world().removeDomain(m_scene.work);
            }
        } else if (m_cut != Cut::Never) {
            if (m_cut == Cut::Disk) {
                checkGuests();
            }
            if (m_again > 0) {
                m_wasAgainTooLate = !world().restartAndKill(m_again);
            }
            world().restart();
            for (const Error& problem : world().report.problems) {
                wrong("the reconciler says: " + problem.message);
            }
        }
    }
    /// What could not be done at once is tried again a moment later.
    void settle() {
        const auto isSettled = [&] {
            for (const DomainEntry& seen : world().daemon->table.all()) {
                // Whoever is still at it holds it.
                const auto operation = world().daemon->table.beginOperation(seen.record.id, "a look");
                const auto entry = operation ? world().daemon->table.find(seen.record.id) : std::nullopt;
                if (!entry || (entry->state == State::Running) != entry->instance.has_value() ||
                    (entry->state != State::Running && hasEmulator(entry->state))) {
                    return false;
                }
            }
            return true;
        };
        [[maybe_unused]] const bool isQuiet = QTest::qWaitFor(isSettled, 5000);
    }
    /// While the disk is full guests run all the same, and none changes what a node has frozen.
    void checkGuests() {
        for (const auto& emulator : got(world().outside.hypervisor.list())) {
            if (emulator.isPaused) {
                wrong("a guest stands still while the disk is full");
            }
        }
        const auto entry = world().daemon->table.find(m_scene.work);
        if (entry && entry->state == State::Running) {
            world().write(m_scene.work, "while", "full");
            m_scene.before["while"] = "full";
        }
    }

    void check() {
        if (const QString problems = world().problems(); !problems.isEmpty()) {
            wrong(problems.toStdString());
        }
        checkNodes();
        const auto entry = world().daemon->table.find(m_scene.work);
        if (!entry) {
            if (!m_verb.isRemoval) {
                wrong("the domain is gone");
            }
            return;
        }
        if (m_hasSucceeded && m_verb.isRemoval) {
            wrong("the domain is still there");
        }
        // An end of an emulator that a full disk kept from being recorded looks like its death.
        const bool mayHaveFailed = m_cut == Cut::Disk && entry->state == State::Failed;
        if (!m_verb.states.contains(entry->state) && !mayHaveFailed) {
            wrong("the domain is " + std::string(core::nameOf(entry->state)) + " " + entry->reason);
        }
        const Content now = world().home(m_scene.work);
        const bool isAsBefore = now == m_scene.before;
        const bool isMoved = (m_verb.isRevert && now == m_scene.nodes[m_scene.first].home) ||
                             (m_verb.isDiscard && now == m_scene.nodes[m_scene.second].home);
        const bool mustBeMoved = m_hasSucceeded && (m_verb.isRevert || m_verb.isDiscard);
        if (mustBeMoved ? !isMoved : !isAsBefore && !isMoved) {
            wrong("the home holds something else");
        }
    }
    void checkNodes() {
        const auto present = world().allHeld();
        for (const auto& [id, held] : m_scene.nodes) {
            const bool mayGo = std::find(m_going.begin(), m_going.end(), id) != m_going.end();
            const auto found = present.find(id);
            if (found == present.end() ? !mayGo : found->second != held) {
                wrong("snapshot " + shortId(id) + (found == present.end() ? " is lost" : " holds something else"));
            }
            if (mayGo && m_hasSucceeded && found != present.end()) {
                wrong("snapshot " + shortId(id) + " is still there");
            }
        }
        for (const SnapshotId& id : m_reported) {
            if (!present.contains(id)) {
                wrong("a snapshot that was reported is lost");
            }
        }
        for (const auto& [id, held] : present) {
            if (!m_scene.nodes.contains(id) && held.home != m_taken) {
                wrong("the new snapshot holds something else");
            }
        }
    }

    /// Only a domain that can do all of this needs no reset.
    void goOn() {
        m_stage = "going on: ";
        if (!world().daemon->table.find(m_scene.work)) {
            return;
        }
        Content content = world().home(m_scene.work);
        const auto same = [&](const char* when) {
            if (world().home(m_scene.work) != content) {
                wrong(std::string("the home holds something else ") + when);
            }
        };
        world().start(m_scene.work);
        same("after the start");
        world().write(m_scene.work, "after", "wards");
        content["after"] = "wards";
        same("after a write");
        const SnapshotId node = world().take(m_scene.work);
        if (world().held(node).home != content) {
            wrong("another snapshot holds something else");
        }
        world().write(m_scene.work, "after", "that");
        content["after"] = "that";
        world().restart();
        same("after a restart");
        world().stop(m_scene.work);
        same("after the stop");
        world().start(m_scene.work);
        same("after the next start");
        m_scene.nodes = world().allHeld();
        // What this error of these calls means is that the memory is damaged; the disks are not.
        const bool isDamaged = m_verb.isRevert && m_cut == Cut::Once &&
                               (m_cutAt == "SnapshotStore::memoryImage" || m_cutAt == "Machines::load");
        if (world().daemon->lineage.find(m_scene.first)->suspect.empty() == isDamaged) {
            wrong(isDamaged ? "the node is not suspect" : "the node is suspect");
        }
        if (isDamaged) {
            return;
        }
        world().revert(m_scene.first);
        if (world().home(m_scene.work) != m_scene.nodes[m_scene.first].home) {
            wrong("reverting gives something else");
        }
        m_going.clear();
        m_reported.clear();
        m_taken = content;
        checkNodes();
        if (const QString problems = world().problems(); !problems.isEmpty()) {
            wrong(problems.toStdString());
        }
    }
    /// Whatever is left then is an orphan.
    void removeAll() {
        m_stage = "removing all: ";
        for (const DomainEntry& entry : world().daemon->table.all()) {
            world().removeDomain(entry.record.id);
        }
        while (!world().allHeld().empty()) {
            world().remove(world().allHeld().begin()->first, true);
        }
        if (!world().outside.snapshots.onDisk()->empty() || !world().outside.snapshotRecords.all()->empty()) {
            wrong("nodes are left");
        }
        if (const QString problems = world().problems(); !problems.isEmpty()) {
            wrong(problems.toStdString());
        }
    }

    const Verb& m_verb;
    Cut m_cut;
    unsigned m_at;
    unsigned m_again;
    Scene m_scene;
    std::string m_stage;
    QStringList m_wrong;
    Content m_taken; ///< what a new snapshot holds
    std::vector<SnapshotId> m_going;
    std::vector<SnapshotId> m_reported;
    std::vector<std::string> m_calls;
    std::string m_cutAt;
    bool m_hasSucceeded = false;
    bool m_wasAgainTooLate = false;
};

} // namespace

class TestSnapshotFaults : public QObject {
    Q_OBJECT

private slots:
    void verbs_surviveEveryCut_data() {
        QTest::addColumn<QString>("verb");
        QTest::addColumn<int>("cut");
        for (const auto& [name, verb] : verbs()) {
            for (const Cut cut : {Cut::Before, Cut::After, Cut::Once, Cut::Disk}) {
                QTest::addRow("%s, %s", name.c_str(), nameOf(cut)) << QString::fromStdString(name) << int(cut);
            }
        }
    }
    void verbs_surviveEveryCut() {
        QFETCH(QString, verb);
        QFETCH(int, cut);
        const Verb& tried = verbs().at(verb.toStdString());
        Trial whole(tried, Cut::Never, 0);
        const QString wrong = whole.run();
        QVERIFY2(wrong.isEmpty() && whole.hasSucceeded(), qPrintable("not cut at all: " + wrong));
        const auto points = static_cast<unsigned>(whole.calls().size());
        qInfo("%s: %u cut points", qPrintable(verb), points);
        QStringList found;
        for (unsigned at = 1; at <= points; ++at) {
            Trial trial(tried, static_cast<Cut>(cut), at);
            const QString problems = trial.run();
            if (!problems.isEmpty()) {
                found.append(QString("%1 %2 (%3): %4")
                                 .arg(nameOf(static_cast<Cut>(cut)))
                                 .arg(at)
                                 .arg(QString::fromStdString(trial.cutAt()), problems));
            }
        }
        QVERIFY2(found.isEmpty(), qPrintable("\n  " + found.join("\n  ")));
    }

    void verbs_surviveTwoKills_data() {
        QTest::addColumn<QString>("verb");
        for (const char* name : {"create full", "revert running", "suspend", "resume",
                                 "remove nodes that nothing lies above", "remove the domain"}) {
            QTest::newRow(name) << name;
        }
    }
    void verbs_surviveTwoKills() {
        QFETCH(QString, verb);
        const Verb& tried = verbs().at(verb.toStdString());
        Trial whole(tried, Cut::Never, 0);
        QCOMPARE(whole.run(), QString());
        const auto points = static_cast<unsigned>(whole.calls().size());
        QStringList found;
        unsigned pairs = 0;
        for (unsigned at = 1; at <= points; ++at) {
            for (unsigned again = 1;; ++again) {
                Trial trial(tried, Cut::Before, at, again);
                const QString problems = trial.run();
                if (!problems.isEmpty()) {
                    found.append(QString("killed before %1 (%2), then before %3 of the reconciler (%4): %5")
                                     .arg(at)
                                     .arg(QString::fromStdString(trial.cutAt()))
                                     .arg(again)
                                     .arg(QString::fromStdString(trial.cutAgainAt()), problems));
                }
                if (trial.wasAgainTooLate()) {
                    break;
                }
                ++pairs;
            }
        }
        qInfo("%s: %u pairs of cut points", qPrintable(verb), pairs);
        QVERIFY2(found.isEmpty(), qPrintable("\n  " + found.join("\n  ")));
    }
};

QTEST_GUILESS_MAIN(TestSnapshotFaults)
#include "tst_snapshot_faults.moc"
