// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QToolButton>

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
        QTRY_VERIFY(GuiFixture::says("It can be brought back with its home for 7 days, unless your administrator "
                                     "has changed that. In a terminal: bulkhead domain restore work"));
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
