// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include <QPushButton>

#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::tests;

/// Somebody who has no domain.
class TestFirstRun : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;

    void setFindings() {
        const client::VariantMapList findings{{{"check", "memory"}, {"status", "ok"}, {"text", "16 GiB"}, {"fix", ""}},
                                              {{"check", "virtualization"},
                                               {"status", "warning"},
                                               {"text", "/dev/kvm boots no guest; domains are emulated, which is slow"},
                                               {"fix", "switch on virtualization in the firmware"}},
                                              {{"check", "disk"},
                                               {"status", "problem"},
                                               {"text", "2 GiB are free, 6 are needed"},
                                               {"fix", "sudo apt-get clean\nsudo journalctl --vacuum-size=100M"}}};
        m_fixture->fake->jobResult = {{"findings", QVariant::fromValue(findings)}};
    }

private slots:
    void init() { m_fixture = std::make_unique<GuiFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void findings_areShownWithTheirFixes() {
        setFindings();
        m_fixture->open();
        QTRY_VERIFY(GuiFixture::says("1 of 3 checks are well"));
        QVERIFY(GuiFixture::says("disk: 2 GiB are free, 6 are needed"));
        QVERIFY(GuiFixture::says("sudo apt-get clean"));
        QVERIFY(GuiFixture::says("sudo journalctl --vacuum-size=100M"));
        QVERIFY(!GuiFixture::says("16 GiB"));
    }

    void firstThree_areCreatedAtOneClick() {
        setFindings();
        m_fixture->open();
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Create browser, work and vault") != nullptr);
        QTRY_VERIFY(GuiFixture::find<QPushButton>("Create browser, work and vault")->isEnabled());
        GuiFixture::click("Create browser, work and vault");
        QTRY_COMPARE(m_fixture->fake->domainNames(), QStringList({"browser", "vault", "work"}));
        QCOMPARE(m_fixture->fake->domain("vault")->description["kind"].toString(), QString("app"));
        QCOMPARE(m_fixture->fake->lastCreateOptions["template"].toString(), QString("desktop"));
        m_fixture->fake->announce();
        QTRY_COMPARE(m_fixture->desk->domains.rowCount(), 3);
        QTRY_VERIFY(!GuiFixture::says("Welcome to Bulkhead"));
    }

    void firstThree_needATemplate() {
        setFindings();
        m_fixture->fake->templates = {GuiFixture::templateMap("desktop", false)};
        m_fixture->open();
        QTRY_VERIFY(GuiFixture::says("desktop: not built yet"));
        QVERIFY(!GuiFixture::find<QPushButton>("Create browser, work and vault")->isEnabled());
        if (::geteuid() == 0) {
            FakeJob& job = m_fixture->fake->prepareJob();
            GuiFixture::click("Build template desktop");
            QTRY_VERIFY(job.asked > 0);
            m_fixture->fake->templates = {GuiFixture::templateMap("desktop", true)};
            job.finish("succeeded");
            QTRY_VERIFY(GuiFixture::find<QPushButton>("Create browser, work and vault")->isEnabled());
        } else {
            QVERIFY(GuiFixture::says("sudo bulkhead template build desktop"));
        }
    }

    void failureHalfWay_saysWhichAndGoesOnLater() {
        setFindings();
        m_fixture->add("browser", "stopped");
        m_fixture->fake->templates = {GuiFixture::templateMap("desktop", true)};
        m_fixture->open();
        m_fixture->fake->removeDomain("browser");
        QTRY_VERIFY(GuiFixture::says("Welcome to Bulkhead"));
        QTRY_COMPARE(m_fixture->desk->jobs.rowCount(), 0);
        m_fixture->fake->failNext("org.bulkhead1.Error.HostFailure", "home disk of domain \"browser\": no space left",
                                  "CreateDomain");
        GuiFixture::click("Create browser, work and vault");
        QTRY_VERIFY(GuiFixture::says("browser was not created: Home disk of domain \"browser\": no space left."));
        QVERIFY(GuiFixture::find<QPushButton>("Create browser, work and vault")->isEnabled());
        GuiFixture::click("Create browser, work and vault");
        QTRY_COMPARE(m_fixture->fake->domainNames().size(), 3);
    }
};

BULKHEAD_GUI_TEST_MAIN(TestFirstRun)
#include "tst_first_run.moc"
