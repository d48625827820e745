// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/tray_icon.hpp"

#include <QDateTime>
#include <QLineEdit>
#include <QLocale>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QToolButton>
#include <QTreeWidget>

using namespace bulkhead;
using namespace bulkhead::tests;

/// What the buttons do to a domain: jobs with progress and cancel, failures in place, nothing twice.
class TestDomainVerbs : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    /// An entry of the menu behind "More".
    static QAction* more(const QString& text) {
        const auto actions = GuiFixture::find<QToolButton>("More to do with this domain")->menu()->actions();
        for (QAction* action : actions) {
            if (action->text().remove('&') == text) {
                return action;
            }
        }
        return nullptr;
    }

    static QVariantMap deletedMap(const QString& id, const QString& name) {
        return {{"id", id},
                {"name", name},
                {"owner", 1000U},
                {"deleted-at", 1'796'000'000LL},
                {"goes-at", 1'796'604'800LL},
                {"size-on-disk", 734'003'200ULL}};
    }

private slots:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void start_showsItsJobAndIgnoresFurtherClicks() {
        FakeDomain& work = m_fixture->add("work", "stopped");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        job.description["fraction"] = 0.25;
        auto* button = GuiFixture::find<QPushButton>("Start work");
        QVERIFY(button != nullptr);
        QTest::mouseClick(button, Qt::LeftButton);
        QVERIFY(!button->isEnabled());
        QCOMPARE(button->text(), QString("Starting…"));
        QTest::mouseClick(button, Qt::LeftButton);
        m_fixture->desk->verbs.start(GuiFixture::path("work"));
        m_fixture->desk->verbs.remove(GuiFixture::path("work"));
        QTRY_VERIFY(GuiFixture::says("booting"));
        QTRY_COMPARE(GuiFixture::find<QProgressBar>("Progress: Starting work")->value(), 250);
        job.description["phase"] = "waiting for the agent";
        job.description["fraction"] = 0.75;
        emit job.Progress(0.75);
        QTRY_VERIFY(GuiFixture::says("waiting for the agent"));
        QTRY_COMPARE(GuiFixture::find<QProgressBar>("Progress: Starting work")->value(), 750);

        m_fixture->fake->setState("work", "running");
        job.finish("succeeded");
        QTRY_COMPARE(button->text(), QString("Stop"));
        QVERIFY(button->isEnabled());
        QVERIFY(GuiFixture::find("Progress: Starting work") == nullptr);
        QCOMPARE(work.calls.count("Start "), 1);
        QCOMPARE(work.calls.count("Remove "), 0);
    }

    void start_canBeCancelled() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        GuiFixture::click("Start work");
        QTRY_VERIFY(GuiFixture::find("Cancel: Starting work") != nullptr);
        GuiFixture::click("Cancel: Starting work");
        QTRY_VERIFY(job.cancelled);
        QTRY_VERIFY(GuiFixture::find("Cancel: Starting work") == nullptr);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Start work") != nullptr);
        QVERIFY(GuiFixture::find<QPushButton>("Start work")->isEnabled());
        QCOMPARE(m_fixture->row("work")->problem, QString()); // wanted, so nothing to complain of
    }

    void failure_isShownInPlaceWithItsReason_data() {
        QTest::addColumn<bool>("isRefused"); // else: the job fails
        QTest::newRow("refused") << true;
        QTest::newRow("job") << false;
    }
    void failure_isShownInPlaceWithItsReason() {
        QFETCH(bool, isRefused);
        m_fixture->add("work", "stopped");
        m_fixture->open();
        const QString reason = "work: start: the disk of the image store is full (96 %)";
        if (isRefused) {
            m_fixture->fake->failNext("org.bulkhead1.Error.LimitExceeded", reason, "Start");
            GuiFixture::click("Start work");
        } else {
            FakeJob& job = m_fixture->fake->prepareJob();
            GuiFixture::click("Start work");
            QTRY_VERIFY(job.asked > 0);
            job.description["error"] = "org.bulkhead1.Error.LimitExceeded";
            job.description["message"] = reason;
            job.finish("failed");
        }
        QTRY_VERIFY(GuiFixture::says("work: start: the disk of the image store is full (96 %)."));
        QCOMPARE(QApplication::activeModalWidget(), nullptr);
        QVERIFY(GuiFixture::find<QPushButton>("Start work")->isEnabled());
        QVERIFY(
            m_fixture->desk->domains.indexOf(GuiFixture::path("work")).data(gui::DomainModel::IsFailedRole).toBool());
        GuiFixture::click("Dismiss this message");
        QTRY_VERIFY(!GuiFixture::says("image store is full"));
    }

    void daemonLost_endsTheJobAndSaysSo() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        FakeJob& job = m_fixture->fake->prepareJob();
        GuiFixture::click("Start work");
        QTRY_VERIFY(job.asked > 0);
        m_fixture->fake->vanish();
        QTRY_COMPARE(m_fixture->desk->jobs.rowCount(), 0);
        m_fixture->fake.reset();
        m_fixture->startDaemon();
        m_fixture->add("work", "stopped");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Start work") != nullptr);
        QVERIFY(GuiFixture::find<QPushButton>("Start work")->isEnabled());
    }

    void forceStop_asksFirstAndPassesAStopThatTakesLong() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        FakeJob& stopping = m_fixture->fake->prepareJob();
        GuiFixture::click("Stop work");
        QTRY_COMPARE(work.calls.count("Stop "), 1);
        QTRY_VERIFY(stopping.asked > 0);
        more("Force stop…")->trigger();
        QTRY_VERIFY(GuiFixture::find("Cut the power of work") != nullptr);
        QCOMPARE(work.calls.count("Stop "), 1);
        FakeJob& cutting = m_fixture->fake->prepareJob();
        GuiFixture::click("Cut the power of work");
        QTRY_COMPARE(work.calls.count("Stop "), 2);
        QVERIFY(work.lastOptions["force"].toBool());
        m_fixture->fake->setState("work", "stopped");
        stopping.finish("succeeded");
        QTRY_VERIFY(m_fixture->desk->jobs.rowCount() == 1);
        QCOMPARE(m_fixture->row("work")->task, gui::Task::ForceStopping);
        cutting.finish("succeeded");
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Start work") != nullptr);
    }

    void remove_namesItsEffectAndCanBeLeft() {
        FakeDomain& work = m_fixture->add("work", "stopped");
        m_fixture->open();
        more("Remove…")->trigger();
        QTRY_VERIFY(GuiFixture::says("“Deleted domains” below the list can bring it back with its home for 7 days"));
        QWidget* dialog = GuiFixture::find("Remove work")->window();
        QTest::keyClick(dialog, Qt::Key_Return); // the default is to leave it
        QTRY_VERIFY(GuiFixture::find("Remove work") == nullptr);
        QVERIFY(!work.calls.contains("Remove"));

        more("Remove…")->trigger();
        QTRY_VERIFY(GuiFixture::find("Remove work") != nullptr);
        GuiFixture::click("Remove work");
        QTRY_VERIFY(work.calls.contains("Remove"));
        QVERIFY(!work.lastOptions.contains("force"));
        m_fixture->fake->removeDomain("work");
        QTRY_VERIFY(GuiFixture::says("Welcome to Bulkhead"));
    }

    void removeOfARunningDomain_powersItOffAndSaysSo() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        more("Remove…")->trigger();
        QTRY_VERIFY(GuiFixture::says("It is powered off first"));
        GuiFixture::click("Remove work");
        QTRY_VERIFY(work.calls.contains("Remove"));
        QVERIFY(work.lastOptions["force"].toBool());
    }

    void pause_standsInTheRowAndTheMenusUntilUnpause() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        FakeJob& pausing = m_fixture->fake->prepareJob();
        QVERIFY(more("Pause")->isEnabled());
        more("Pause")->trigger();
        QTRY_COMPARE(work.calls.count("Pause "), 1);
        QCOMPARE(m_fixture->row("work")->task, gui::Task::Pausing);
        QTRY_VERIFY(GuiFixture::says("Pausing…"));
        m_fixture->fake->setState("work", "paused");
        pausing.finish("succeeded");
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        const QModelIndex index = m_fixture->desk->domains.indexOf(GuiFixture::path("work"));
        QTRY_COMPARE(index.data(gui::DomainModel::StateTextRole).toString(), QString("Paused"));
        QVERIFY(index.data(gui::DomainModel::IsPausedRole).toBool());
        QVERIFY(index.data(Qt::AccessibleTextRole).toString().contains("Paused"));
        QVERIFY(more("Pause") == nullptr && more("Unpause")->isEnabled());
        QVERIFY(!more("Suspend")->isEnabled() && !more("Take a snapshot")->isEnabled());
        QVERIFY(more("Force stop…")->isEnabled());

        gui::TrayIcon tray(*m_fixture->desk);
        QTRY_COMPARE(tray.menu().actions().first()->text(), QString("work: Paused"));
        FakeJob& goingOn = m_fixture->fake->prepareJob();
        GuiFixture::click("Unpause work");
        QTRY_COMPARE(work.calls.count("Unpause "), 1);
        m_fixture->fake->setState("work", "running");
        goingOn.finish("succeeded");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Stop work") != nullptr);
        QVERIFY(more("Pause") != nullptr);
    }

    void pause_byKeyboardAndFromTheTray() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        QTest::keyClick(m_fixture->window.get(), Qt::Key_P, Qt::ControlModifier);
        QTRY_COMPARE(work.calls.count("Pause "), 1);
        m_fixture->fake->setState("work", "paused");
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        QTRY_COMPARE(m_fixture->row("work")->info.state, QString("paused"));
        gui::TrayIcon tray(*m_fixture->desk);
        QTRY_COMPARE(tray.menu().actions().first()->text(), QString("work: Paused"));
        for (QAction* action : tray.menu().actions().first()->menu()->actions()) {
            if (action->text() == "Unpause") {
                action->trigger();
            }
        }
        QTRY_COMPARE(work.calls.count("Unpause "), 1);
    }

    void pause_thatIsRefusedSaysWhy() {
        m_fixture->add("work", "running");
        m_fixture->open();
        m_fixture->fake->failNext("org.bulkhead1.Error.HostFailure", "work: pause: libvirt is not running", "Pause");
        more("Pause")->trigger();
        QTRY_VERIFY(GuiFixture::says("work: pause: libvirt is not running."));
        QCOMPARE(m_fixture->row("work")->task, gui::Task::None);
    }

    void deleted_areListedAndComeBack() {
        m_fixture->add("work", "stopped");
        m_fixture->fake->deleted = {deletedMap("11111111-0000-4000-8000-000000000001", "mail"),
                                    deletedMap("22222222-0000-4000-8000-000000000002", "work")};
        m_fixture->open();
        GuiFixture::click("Deleted domains");
        auto* list = GuiFixture::find<QTreeWidget>("Deleted domains, the last one first");
        QTRY_VERIFY(list != nullptr && list->topLevelItemCount() == 2);
        QCOMPARE(list->topLevelItem(0)->text(0), QString("mail"));
        QVERIFY(list->topLevelItem(0)->text(2).contains(
            QLocale().toString(QDateTime::fromSecsSinceEpoch(1'796'604'800), QLocale::ShortFormat)));
        // Its name is taken by now.
        list->setCurrentItem(list->topLevelItem(1));
        QVERIFY(GuiFixture::says("You have a domain of that name by now"));
        QVERIFY(!GuiFixture::find<QPushButton>("Restore")->isEnabled());
        GuiFixture::find<QLineEdit>("Name when it is back")->setText("work-2");
        QVERIFY(GuiFixture::find<QPushButton>("Restore")->isEnabled());
        GuiFixture::click("Restore");
        QTRY_COMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("work-2"));
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Restore") == nullptr);
    }

    void deleted_refusalIsShownInPlace() {
        m_fixture->add("work", "stopped");
        m_fixture->fake->deleted = {deletedMap("11111111-0000-4000-8000-000000000001", "mail")};
        m_fixture->open();
        m_fixture->window->openDeletedDialog();
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Restore") != nullptr);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Restore")->isEnabled());
        m_fixture->fake->failNext("org.bulkhead1.Error.LimitExceeded", "at most 64 domains", "RestoreDomain");
        GuiFixture::click("Restore");
        QTRY_VERIFY(GuiFixture::says("At most 64 domains."));
        QVERIFY(GuiFixture::find<QPushButton>("Restore")->isEnabled());
        // It goes for good while somebody looks.
        m_fixture->fake->deleted.clear();
        m_fixture->fake->announce();
        QTRY_VERIFY(GuiFixture::says("There are no removed domains"));
        QVERIFY(!GuiFixture::find<QPushButton>("Restore")->isEnabled());
    }

    void disposable_isChosenWhenItRuns() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        GuiFixture::click("New disposable");
        QTRY_COMPARE(m_fixture->desk->jobs.rowCount(), 0);
        m_fixture->fake->announce();
        QTRY_COMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("disp1"));
    }

    void disposable_thatDoesNotStartSaysWhy() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        m_fixture->fake->failNext("org.bulkhead1.Error.NotFound", "no template \"minimal\" is built",
                                  "StartDisposable");
        GuiFixture::click("New disposable");
        QTRY_VERIFY(GuiFixture::says("Start a disposable: No template \"minimal\" is built."));
        QVERIFY(GuiFixture::find<QPushButton>("New disposable")->isEnabled());
    }
};

BULKHEAD_GUI_TEST_MAIN(TestDomainVerbs)
#include "tst_domain_verbs.moc"
