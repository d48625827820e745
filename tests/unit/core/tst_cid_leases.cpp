// SPDX-License-Identifier: Apache-2.0
// AF_VSOCK addresses: from our range, never twice within a boot, not those that somebody has.
#include "core/services/cid_leases.hpp"
#include "process/boot_counter.hpp"
#include "support/fakes/fake_host.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <set>

using namespace bulkhead;
using namespace bulkhead::core;

namespace {

CidLeases leasesOver(BootCounter& counter, std::uint32_t begin = 7, std::set<std::uint32_t> taken = {}) {
    return {counter, [taken = std::move(taken)](std::uint32_t cid) { return !taken.contains(cid); },
            [begin] { return begin; }};
}

} // namespace

class TestCidLeases : public QObject {
    Q_OBJECT

private slots:
    void numbers_riseAndGoOnAfterARestart() {
        tests::FakeBootCounter counter;
        std::set<std::uint32_t> seen;
        for (int daemon = 0; daemon < 3; ++daemon) {
            // A restarted one would begin elsewhere if it forgot.
            auto leases = leasesOver(counter, 7 + 1000U * static_cast<unsigned>(daemon));
            for (int i = 0; i < 5; ++i) {
                QVERIFY(seen.insert(*leases.lease()).second);
            }
        }
        QCOMPARE(*seen.begin(), CidLeases::kFirst + 7);
        QCOMPARE(*seen.rbegin(), CidLeases::kFirst + 7 + 14);
    }

    void begin_isAnywhereInTheRange_andWrapsAround() {
        tests::FakeBootCounter counter;
        auto leases = leasesOver(counter, 0xffff'ffffU);
        const auto first = leases.lease();
        QVERIFY(*first >= CidLeases::kFirst && *first < CidLeases::kFirst + CidLeases::kCount);
        tests::FakeBootCounter last;
        auto wrapping = leasesOver(last, CidLeases::kCount - 1);
        QCOMPARE(*wrapping.lease(), CidLeases::kFirst + CidLeases::kCount - 1);
        QCOMPARE(*wrapping.lease(), CidLeases::kFirst);
    }

    void takenNumbers_areSkipped() {
        tests::FakeBootCounter counter;
        constexpr auto at = CidLeases::kFirst + 7;
        auto leases = leasesOver(counter, 7, {at, at + 1, at + 3});
        QCOMPARE(*leases.lease(), at + 2);
        QCOMPARE(*leases.lease(), at + 4);
    }

    void somebodyWhoTakesThemAll_isTold() {
        tests::FakeBootCounter counter;
        CidLeases leases(
            counter, [](std::uint32_t) { return false; }, [] { return 0U; });
        const auto refused = leases.lease();
        QCOMPARE(refused.error().code, ErrorCode::LimitExceeded);
        QVERIFY(refused.error().message.find("vhost-vsock") != std::string::npos);
        // The next try looks at others.
        auto later = leasesOver(counter);
        QCOMPARE(*later.lease(), CidLeases::kFirst + CidLeases::kMostTried);
    }

    void usedUpRange_isNotBegunAgain() {
        tests::FakeBootCounter counter;
        counter.value = (std::uint64_t{5} << 32) | (CidLeases::kCount - 1);
        auto leases = leasesOver(counter);
        QCOMPARE(*leases.lease(), CidLeases::kFirst + 4);
        QCOMPARE(leases.lease().error().code, ErrorCode::LimitExceeded);
        QCOMPARE(leases.lease().error().code, ErrorCode::LimitExceeded);
    }

    void numberThatCannotBeRemembered_isNotGiven() {
        tests::FakeBootCounter counter;
        counter.error = Error{ErrorCode::NoSpace, "full"};
        auto leases = leasesOver(counter);
        QCOMPARE(leases.lease().error().code, ErrorCode::NoSpace);
        counter.error.reset();
        counter.value = ~std::uint64_t{0};
        QCOMPARE(leases.lease().error().code, ErrorCode::HostFailure);
    }

    void counterFile_countsWithinItsBoot() {
        const QTemporaryDir folder;
        const std::filesystem::path base = folder.path().toStdString();
        const auto boot = [&](const char* id) { std::ofstream(base / "boot_id") << id << '\n'; };
        const auto counter = [&] { return process::FileBootCounter(base / "counter", base / "boot_id"); };
        boot("one");
        QVERIFY(!counter().read()->has_value());
        QVERIFY(counter().write(41).has_value());
        QVERIFY(counter().write(~std::uint64_t{0}).has_value());
        QCOMPARE(**counter().read(), ~std::uint64_t{0});
        QVERIFY(!std::filesystem::exists(base / "counter.new"));
        boot("two");
        QVERIFY(!counter().read()->has_value());
        QVERIFY(counter().write(3).has_value());
        QCOMPARE(**counter().read(), std::uint64_t{3});
        for (const char* damaged : {"", "two", "two 3", "two x\n", "two 3\nmore\n"}) {
            std::ofstream(base / "counter") << damaged;
            QVERIFY2(!counter().read(), damaged);
        }
        std::filesystem::remove(base / "boot_id");
        QVERIFY(!counter().read());
        QVERIFY(!counter().write(1));
    }
};

QTEST_GUILESS_MAIN(TestCidLeases)
#include "tst_cid_leases.moc"
