// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/search/search_field.hpp"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <QTreeWidget>

using namespace bulkhead;
using namespace bulkhead::tests;

namespace {

constexpr const char* kFirst = "1a2b3c4d-0000-4000-8000-000000000001";
constexpr const char* kSecond = "cafe0000-1000-4000-8000-000000000002";
constexpr const char* kKept = "beef0000-0000-4000-8000-000000000004";

} // namespace

/// Snapshot, revert, fork, suspend and resume from the window, with the mouse and without.
class TestSnapshotVerbs : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    static QAction* more(const QString& text) {
        const auto actions = GuiFixture::find<QToolButton>("More to do with this domain")->menu()->actions();
        for (QAction* action : actions) {
            if (action->text().remove('&') == text) {
                return action;
            }
        }
        return nullptr;
    }
    static QTreeWidget* list() { return GuiFixture::find<QTreeWidget>("Snapshots of work, the newest first"); }
    static QPushButton* revertButton() { return GuiFixture::find<QPushButton>("Revert work"); }

    void openRevert() {
        more("Revert to…")->trigger();
        QTRY_VERIFY(revertButton() != nullptr);
    }
    FakeDomain& workWithSnapshots(const QString& state) {
        FakeDomain& work = m_fixture->add("work", state);
        work.description["head"] = kSecond;
        m_fixture->fake->addSnapshot(kFirst, "work", {{"kind", "disk"}, {"label", "clean <b>base"}, {"pinned", true}});
        m_fixture->fake->addSnapshot(kSecond, "work", {{"created-at", 1796000000LL}});
        m_fixture->fake->addSnapshot(kKept, "mail");
        return work;
    }

