// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/search/search_field.hpp"
#include "gui/tray_icon.hpp"

#include <QAbstractSpinBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QTabBar>
#include <QToolButton>

using namespace bulkhead;
using namespace bulkhead::tests;

/// The window as a whole: list, daemon away and back, search, names for screen readers, hostile texts.
class TestMainWindow : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    QListView* list() { return GuiFixture::find<QListView>("Domains"); }
    QStringList shownNames() {
        QStringList names;
        for (int row = 0; row < list()->model()->rowCount(); ++row) {
            names.append(list()->model()->index(row, 0).data().toString());
        }
        return names;
    }
    /// Every visible widget that takes input and that nobody could name.
    static QStringList nameless(const QWidget& top) {
        QStringList found;
        for (const QWidget* widget : top.findChildren<QWidget*>()) {
            const bool isInside = qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) != nullptr ||
                                  qobject_cast<QComboBox*>(widget->parentWidget()) != nullptr ||
                                  qobject_cast<QLineEdit*>(widget->parentWidget()) != nullptr ||
                                  qobject_cast<QTabBar*>(widget->parentWidget()) != nullptr ||
                                  qobject_cast<const QTabBar*>(widget) != nullptr;
            if (widget->isVisibleTo(&top) && widget->focusPolicy() != Qt::NoFocus && !isInside &&
                widget->accessibleName().isEmpty()) {
                found.append(
                    QString("%1 in %2")
                        .arg(widget->metaObject()->className(), widget->parentWidget()->metaObject()->className()));
            }
        }
        return found;
    }

