// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>

using namespace bulkhead;
using namespace bulkhead::tests;

/// The form over a domain's definition.
class TestSettingsPage : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    void open(const QString& state = "stopped") {
        FakeDomain& work = m_fixture->add("work", state);
        work.description["home-size"] = 1'610'612'736ULL; // 1.5 GiB
        work.description["tags"] = QStringList{"mail"};
        m_fixture->add("zoo", "stopped", "red");
        m_fixture->open();
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        GuiFixture::find<QTabBar>("Pages of this domain")->setCurrentIndex(1);
        QTRY_VERIFY(label() != nullptr);
        QTRY_COMPARE(size()->count(), 2);
    }
    static QComboBox* label() { return GuiFixture::find<QComboBox>("Label"); }
    static QComboBox* size() { return GuiFixture::find<QComboBox>("Size"); }
    static QSpinBox* home() { return GuiFixture::find<QSpinBox>("Size of the home disk"); }
    static QLineEdit* tags() { return GuiFixture::find<QLineEdit>("Tags"); }
    static QPushButton* applyButton() { return GuiFixture::find<QPushButton>("Apply the changed settings"); }
    static QPushButton* revertButton() { return GuiFixture::find<QPushButton>("Revert the changed settings"); }
    static void choose(QComboBox* box, const QString& data) { box->setCurrentIndex(box->findData(data)); }
    FakeDomain& work() { return *m_fixture->fake->domain("work"); }

