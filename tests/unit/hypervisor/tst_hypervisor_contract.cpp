// SPDX-License-Identifier: Apache-2.0
#include "support/contract/hypervisor_contract.hpp"
#include "support/fakes/fake_hypervisor.hpp"

#include <QTest>

using namespace bulkhead;

Q_DECLARE_METATYPE(bulkhead::tests::HypervisorCase)

/// The fake keeps to what the real adapter keeps to (tests/libvirt and tests/e2e run the same cases).
class HypervisorContractTest : public QObject {
    Q_OBJECT

private slots:
    void fake_data() {
        QTest::addColumn<tests::HypervisorCase>("contractCase");
        for (const auto& contractCase : tests::hypervisorContract()) {
            QTest::newRow(contractCase.name) << contractCase;
        }
    }
    void fake() {
        QFETCH(tests::HypervisorCase, contractCase);
        tests::FakeHypervisor hypervisor;
        const auto makeSpec = [] {
            core::InstanceSpec spec;
            spec.id = randomId<InstanceId>();
            spec.memory = 128 * kMiB;
            spec.system.layers = {{"/system.qcow2", core::DiskFormat::Qcow2}};
            spec.kernel = "/vmlinuz";
            spec.initrd = "/initrd.img";
            spec.tokenFile = "/token";
            spec.agentSocket = "/agent.sock";
            spec.emulatorUid = 1'900'000'000;
            spec.emulatorGid = 107;
            return spec;
        };
        const auto wrong = contractCase.run(hypervisor, makeSpec);
        QVERIFY2(wrong.empty(), wrong.c_str());
        QVERIFY(hypervisor.list()->empty());
    }

    void unreachableIsUnavailable() {
        tests::FakeHypervisor hypervisor;
        hypervisor.setReachable(false);
        QCOMPARE(nameOf(hypervisor.list().error().code), nameOf(ErrorCode::Unavailable));
        QCOMPARE(nameOf(hypervisor.destroy(randomId<InstanceId>()).error().code), nameOf(ErrorCode::Unavailable));
        hypervisor.setReachable(true);
        QVERIFY(hypervisor.list());
    }
};

QTEST_APPLESS_MAIN(HypervisorContractTest)
#include "tst_hypervisor_contract.moc"