private slots:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void snapshot_showsItsJobAndSaysWhatCame() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        more("Take a snapshot")->trigger();
        QTRY_VERIFY(GuiFixture::find("Cancel: Taking a snapshot of work") != nullptr);
        QVERIFY(GuiFixture::says("Taking a snapshot…"));
        QVERIFY(!more("Take a snapshot")->isEnabled());
        QVERIFY(!more("Suspend")->isEnabled());
        job.description["result"] = QVariantMap{{"snapshot", kFirst}, {"pause-ms", 80ULL}};
        job.finish("succeeded");
        QTRY_VERIFY(GuiFixture::says("Snapshot 1a2b3c4d is taken."));
        QCOMPARE(work.calls.count("Snapshot "), 1);
        QVERIFY(m_fixture->row("work")->problem.isEmpty());
        GuiFixture::click("Dismiss this message");
        QTRY_VERIFY(!GuiFixture::says("is taken"));
    }

    void snapshot_thatFails_saysWhy() {
        m_fixture->add("work", "running");
        m_fixture->open();
        m_fixture->fake->failNext("org.bulkhead1.Error.NoSpace", "96 % of the disk is full", "Snapshot");
        more("Take a snapshot")->trigger();
        QTRY_VERIFY(GuiFixture::says("96 % of the disk is full."));
    }

    void snapshot_canBeCancelled() {
        m_fixture->add("work", "running");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        more("Take a snapshot")->trigger();
        QTRY_VERIFY(GuiFixture::find("Cancel: Taking a snapshot of work") != nullptr);
        GuiFixture::click("Cancel: Taking a snapshot of work");
        QTRY_VERIFY(job.cancelled);
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        QVERIFY(m_fixture->row("work")->problem.isEmpty());
    }

    void suspendAndResume() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        FakeJob& suspending = m_fixture->fake->prepareJob();
        more("Suspend")->trigger();
        QTRY_COMPARE(work.calls.count("Suspend "), 1);
        QTRY_VERIFY(GuiFixture::says("Suspending…"));
        work.description["suspended"] = true;
        m_fixture->fake->setState("work", "suspended");
        suspending.finish("succeeded");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Resume work") != nullptr);
        QCOMPARE(GuiFixture::find<QPushButton>("Resume work")->text(), QString("Resume"));
        QTRY_VERIFY(GuiFixture::says("Suspended"));
        QVERIFY(GuiFixture::says("work is suspended"));
        const QModelIndex index = m_fixture->desk->domains.indexOf(GuiFixture::path("work"));
        QVERIFY(index.data(gui::DomainModel::IsSuspendedRole).toBool());
        QVERIFY(index.data(Qt::AccessibleTextRole).toString().startsWith("work, Suspended"));
        QVERIFY(!more("Suspend")->isEnabled());
        QVERIFY(!more("Force stop…")->isEnabled());

        FakeJob& resuming = m_fixture->fake->prepareJob();
        GuiFixture::click("Resume work");
        QTRY_VERIFY(GuiFixture::find("Cancel: Resuming work") != nullptr);
        QCOMPARE(work.calls.count("Start "), 1);
        m_fixture->fake->setState("work", "running");
        resuming.description["result"] =
            QVariantMap{{"warm", false}, {"note", "it did not go on in its memory, so it booted (another QEMU)"}};
        resuming.finish("succeeded");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Stop work") != nullptr);
        // It runs, but not as one would expect: that is told, and is no failure.
        QTRY_VERIFY(GuiFixture::says("It did not go on in its memory, so it booted (another QEMU)."));
        QVERIFY(!index.data(gui::DomainModel::IsFailedRole).toBool());
        QVERIFY(index.data(Qt::AccessibleTextRole).toString().contains("another QEMU"));
    }

    void removeOfASuspendedDomain_needsNoForce() {
        FakeDomain& work = m_fixture->add("work", "suspended");
        m_fixture->open();
        more("Remove…")->trigger();
        QTRY_VERIFY(GuiFixture::find("Remove work") != nullptr);
        QVERIFY(!GuiFixture::says("It is powered off first"));
        GuiFixture::click("Remove work");
        QTRY_VERIFY(work.calls.contains("Remove"));
        QVERIFY(!work.lastOptions.contains("force"));
    }

    void revert_listsTheDomainsOwnAndKeepsThePresent() {
        workWithSnapshots("running");
        m_fixture->open();
        openRevert();
        QTRY_COMPARE(list()->topLevelItemCount(), 2);
        const auto* newest = list()->topLevelItem(0);
        QVERIFY(newest == list()->currentItem());
        QCOMPARE(newest->text(1), QString("Taken by hand, the present began here"));
        QCOMPARE(newest->text(2), QString("Disks and memory"));
        QCOMPARE(list()->topLevelItem(1)->text(1), QString("clean <b>base, pinned"));
        QCOMPARE(list()->topLevelItem(1)->text(2), QString("Disks only"));
        QVERIFY(GuiFixture::says("work goes on from there, with the programs that ran then."));
        auto* boot = GuiFixture::find<QCheckBox>("Leave the memory out, so that it boots");
        QVERIFY(boot->isEnabled());
        list()->setCurrentItem(list()->topLevelItem(1));
        QVERIFY(!boot->isEnabled());
        QVERIFY(GuiFixture::says("work boots again, with its disks of then."));
        FakeJob& job = m_fixture->fake->prepareJob();
        GuiFixture::click("Revert work");
        QTRY_VERIFY(GuiFixture::find("Cancel: Reverting work") != nullptr);
        QCOMPARE(m_fixture->fake->lastSnapshot, QString(kFirst));
        QCOMPARE(m_fixture->fake->lastSnapshotOptions.value("keep", true).toBool(), true);
        QVERIFY(revertButton() == nullptr);
        job.description["result"] = QVariantMap{{"kept", kKept}, {"running", true}, {"note", "it had to boot"}};
        job.finish("succeeded");
        QTRY_VERIFY(GuiFixture::says(
            "It is what it was at snapshot 1a2b3c4d. What was there before is snapshot beef0000. It had to boot."));
    }

    void revert_canThrowThePresentAway() {
        workWithSnapshots("stopped");
        m_fixture->open();
        openRevert();
        QTRY_COMPARE(list()->topLevelItemCount(), 2);
        QVERIFY(GuiFixture::says("work is suspended there: Resume goes on with the programs that ran then."));
        QVERIFY(!GuiFixture::says("What is there now is lost."));
        GuiFixture::find<QCheckBox>("Keep what is there now, as a snapshot")->setChecked(false);
        QVERIFY(GuiFixture::says("What is there now is lost."));
        GuiFixture::find<QCheckBox>("Leave the memory out, so that it boots")->setChecked(true);
        QVERIFY(GuiFixture::says("work stays stopped, with its disks of then."));
        GuiFixture::click("Revert work");
        QTRY_COMPARE(m_fixture->fake->lastSnapshot, QString(kSecond));
        QCOMPARE(m_fixture->fake->lastSnapshotOptions, QVariantMap({{"keep", false}, {"disk", true}}));
    }

    void revert_withoutSnapshots_saysHowToGetOne() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        openRevert();
        QTRY_VERIFY(GuiFixture::says("work has no snapshots yet."));
        QVERIFY(list() == nullptr);
        QVERIFY(!revertButton()->isEnabled());
        // One that comes meanwhile is there.
        m_fixture->fake->addSnapshot(kFirst, "work");
        QTRY_VERIFY(list() != nullptr);
        QVERIFY(revertButton()->isEnabled());
        QVERIFY(!GuiFixture::says("work has no snapshots yet."));
    }

    void revert_listThatFails_saysWhy() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        m_fixture->fake->failNext("org.bulkhead1.Error.HostFailure", "the database cannot be read", "ListSnapshots");
        openRevert();
        QTRY_VERIFY(GuiFixture::says("The snapshots cannot be listed: The database cannot be read."));
    }

    void revert_ofASuspectOne_saysSo() {
        m_fixture->add("work", "stopped");
        m_fixture->fake->addSnapshot(kFirst, "work", {{"suspect", "taken after an alarm\x1b[2J"}});
        m_fixture->open();
        openRevert();
        QTRY_VERIFY(GuiFixture::says("This snapshot is suspect: Taken after an alarm\\x1b[2J."));
    }

    void fork_ofNowAndOfASnapshot_data() {
        QTest::addColumn<bool>("isOfNow");
        QTest::newRow("now") << true;
        QTest::newRow("a snapshot") << false;
    }
    void fork_ofNowAndOfASnapshot() {
        QFETCH(bool, isOfNow);
        FakeDomain& work = workWithSnapshots("running");
        m_fixture->open();
        more("Fork…")->trigger();
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Name") != nullptr);
        auto* create = GuiFixture::find<QPushButton>("Create domain");
        QVERIFY(!create->isEnabled());
        auto* from = GuiFixture::find<QComboBox>("Begins");
        QCOMPARE(from->currentText(), QString("Where work stands now"));
        QTRY_COMPARE(from->count(), 3);
        if (!isOfNow) {
            from->setCurrentIndex(2);
        }
        GuiFixture::find<QLineEdit>("Name")->setText("work");
        QVERIFY(GuiFixture::says("You have a domain of that name already."));
        QVERIFY(!create->isEnabled());
        GuiFixture::find<QLineEdit>("Name")->setText("trial");
        auto* label = GuiFixture::find<QComboBox>("Label");
        QCOMPARE(label->currentData().toString(), QString("blue")); // as its source
        label->setCurrentIndex(label->findData("green"));
        QTest::keyClick(GuiFixture::find<QLineEdit>("Name"), Qt::Key_Return);
        QTRY_COMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("trial"));
        QVERIFY(GuiFixture::find<QLineEdit>("Begins") == nullptr);
        QCOMPARE(work.calls.contains("Fork "), isOfNow);
        QCOMPARE(isOfNow ? work.lastOptions : m_fixture->fake->lastSnapshotOptions, QVariantMap({{"label", "green"}}));
        QCOMPARE(m_fixture->fake->lastSnapshot, isOfNow ? QString() : QString(kFirst));
        QCOMPARE(m_fixture->row("work")->task, gui::Task::None);
    }

    void fork_thatIsRefused_staysInTheForm() {
        m_fixture->add("work", "running");
        m_fixture->open();
        more("Fork…")->trigger();
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Name") != nullptr);
        GuiFixture::find<QLineEdit>("Name")->setText("trial");
        m_fixture->fake->failNext("org.bulkhead1.Error.LimitExceeded", "you have 64 domains already", "Fork");
        GuiFixture::click("Create domain");
        QTRY_VERIFY(GuiFixture::says("You have 64 domains already."));
        QCOMPARE(GuiFixture::find<QLineEdit>("Name")->text(), QString("trial"));
        QVERIFY(GuiFixture::find<QPushButton>("Create domain")->isEnabled());
        QCOMPARE(m_fixture->row("work")->task, gui::Task::None);
    }

    void disposable_thatBooted_saysSo() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        GuiFixture::click("New disposable");
        QTRY_VERIFY(job.asked > 0);
        job.description["result"] = QVariantMap{
            {"domain", QVariant::fromValue(QDBusObjectPath(GuiFixture::path("disp1")))}, {"note", "it booted"}};
        job.finish("succeeded");
        QTRY_VERIFY(GuiFixture::says("The disposable has started. It booted."));
    }

    /// Snapshot, suspend, resume and revert without touching the mouse.
    void keyboardAlone() {
        FakeDomain& work = workWithSnapshots("running");
        m_fixture->open();
        QWidget* window = m_fixture->window.get();
        const auto search = [&](const char* text) {
            m_fixture->window->activateWindow();
            QVERIFY(QTest::qWaitForWindowActive(window));
            QTest::keyClick(window, Qt::Key_K, Qt::ControlModifier);
            QVERIFY(qobject_cast<gui::SearchField*>(QApplication::focusWidget()) != nullptr);
            QTest::keyClicks(QApplication::focusWidget(), text);
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        };
        search("take a snapshot of work");
        QTRY_COMPARE(work.calls.count("Snapshot "), 1);
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        search("suspend work");
        QTRY_COMPARE(work.calls.count("Suspend "), 1);
        m_fixture->fake->setState("work", "suspended");
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        QTRY_COMPARE(m_fixture->row("work")->info.state, QString("suspended"));
        search("resume work");
        QTRY_COMPARE(work.calls.count("Start "), 1);
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        search("revert work");
        QTRY_VERIFY(list() != nullptr);
        QTRY_COMPARE(list()->topLevelItemCount(), 2);
        QTRY_COMPARE(QApplication::focusWidget(), list());
        QTest::keyClick(list(), Qt::Key_Down);
        QTest::keyClick(list(), Qt::Key_Return);
        QTRY_COMPARE(m_fixture->fake->lastSnapshot, QString(kFirst));
        QTRY_VERIFY(list() == nullptr);
    }
};

BULKHEAD_GUI_TEST_MAIN(TestSnapshotVerbs)
#include "tst_snapshot_verbs.moc"