private Q_SLOTS:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void form_showsWhatTheDomainIs() {
        open();
        QCOMPARE(label()->currentText(), QString("blue"));
        QVERIFY2(size()->currentText().startsWith("small: 1"), qPrintable(size()->currentText()));
        QVERIFY(size()->itemText(0).contains("large: 4"));
        QCOMPARE(home()->text(), QString("1.5 GiB"));
        QCOMPARE(tags()->text(), QString("mail"));
        QVERIFY(!applyButton()->isEnabled());
        QVERIFY(!revertButton()->isEnabled());
        GuiFixture::click("Copy: Path of the definition");
        QCOMPARE(QGuiApplication::clipboard()->text(), QString("/var/lib/bulkhead/domains/1000/work.toml"));
    }

    void apply_sendsOnlyWhatWasChanged() {
        open();
        choose(label(), "green");
        tags()->setText("mail, private");
        home()->setValue(3);
        QVERIFY(applyButton()->isEnabled());
        GuiFixture::click("Apply the changed settings");
        QTRY_VERIFY(GuiFixture::says("Saved."));
        QCOMPARE(work().lastChanges,
                 QVariantMap({{"label", "green"}, {"tags", QStringList{"mail", "private"}}, {"home-size", "3GiB"}}));
        QVERIFY(!applyButton()->isEnabled());
        QCOMPARE(m_fixture->row("work")->info.label, QString("green"));
        QCOMPARE(home()->minimum(), 3);
    }

    void size_ofOneThatRuns_isSaidToWait() {
        open("running");
        QVERIFY(!home()->isEnabled());
        QVERIFY(home()->accessibleDescription().contains("while the domain is stopped"));
        choose(size(), "large");
        GuiFixture::click("Apply the changed settings");
        QTRY_VERIFY(GuiFixture::says("Saved. It takes effect at the next start."));
        QTRY_VERIFY(size()->accessibleDescription().contains("large takes effect at its next start"));
        QCOMPARE(size()->currentData().toString(), QString("large"));
        QVERIFY(!applyButton()->isEnabled());
    }

    void sound_isSwitchedOnForTheNextStart() {
        open("running");
        auto* sound = GuiFixture::find<QComboBox>("Sound");
        QVERIFY(sound != nullptr);
        QCOMPARE(sound->currentIndex(), -1); // of a daemon that does not say
        QVERIFY(!applyButton()->isEnabled());
        work().description["audio"] = "off";
        m_fixture->fake->announce();
        QTRY_COMPARE(sound->currentData().toString(), QString("off"));
        QVERIFY(!applyButton()->isEnabled());
        QVERIFY(sound->accessibleDescription().contains("no microphone"));
        choose(sound, "out");
        GuiFixture::click("Apply the changed settings");
        QTRY_COMPARE(work().lastChanges, QVariantMap({{"audio", "out"}}));
        QTRY_VERIFY(sound->accessibleDescription().contains("next start"));
        QCOMPARE(sound->currentData().toString(), QString("out"));
        QVERIFY(!applyButton()->isEnabled());
    }

    void refusal_standsAtItsField() {
        open();
        tags()->setText("Mail");
        m_fixture->fake->failNext("org.bulkhead1.Error.InvalidArgument", "tags: \"Mail\" is not a tag name",
                                  "SetDefinition");
        GuiFixture::click("Apply the changed settings");
        QTRY_VERIFY(GuiFixture::says("\"Mail\" is not a tag name."));
        QTRY_VERIFY(tags()->hasFocus());
        QVERIFY(tags()->accessibleDescription().contains("not a tag name"));
        QCOMPARE(tags()->text(), QString("Mail"));
        QVERIFY(applyButton()->isEnabled());
        tags()->setText("mail, x");
        QVERIFY(!GuiFixture::says("not a tag name"));
    }

    void otherFailure_standsAboveTheForm() {
        open();
        choose(label(), "red");
        m_fixture->fake->failNext("org.bulkhead1.Error.NoSpace", "the disk is full", "SetDefinition");
        GuiFixture::click("Apply the changed settings");
        QTRY_VERIFY(GuiFixture::says("The disk is full."));
        QCOMPARE(label()->currentText(), QString("red"));
    }

    void revert_putsBackWhatItIs() {
        open();
        choose(label(), "red");
        choose(size(), "large");
        home()->setValue(9);
        tags()->clear();
        GuiFixture::click("Revert the changed settings");
        QCOMPARE(label()->currentText(), QString("blue"));
        QCOMPARE(size()->currentData().toString(), QString("small"));
        QCOMPARE(home()->text(), QString("1.5 GiB"));
        QCOMPARE(tags()->text(), QString("mail"));
        QVERIFY(!revertButton()->isEnabled());
    }

    void changesFromElsewhere_leaveWhatIsEdited() {
        open();
        tags()->setText("mine");
        work().description["label"] = "purple";
        work().description["tags"] = QStringList{"theirs"};
        m_fixture->fake->announce();
        QTRY_COMPARE(label()->currentText(), QString("purple"));
        QCOMPARE(tags()->text(), QString("mine"));
        GuiFixture::click("Revert the changed settings");
        QCOMPARE(tags()->text(), QString("theirs"));
    }

    void anotherDomain_startsAfresh() {
        open();
        tags()->setText("mine");
        m_fixture->window->chooseDomain(GuiFixture::path("zoo"));
        QTRY_COMPARE(label()->currentText(), QString("red"));
        QCOMPARE(tags()->text(), QString());
        QVERIFY(!applyButton()->isEnabled());
        QCOMPARE(home()->text(), QString("The template's own size"));
    }

    void unknownLabel_isShownAndKept() {
        open();
        work().description["label"] = "pink";
        m_fixture->fake->announce();
        QTRY_COMPARE(label()->placeholderText(), QString("pink"));
        QCOMPARE(label()->currentIndex(), -1);
        QVERIFY(!applyButton()->isEnabled());
        choose(label(), "blue");
        GuiFixture::click("Apply the changed settings");
        QTRY_COMPARE(work().lastChanges, QVariantMap({{"label", "blue"}}));
    }

    void administratorsDomain_cannotBeChanged() {
        open();
        work().description["managed"] = true;
        m_fixture->fake->announce();
        QTRY_VERIFY(GuiFixture::says("An administrator defines this domain"));
        for (QWidget* field : std::initializer_list<QWidget*>{label(), size(), home(), tags(), applyButton()}) {
            QVERIFY(!field->isEnabled());
        }
    }

    void disposable_hasNoForm() {
        m_fixture->add("disp-1", "running", "gray", "disposable");
        open();
        m_fixture->window->chooseDomain(GuiFixture::path("disp-1"));
        QTRY_VERIFY(GuiFixture::says("A disposable has no definition"));
        QVERIFY(label() == nullptr);
    }

    /// From the tab to Apply without the mouse.
    void keyboardAlone() {
        open();
        GuiFixture::find<QTabBar>("Pages of this domain")->setFocus();
        m_fixture->window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_fixture->window.get()));
        QStringList order;
        const auto tabOn = [&] {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            order.append(QApplication::focusWidget()->accessibleName());
        };
        tabOn();
        QCOMPARE(order.last(), QString("Label"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Down);
        QCOMPARE(label()->currentText(), QString("purple"));
        for (int steps = 0; steps < 8 && !order.contains("Revert the changed settings"); ++steps) {
            tabOn();
        }
        QCOMPARE(order, (QStringList{"Label", "Size", "Size of the home disk", "Sound", "Tags",
                                     "Apply the changed settings", "Revert the changed settings"}));
        tags()->setFocus();
        QTest::keyClick(tags(), Qt::Key_Return);
        QTRY_COMPARE(work().lastChanges, QVariantMap({{"label", "purple"}}));
    }
};

BULKHEAD_GUI_TEST_MAIN(TestSettingsPage)
#include "tst_settings_page.moc"
