// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/search/search_field.hpp"
#include "gui/tray_icon.hpp"

#include <QLineEdit>
#include <QMenu>
#include <QPalette>
#include <QPushButton>
#include <QStyle>
#include <QStyleFactory>
#include <QTabBar>
#include <QToolButton>
#include <QTreeWidget>

using namespace bulkhead;
using namespace bulkhead::tests;

/// Pictures of each page, light and dark, for people to look at. A picture that is all of one colour fails.
class TestTrayScreens : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    static QPalette darkPalette() {
        const QColor window(0x2b, 0x2d, 0x30);
        QPalette palette(QColor(0x3a, 0x3d, 0x41), window); // with the shades that belong to them
        const QColor base(0x1f, 0x21, 0x23);
        const QColor text(0xe8, 0xea, 0xed);
        palette.setColor(QPalette::Window, window);
        palette.setColor(QPalette::WindowText, text);
        palette.setColor(QPalette::Base, base);
        palette.setColor(QPalette::AlternateBase, QColor(0x33, 0x36, 0x3a));
        palette.setColor(QPalette::Text, text);
        palette.setColor(QPalette::Button, QColor(0x3a, 0x3d, 0x41));
        palette.setColor(QPalette::ButtonText, text);
        palette.setColor(QPalette::ToolTipBase, window);
        palette.setColor(QPalette::ToolTipText, text);
        palette.setColor(QPalette::PlaceholderText, QColor(0x9a, 0x9f, 0xa6));
        palette.setColor(QPalette::Highlight, QColor(0x3d, 0x7d, 0xd6));
        palette.setColor(QPalette::HighlightedText, Qt::white);
        for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
            palette.setColor(QPalette::Disabled, role, QColor(0x80, 0x84, 0x8a));
        }
        return palette;
    }

    void keep(QWidget* widget, const QString& name) {
        QCoreApplication::processEvents();
        const QPixmap picture = widget->grab();
        const QString theme = QApplication::palette().color(QPalette::Window).lightness() < 128 ? "dark" : "light";
        QVERIFY(picture.save(GuiFixture::artefact("tray-" + name + "-" + theme + ".png")));
        const QImage image = picture.toImage();
        QSet<QRgb> colours;
        for (int x = 0; x < image.width(); x += 3) {
            for (int y = 0; y < image.height(); y += 3) {
                colours.insert(image.pixel(x, y));
            }
        }
        QVERIFY2(colours.size() > 16, "the picture is empty");
    }

    void fill() {
        FakeDomain& browser = m_fixture->add("browser", "running", "red");
        m_fixture->add("mail", "stopped", "orange");
        m_fixture->add("work", "running", "blue");
        FakeDomain& vault = m_fixture->add("vault", "failed", "black");
        m_fixture->add("untrusted-downloads", "suspended", "yellow");
        m_fixture->add("disp-3fa2c81b", "running", "gray", "disposable");
        m_fixture->add("disp-91d0e6aa", "starting", "gray", "disposable");
        browser.status["home-available"] = 200'000'000ULL;
        vault.description["reason"] =
            "vault: start: 1 GiB of memory is asked for and 0.4 GiB is free; stop another domain first";
        browser.description["home-size"] = 4'294'967'296ULL;
        browser.description["acceleration"] = "emulation";
        browser.description["template-version"] = "3";
        browser.description["update-available"] = true;
        browser.description["started-at"] = 1'790'000'000LL;
        browser.description["tags"] = QStringList{"web"};
        browser.description["audio"] = "out";
        browser.description["restart-needed"] = true;
        browser.description["next-size"] = "large";
    }

    static QAction* more(const QString& part) {
        for (QAction* action : GuiFixture::find<QToolButton>("More to do with this domain")->menu()->actions()) {
            if (action->text().remove('&').contains(part)) {
                return action;
            }
        }
        return nullptr;
    }

    /// What is there of snapshots, in the domain "browser" and in one that is suspended.
    void snapshots() {
        QWidget* window = m_fixture->window.get();
        m_fixture->window->chooseDomain(GuiFixture::path("untrusted-downloads"));
        keep(window, "suspended");

        m_fixture->window->chooseDomain(GuiFixture::path("browser"));
        FakeBulkhead& fake = *m_fixture->fake;
        fake.addSnapshot("1a2b3c4d-0000-4000-8000-000000000001", "browser",
                         {{"kind", "disk"}, {"label", "clean, before the first login"}, {"pinned", true}});
        fake.addSnapshot("2b3c4d5e-0000-4000-8000-000000000002", "browser",
                         {{"created-at", 1796000000LL}, {"reason", "before-revert"}, {"size-on-disk", 734003200ULL}});
        fake.addSnapshot("3c4d5e6f-0000-4000-8000-000000000003", "browser",
                         {{"created-at", 1796100000LL}, {"reason", "before the plugin that a forum told of"}});
        fake.domain("browser")->description["head"] = "2b3c4d5e-0000-4000-8000-000000000002";
        fake.announce();
        QTRY_VERIFY(!m_fixture->row("browser")->info.head.isEmpty());
        fake.jobResult = {{"snapshot", "3c4d5e6f-0000-4000-8000-000000000003"}};
        more("Take a snapshot")->trigger();
        QTRY_VERIFY(GuiFixture::says("is taken"));
        keep(window, "snapshot-taken");

        auto* menu = GuiFixture::find<QToolButton>("More to do with this domain")->menu();
        menu->popup({0, 0});
        keep(menu, "more");
        menu->hide();

        more("Revert to")->trigger();
        QTRY_VERIFY(GuiFixture::find("Revert browser") != nullptr);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Revert browser")->isEnabled());
        keep(GuiFixture::find("Revert browser")->window(), "revert");
        GuiFixture::click("Cancel");
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        more("Revert to")->trigger();
        QTRY_VERIFY(GuiFixture::says("has no snapshots yet"));
        keep(GuiFixture::find("Revert work")->window(), "revert-none");
        GuiFixture::click("Cancel");
        m_fixture->window->chooseDomain(GuiFixture::path("browser"));
        more("Fork")->trigger();
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Name") != nullptr);
        GuiFixture::find<QLineEdit>("Name")->setText("browser-trial");
        keep(GuiFixture::find("Create domain")->window(), "fork");
        GuiFixture::click("Cancel");
        QTRY_VERIFY(GuiFixture::find("Create domain") == nullptr);
    }