private slots:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void longHeader_isElidedAndToldInFull() {
        FakeDomain& work = m_fixture->add("work", "stopped");
        work.description["template"] = QString(60, 'm');
        m_fixture->open();
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        const QString full = "Stopped · app domain · " + QString(60, 'm');
        auto* words = GuiFixture::find<QLabel>(full);
        QVERIFY(words != nullptr);
        m_fixture->window->resize(2000, 720);
        QTRY_COMPARE(words->text(), full);
        QCOMPARE(words->toolTip(), QString());
        m_fixture->window->resize(820, 720);
        QTRY_VERIFY(words->text().endsWith(QChar(0x2026)));
        QVERIFY(words->fontMetrics().horizontalAdvance(words->text()) <= words->width());
        QCOMPARE(words->toolTip(), full);
        QCOMPARE(words->accessibleName(), full);
    }

    void list_isSortedWithDisposablesBelow() {
        m_fixture->add("work", "running");
        m_fixture->add("disp-1234", "running", "gray", "disposable");
        m_fixture->add("browser", "stopped", "red");
        m_fixture->open();
        QCOMPARE(shownNames(), QStringList({"browser", "work", "disp-1234"}));
        QVERIFY(!list()->model()->index(1, 0).data(gui::DomainModel::BeginsDisposablesRole).toBool());
        QVERIFY(list()->model()->index(2, 0).data(gui::DomainModel::BeginsDisposablesRole).toBool());
    }

    void list_keepsTheChoiceWhileDomainsComeAndGo() {
        m_fixture->add("work", "stopped");
        m_fixture->add("vault", "stopped");
        m_fixture->open();
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        m_fixture->add("alpha", "stopped");
        m_fixture->fake->announce();
        QTRY_COMPARE(shownNames(), QStringList({"alpha", "vault", "work"}));
        QCOMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("work"));
        m_fixture->fake->removeDomain("alpha");
        QTRY_COMPARE(shownNames(), QStringList({"vault", "work"}));
        QCOMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("work"));
        m_fixture->fake->removeDomain("work");
        QTRY_COMPARE(shownNames(), QStringList({"vault"}));
        QCOMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("vault"));
    }

    void state_followsTheDaemonsSignals() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        QVERIFY(GuiFixture::says("Stopped"));
        m_fixture->fake->setState("work", "starting");
        QTRY_VERIFY(GuiFixture::says("Starting…"));
        m_fixture->fake->setState("work", "running");
        QTRY_VERIFY(GuiFixture::says("Running"));
        m_fixture->fake->setState("work", "failed", "work: start: no memory is left for 1 GiB");
        QTRY_VERIFY(GuiFixture::says("no memory is left for 1 GiB"));
        QVERIFY(GuiFixture::says("Failed"));
    }

    void domain_thatCouldBeRestarted_saysSo() {
        m_fixture->add("work", "running");
        m_fixture->open();
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        const auto state = [&] {
            return list()->model()->index(0, 0).data(gui::DomainModel::StateTextRole).toString();
        };
        QCOMPARE(state(), QString("Running"));
        // A template was built meanwhile.
        m_fixture->fake->domain("work")->description["update-available"] = true;
        m_fixture->fake->announce();
        QTRY_COMPARE(state(), QString("Running, restart to update"));
        QVERIFY(list()->model()->index(0, 0).data(Qt::AccessibleTextRole).toString().contains("restart to update"));
        QTRY_VERIFY(GuiFixture::says("Running, restart to update"));
        m_fixture->fake->domain("work")->description["update-available"] = false;
        m_fixture->fake->setState("work", "stopped");
        QTRY_COMPARE(state(), QString("Stopped"));
    }

    void status_isAskedOnlyOfRunningDomains() {
        FakeDomain& work = m_fixture->add("work", "running");
        FakeDomain& vault = m_fixture->add("vault", "stopped");
        m_fixture->open();
        QTRY_VERIFY(gui::memoryShare(*m_fixture->row("work")) > 0.4);
        QVERIFY(qAbs(gui::diskShare(*m_fixture->row("work")) - 0.3) < 0.01);
        QVERIFY(work.calls.contains("Status"));
        QVERIFY(!vault.calls.contains("Status"));
        m_fixture->fake->setState("work", "stopped");
        QTRY_VERIFY(gui::memoryShare(*m_fixture->row("work")) < 0);
    }

    void daemon_goesAwayAndComesBack() {
        m_fixture->add("work", "running");
        m_fixture->open();
        m_fixture->fake->vanish();
        QTRY_VERIFY(GuiFixture::says("Bulkhead’s service is not running"));
        QVERIFY(GuiFixture::says("sudo systemctl start bulkheadd"));
        QVERIFY(!GuiFixture::find<QListView>("Domains"));
        m_fixture->fake.reset();
        m_fixture->startDaemon();
        m_fixture->add("work", "stopped");
        m_fixture->add("vault", "stopped");
        QTRY_VERIFY(GuiFixture::find<QListView>("Domains") != nullptr);
        QTRY_COMPARE(shownNames(), QStringList({"vault", "work"}));
        QTRY_VERIFY(GuiFixture::says("Stopped"));
    }

    void daemon_isNotThereAtTheStart() {
        m_fixture->fake.reset();
        m_fixture->desk = std::make_unique<gui::Desk>();
        m_fixture->window = std::make_unique<gui::MainWindow>(*m_fixture->desk);
        m_fixture->desk->link.open();
        m_fixture->window->present();
        QTRY_VERIFY(GuiFixture::says("Bulkhead’s service is not running"));
        m_fixture->startDaemon();
        m_fixture->add("work", "stopped");
        QTRY_VERIFY(m_fixture->desk->link.isAvailable());
        QTRY_VERIFY(GuiFixture::find<QListView>("Domains") != nullptr);
    }

    void search_findsDomainsAndActions() {
        m_fixture->add("work", "stopped");
        m_fixture->add("vault", "stopped");
        m_fixture->open();
        QTest::keyClick(m_fixture->window.get(), Qt::Key_K, Qt::ControlModifier);
        auto* field = qobject_cast<gui::SearchField*>(QApplication::focusWidget());
        QVERIFY(field != nullptr);
        QTest::keyClicks(field, "start wo");
        QVERIFY(field->results()->isVisible());
        QCOMPARE(field->results()->model()->rowCount(), 1);
        QCOMPARE(field->results()->model()->index(0, 0).data().toString(), QString("Start work"));
        m_fixture->fake->prepareJob();
        QTest::keyClick(field, Qt::Key_Return);
        QTRY_COMPARE(m_fixture->fake->domain("work")->calls, QString("Start "));
        QVERIFY(!field->results()->isVisible());
        QCOMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("work"));

        QTest::keyClicks(field, "zzz");
        QCOMPARE(field->results()->model()->index(0, 0).data().toString(), QString("Nothing is called that"));
        QTest::keyClick(field, Qt::Key_Return);
        QTest::keyClick(field, Qt::Key_Escape);
        QVERIFY(!field->results()->isVisible());
    }

    void hostileTexts_areShownEscaped() {
        FakeDomain& domain = m_fixture->add("work", "failed");
        domain.description["name"] = QString("<b>w\x1b[31m\u202Eork</b>");
        domain.description["reason"] = QString("<img src=x>\x07\nlog out");
        domain.description["label"] = QString("no\x1bsuch");
        m_fixture->open();
        QTRY_VERIFY(GuiFixture::says("<b>w\\x1b[31m\\u{202e}ork</b>"));
        QVERIFY(GuiFixture::says("<img src=x>\\x07\\x0alog out"));
        for (QWidget* widget : QApplication::allWidgets()) {
            const auto* label = qobject_cast<QLabel*>(widget);
            QVERIFY2(label == nullptr || label->text().isEmpty() || label->textFormat() == Qt::PlainText ||
                         !label->text().contains('<'),
                     label != nullptr ? qPrintable(label->text()) : "");
        }
        const QString said = list()->model()->index(0, 0).data(Qt::AccessibleTextRole).toString();
        QVERIFY2(!said.contains(QChar(0x1b)) && !said.contains(QChar(0x202E)), qPrintable(said));
        gui::TrayIcon tray(*m_fixture->desk);
        m_fixture->fake->setState("work", "running");
        QTRY_VERIFY(tray.menu().actions().first()->text().startsWith("<b>w\\x1b[31m"));
    }

    void everyControl_hasAName() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(GuiFixture::find("Apps") != nullptr);
        FakeJob& job = m_fixture->fake->prepareJob();
        GuiFixture::click("Stop work");
        QTRY_VERIFY(GuiFixture::find("Cancel: Stopping work") != nullptr);
        QCOMPARE(nameless(*m_fixture->window), QStringList());
        job.finish("cancelled");
        m_fixture->window->openCreateDialog();
        QTRY_VERIFY(GuiFixture::find("Create domain") != nullptr);
        QCOMPARE(nameless(*GuiFixture::find("Create domain")->window()), QStringList());
        GuiFixture::click("Cancel");
        QTRY_VERIFY(GuiFixture::find("Create domain") == nullptr);
        QTRY_COMPARE(m_fixture->row("work")->task, gui::Task::None);
        m_fixture->window->openDeletedDialog();
        QTRY_VERIFY(GuiFixture::find("Restore") != nullptr);
        QCOMPARE(nameless(*GuiFixture::find("Restore")->window()), QStringList());
        GuiFixture::click("Close");
        QTRY_VERIFY(GuiFixture::find("Restore") == nullptr);
        m_fixture->fake->addSnapshot("1a2b3c4d-0000-4000-8000-000000000001", "work");
        for (const auto& [action, verb] : {std::pair("Revert to", "Revert work"), std::pair("Fork", "Create domain")}) {
            for (QAction* one : GuiFixture::find<QToolButton>("More to do with this domain")->menu()->actions()) {
                if (one->text().remove('&').startsWith(action)) {
                    one->trigger();
                }
            }
            QTRY_VERIFY(GuiFixture::find(verb) != nullptr);
            QCOMPARE(nameless(*GuiFixture::find(verb)->window()), QStringList());
            GuiFixture::click("Cancel");
            QTRY_VERIFY(GuiFixture::find(verb) == nullptr);
        }
    }

    void trayMenu_listsRunningDomainsAndTheirApps() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->add("vault", "stopped");
        m_fixture->open();
        gui::TrayIcon tray(*m_fixture->desk);
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(tray.menu().actions().first()->menu() != nullptr &&
                    tray.menu().actions().first()->menu()->actions().size() > 5);
        QStringList texts;
        for (const QAction* action : tray.menu().actions()) {
            texts.append(action->text());
        }
        QCOMPARE(texts, QStringList({"work: Running", "", "New disposable", "", "Open Bulkhead",
                                     "Quit (domains go on running)"}));
        QCOMPARE(tray.menu().actions().first()->menu()->actions().first()->text(), QString("Calculator"));
        m_fixture->fake->vanish();
        QTRY_COMPARE(tray.menu().actions().first()->text(), QString("The service is not running"));
    }

    void twoHundredDomains_areListed() {
        for (int number = 0; number < 200; ++number) {
            m_fixture->add(QString("d%1").arg(number, 3, 10, QChar('0')), number % 2 == 0 ? "stopped" : "paused");
        }
        m_fixture->open();
        QCOMPARE(list()->model()->rowCount(), 200);
        QCOMPARE(shownNames().last(), QString("d199"));
    }
};

BULKHEAD_GUI_TEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
