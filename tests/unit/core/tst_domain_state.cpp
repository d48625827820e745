// SPDX-License-Identifier: Apache-2.0
#include "core/model/domain.hpp"
#include "core/model/exec_check.hpp"
#include "core/services/uid_leases.hpp"

#include <QTest>

#include <map>
#include <set>

using namespace bulkhead;
using namespace bulkhead::core;

class TestDomainState : public QObject {
    Q_OBJECT

private slots:
    void everyPairIsDecided() {
        using S = DomainState;
        using E = DomainEvent;
        const std::map<std::pair<S, E>, S> allowed{
            {{S::Stopped, E::StartRequested}, S::Starting},   {{S::Failed, E::StartRequested}, S::Starting},
            {{S::Suspended, E::StartRequested}, S::Starting}, {{S::Starting, E::AgentReady}, S::Running},
            {{S::Starting, E::StartFailed}, S::Failed},       {{S::Running, E::StopRequested}, S::Stopping},
            {{S::Paused, E::StopRequested}, S::Stopping},     {{S::Stopping, E::EmulatorGone}, S::Stopped},
            {{S::Starting, E::EmulatorGone}, S::Failed},      {{S::Running, E::EmulatorGone}, S::Failed},
            {{S::Paused, E::EmulatorGone}, S::Failed},        {{S::Running, E::ChannelLost}, S::Failed},
            {{S::Paused, E::ChannelLost}, S::Failed},         {{S::Running, E::PauseRequested}, S::Paused},
            {{S::Paused, E::ResumeRequested}, S::Running},    {{S::Starting, E::StartCancelled}, S::Stopped},
            {{S::Failed, E::FailureDismissed}, S::Stopped},
        };
        for (const S state : {S::Stopped, S::Starting, S::Running, S::Paused, S::Suspended, S::Stopping, S::Failed}) {
            for (const E event :
                 {E::StartRequested, E::AgentReady, E::StartFailed, E::StopRequested, E::EmulatorGone, E::ChannelLost,
                  E::PauseRequested, E::ResumeRequested, E::StartCancelled, E::FailureDismissed}) {
                const auto expected = allowed.find({state, event});
                const auto next = nextState(state, event);
                const std::string row = std::string(nameOf(state)) + " / " + std::string(nameOf(event));
                QVERIFY2(next.has_value() == (expected != allowed.end()), row.c_str());
                if (next) {
                    QVERIFY2(*next == expected->second, row.c_str());
                }
            }
        }
    }

    void names_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("good");
        for (const char* good : {"a", "work", "work-2", "x23456789012345678901234567890b"}) {
            QTest::newRow(good) << good << true;
        }
        for (const char* bad : {"", "Work", "2work", "-x", "a_b", "../x", "host", "dom0", "now", "disp-1",
                                "x234567890123456789012345678901bc", "wörk", "a b", "a\n"}) {
            QTest::newRow(bad) << bad << false;
        }
    }
    void names() {
        QFETCH(QString, name);
        QFETCH(bool, good);
        QCOMPARE(checkDomainName(name.toStdString()).has_value(), good);
    }

    void execRequests_data() {
        QTest::addColumn<int>("words");
        QTest::addColumn<int>("wordLength");
        QTest::addColumn<QString>("environment");
        QTest::addColumn<QString>("cwd");
        QTest::addColumn<bool>("good");
        QTest::newRow("plain") << 2 << 10 << "A=b"
                               << "/tmp" << true;
        QTest::newRow("no command") << 0 << 0 << "A=b"
                                    << "" << false;
        QTest::newRow("empty command") << 1 << 0 << "A=b"
                                       << "" << false;
        QTest::newRow("too many words") << 1025 << 1 << "A=b"
                                        << "" << false;
        QTest::newRow("too long") << 2 << 40000 << "A=b"
                                  << "" << false;
        QTest::newRow("variable without a name") << 1 << 1 << "=b"
                                                 << "" << false;
        QTest::newRow("variable without =") << 1 << 1 << "A"
                                            << "" << false;
        QTest::newRow("relative directory") << 1 << 1 << "A=b"
                                            << "tmp" << false;
    }
    void execRequests() {
        QFETCH(int, words);
        QFETCH(int, wordLength);
        QFETCH(QString, environment);
        QFETCH(QString, cwd);
        QFETCH(bool, good);
        ExecRequest request;
        request.argv.assign(static_cast<std::size_t>(words), std::string(static_cast<std::size_t>(wordLength), 'x'));
        request.environment = {environment.toStdString()};
        request.cwd = cwd.toStdString();
        QCOMPARE(checkExecRequest(request).has_value(), good);
    }

    void uidLeases_neverGiveATakenSlot_andRest() {
        UidLeases leases;
        leases.claim(0);
        std::set<unsigned> taken{0};
        const unsigned first = *leases.lease();
        QVERIFY(taken.insert(first).second);
        leases.release(first);
        QVERIFY(*leases.lease() != first);
        for (unsigned i = 0; i < UidLeases::kSlots - 2; ++i) {
            QVERIFY(leases.lease().has_value());
        }
        const auto none = leases.lease();
        QVERIFY(!none && none.error().code == ErrorCode::LimitExceeded);
        QVERIFY(UidLeases::emulatorUid(1) != UidLeases::channelUid(0));
    }
};

QTEST_APPLESS_MAIN(TestDomainState)
#include "tst_domain_state.moc"