private slots:
    void initTestCase() { QApplication::setStyle(QStyleFactory::create("Fusion")); }
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void pages_data() {
        QTest::addColumn<bool>("isDark");
        QTest::newRow("light") << false;
        QTest::newRow("dark") << true;
    }
    void pages() {
        QFETCH(bool, isDark);
        QApplication::setPalette(isDark ? darkPalette() : QApplication::style()->standardPalette());
        fill();
        m_fixture->open("/bin/true");
        QWidget* window = m_fixture->window.get();
        FakeDomain& browser = *m_fixture->fake->domain("browser");
        QTRY_VERIFY(!browser.sessions.empty());
        GuiFixture::tellApps(browser);
        QTRY_VERIFY(GuiFixture::find("Apps") != nullptr);
        QTRY_VERIFY(gui::memoryShare(*m_fixture->row("browser")) > 0);
        keep(window, "apps");

        GuiFixture::find<QTabBar>("Pages of this domain")->setCurrentIndex(1);
        keep(window, "settings");
        m_fixture->window->chooseDomain(GuiFixture::path("mail"));
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Tags")->isEnabled());
        GuiFixture::find<QLineEdit>("Tags")->setText("mail, Private");
        m_fixture->fake->failNext(
            "org.bulkhead1.Error.InvalidArgument",
            "tags: \"Private\" is not a tag name; use a lower-case letter, then up to 30 lower-case "
            "letters, digits or dashes",
            "SetDefinition");
        GuiFixture::click("Apply the changed settings");
        QTRY_VERIFY(GuiFixture::says("is not a tag name"));
        keep(window, "settings-refused");
        m_fixture->window->chooseDomain(GuiFixture::path("browser"));
        GuiFixture::find<QTabBar>("Pages of this domain")->setCurrentIndex(0);

        m_fixture->window->chooseDomain(GuiFixture::path("vault"));
        keep(window, "failed");

        m_fixture->window->chooseDomain(GuiFixture::path("mail"));
        FakeJob& job = m_fixture->fake->prepareJob();
        job.description["phase"] = "waiting for the agent";
        job.description["fraction"] = 0.6;
        GuiFixture::click("Start mail");
        QTRY_VERIFY(GuiFixture::says("waiting for the agent"));
        keep(window, "job");
        job.finish("succeeded");

        QTest::keyClick(window, Qt::Key_K, Qt::ControlModifier);
        QTest::keyClicks(QApplication::focusWidget(), "br");
        keep(window, "search");
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);

        FakeBulkhead& fake = *m_fixture->fake;
        fake.deleted = {{{"id", "11111111-0000-4000-8000-000000000001"},
                         {"name", "mail-2024"},
                         {"deleted-at", 1'796'000'000LL},
                         {"goes-at", 1'796'604'800LL},
                         {"size-on-disk", 734'003'200ULL}},
                        {{"id", "22222222-0000-4000-8000-000000000002"},
                         {"name", "work"},
                         {"deleted-at", 1'795'900'000LL},
                         {"goes-at", 1'796'504'800LL},
                         {"size-on-disk", 73'400'320ULL}}};
        GuiFixture::click("Deleted domains");
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Restore") != nullptr);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Restore")->isEnabled());
        keep(GuiFixture::find("Restore")->window(), "deleted");
        auto* gone = GuiFixture::find<QTreeWidget>("Deleted domains, the last one first");
        gone->setCurrentItem(gone->topLevelItem(1));
        keep(GuiFixture::find("Restore")->window(), "deleted-taken");
        GuiFixture::click("Close");
        QTRY_VERIFY(GuiFixture::find("Restore") == nullptr);

        fake.setState("work", "paused");
        QTRY_COMPARE(m_fixture->row("work")->info.state, QString("paused"));
        m_fixture->window->chooseDomain(GuiFixture::path("work"));
        keep(window, "paused");
        fake.setState("work", "running");
        m_fixture->window->chooseDomain(GuiFixture::path("mail"));

        GuiFixture::click("New domain");
        QTRY_VERIFY(GuiFixture::find<QLineEdit>("Name") != nullptr);
        GuiFixture::find<QLineEdit>("Name")->setText("My work");
        keep(GuiFixture::find("Create domain")->window(), "create");
        GuiFixture::click("Cancel");

        QTRY_COMPARE(m_fixture->row("mail")->task, gui::Task::None);
        QCOMPARE(m_fixture->window->chosenDomain(), GuiFixture::path("mail"));
        for (QAction* action : GuiFixture::find<QToolButton>("More to do with this domain")->menu()->actions()) {
            if (action->text().contains("emove")) {
                action->trigger();
            }
        }
        QTRY_VERIFY(GuiFixture::find("Remove mail") != nullptr);
        keep(GuiFixture::find("Remove mail")->window(), "remove");
        GuiFixture::click("Cancel");

        snapshots();

        gui::TrayIcon tray(*m_fixture->desk);
        QTRY_VERIFY(tray.menu().actions().size() > 5);
        tray.menu().popup({0, 0});
        keep(&tray.menu(), "menu");
        tray.menu().hide();

        m_fixture->fake->vanish();
        QTRY_VERIFY(GuiFixture::says("Bulkhead’s service is not running"));
        keep(window, "unreachable");
    }

    void firstRun_data() { pages_data(); }
    void firstRun() {
        QFETCH(bool, isDark);
        QApplication::setPalette(isDark ? darkPalette() : QApplication::style()->standardPalette());
        const client::VariantMapList findings{{{"check", "memory"}, {"status", "ok"}, {"text", "16 GiB"}, {"fix", ""}},
                                              {{"check", "virtualization"},
                                               {"status", "warning"},
                                               {"text", "/dev/kvm boots no guest; domains are emulated, which is slow"},
                                               {"fix", "switch on virtualization in the firmware"}}};
        m_fixture->fake->jobResult = {{"findings", QVariant::fromValue(findings)}};
        m_fixture->open();
        QTRY_VERIFY(GuiFixture::says("1 of 2 checks are well"));
        keep(m_fixture->window.get(), "first-run");
    }
};

BULKHEAD_GUI_TEST_MAIN(TestTrayScreens)
#include "tst_tray_screens.moc"
