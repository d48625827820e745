// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "client/domain_name.hpp"

#include <QComboBox>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QSpinBox>

using namespace bulkhead;
using namespace bulkhead::tests;

/// The form for a new domain, with the mouse and without.
class TestCreateDialog : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    void open() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        GuiFixture::click("New domain");
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Name") != nullptr);
    }

private slots:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void names_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("problem"); // part of it; empty: it is a good name
        QTest::newRow("good") << "a-b2"
                              << "";
        QTest::newRow("31 characters") << QString(31, 'a') << "";
        QTest::newRow("32 characters") << QString(32, 'a') << "at most 31";
        QTest::newRow("upper case") << "Work"
                                    << "lower-case letter";
        QTest::newRow("digit first") << "2work"
                                     << "begins with";
        QTest::newRow("dash first") << "-work"
                                    << "begins with";
        QTest::newRow("space") << "my work"
                               << "only";
        QTest::newRow("umlaut") << QString::fromUtf8("b\xc3\xbcro") << "only";
        QTest::newRow("reserved") << "dom0"
                                  << "reserved";
        QTest::newRow("reserved host") << "host"
                                       << "reserved";
        QTest::newRow("of disposables") << "disp-1"
                                        << "disposables";
        QTest::newRow("taken") << "work"
                               << "already";
    }
    void names() {
        QFETCH(QString, name);
        QFETCH(QString, problem);
        open();
        auto* field = GuiFixture::find<QLineEdit>("Name");
        auto* create = GuiFixture::find<QPushButton>("Create domain");
        QVERIFY(!create->isEnabled());
        field->setText(name);
        QCOMPARE(create->isEnabled(), problem.isEmpty());
        QVERIFY2(problem.isEmpty() ? field->accessibleDescription().isEmpty()
                                   : field->accessibleDescription().contains(problem),
                 qPrintable(field->accessibleDescription()));
        QVERIFY(problem.isEmpty() || GuiFixture::says(problem));
    }

    void create_sendsWhatWasChosen() {
        open();
        GuiFixture::find<QLineEdit>("Name")->setText("mail");
        auto* templates = GuiFixture::find<QComboBox>("Template");
        QTRY_COMPARE(templates->count(), 2);
        QCOMPARE(templates->currentText(), QString("desktop"));
        QCOMPARE(templates->itemText(1), QString("minimal (not built yet)"));
        auto* size = GuiFixture::find<QComboBox>("Size");
        QCOMPARE(size->count(), 2);
        QVERIFY2(size->currentText().startsWith("small: 1"), qPrintable(size->currentText()));
        size->setCurrentIndex(size->findData("large"));
        auto* label = GuiFixture::find<QComboBox>("Label");
        label->setCurrentIndex(label->findData("green"));
        GuiFixture::find<QSpinBox>("Size of the home disk")->setValue(3);
        GuiFixture::click("Create domain");
        QTRY_COMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("mail"));
        QCOMPARE(m_fixture->fake->lastCreateOptions.value("template").toString(), QString("desktop"));
        QCOMPARE(m_fixture->fake->lastCreateOptions.value("size").toString(), QString("large"));
        QCOMPARE(m_fixture->fake->lastCreateOptions.value("label").toString(), QString("green"));
        QCOMPARE(m_fixture->fake->lastCreateOptions.value("home-size").toString(), QString("3GiB"));
        QVERIFY(GuiFixture::find<QLineEdit>("Name") == nullptr);
    }

    void refusal_staysInTheForm() {
        open();
        GuiFixture::find<QLineEdit>("Name")->setText("mail");
        m_fixture->fake->failNext("org.bulkhead1.Error.LimitExceeded", "you have 64 domains already; remove one first",
                                  "CreateDomain");
        GuiFixture::click("Create domain");
        QTRY_VERIFY(GuiFixture::says("You have 64 domains already; remove one first."));
        QCOMPARE(GuiFixture::find<QLineEdit>("Name")->text(), QString("mail"));
        QVERIFY(GuiFixture::find<QPushButton>("Create domain")->isEnabled());
    }

    /// Create, start and stop a domain without touching the mouse.
    void keyboardAlone() {
        m_fixture->add("work", "stopped");
        m_fixture->open();
        QWidget* window = m_fixture->window.get();
        QTest::keyClick(window, Qt::Key_N, Qt::ControlModifier);
        QTRY_VERIFY(QApplication::activeModalWidget() != nullptr);
        QTRY_VERIFY(qobject_cast<QLineEdit*>(QApplication::focusWidget()) != nullptr);
        QTRY_COMPARE(GuiFixture::find<QComboBox>("Template")->count(), 2);
        QTest::keyClicks(QApplication::focusWidget(), "mail");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_COMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("mail"));
        QTRY_VERIFY(QApplication::activeModalWidget() == nullptr);
        m_fixture->fake->setState("mail", "stopped");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Start mail") != nullptr);

        // By Tab from the list to the button of the domain.
        auto* list = GuiFixture::find<QListView>("Domains");
        list->setFocus();
        m_fixture->window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(window));
        for (int steps = 0; steps < 10 && QApplication::focusWidget()->accessibleName() != "Start mail"; ++steps) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
        }
        QCOMPARE(QApplication::focusWidget()->accessibleName(), QString("Start mail"));
        FakeJob& starting = m_fixture->fake->prepareJob();
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Space);
        QTRY_COMPARE(m_fixture->fake->domain("mail")->calls.count("Start "), 1);
        m_fixture->fake->setState("mail", "running");
        starting.finish("succeeded");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Stop mail") != nullptr);

        QTest::keyClick(window, Qt::Key_K, Qt::ControlModifier);
        QTest::keyClicks(QApplication::focusWidget(), "stop mail");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_COMPARE(m_fixture->fake->domain("mail")->calls.count("Stop "), 1);
    }
};

BULKHEAD_GUI_TEST_MAIN(TestCreateDialog)
#include "tst_create_dialog.moc"
