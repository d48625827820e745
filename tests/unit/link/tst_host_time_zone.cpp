// SPDX-License-Identifier: Apache-2.0
#include "link/host_time_zone.hpp"
#include "process/poller.hpp"

#include <QSemaphore>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>

using namespace bulkhead;
using namespace bulkhead::link;
namespace fs = std::filesystem;

class TestHostTimeZone : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_folder;
    fs::path m_etc;

    /// As timedatectl does it.
    void set(const std::string& target) const {
        fs::remove(m_etc / "new");
        fs::create_symlink(target, m_etc / "new");
        fs::rename(m_etc / "new", m_etc / "localtime");
    }

private slots:
    void init() {
        m_folder = std::make_unique<QTemporaryDir>();
        m_etc = m_folder->path().toStdString();
    }

    void name_data() {
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("name");
        QTest::newRow("absolute") << "/usr/share/zoneinfo/Europe/Berlin"
                                  << "Europe/Berlin";
        QTest::newRow("relative") << "../usr/share/zoneinfo/Etc/GMT+5"
                                  << "Etc/GMT+5";
        QTest::newRow("out of the folder") << "/usr/share/zoneinfo/../passwd"
                                           << "";
        QTest::newRow("elsewhere") << "/srv/clock"
                                   << "";
    }
    void name() {
        QFETCH(QString, target);
        set(target.toStdString());
        QTEST(QString::fromStdString(hostTimeZone(m_etc)), "name");
    }
    void file_namesItWhereThereIsNoLink() {
        QCOMPARE(hostTimeZone(m_etc), std::string());
        std::ofstream(m_etc / "localtime") << "TZif2";
        QCOMPARE(hostTimeZone(m_etc), std::string());
        std::ofstream(m_etc / "timezone") << "Asia/Tokyo\n";
        QCOMPARE(hostTimeZone(m_etc), std::string("Asia/Tokyo"));
    }
    void changes_areTold() {
        set("/usr/share/zoneinfo/UTC");
        process::Poller poller;
        QSemaphore told;
        const HostTimeZoneWatch watch(
            poller, [&] { told.release(); }, m_etc);
        std::ofstream(m_etc / "motd") << "not a time zone";
        set("/usr/share/zoneinfo/Europe/Berlin");
        QVERIFY(told.tryAcquire(1, 10'000));
        set("/usr/share/zoneinfo/Europe/Berlin"); // the same again
        set("/usr/share/zoneinfo/Asia/Tokyo");
        QVERIFY(told.tryAcquire(1, 10'000));
        QCOMPARE(told.available(), 0);
    }
    void noFolder_isNoFailure() {
        process::Poller poller;
        const HostTimeZoneWatch watch(
            poller, [] {}, m_etc / "absent");
    }
};

QTEST_GUILESS_MAIN(TestHostTimeZone)
#include "tst_host_time_zone.moc"
