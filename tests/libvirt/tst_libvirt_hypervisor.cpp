// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "hypervisor/libvirt_hypervisor.hpp"
#include "support/contract/hypervisor_contract.hpp"
#include "test_libvirtd.hpp"

#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <libvirt/libvirt.h>

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace bulkhead;
using hypervisor::LibvirtConnection;
using hypervisor::LibvirtHypervisor;

Q_DECLARE_METATYPE(bulkhead::tests::HypervisorCase)

/// The real adapter over a real libvirtd, whose test driver parses our XML and keeps domains without emulators. A
/// stand-in process with the right arguments and a pid file plays each emulator.
class LibvirtHypervisorTest : public QObject {
    Q_OBJECT

private:
    hypervisor::LibvirtRuntime m_runtime;
    tests::TestLibvirtd m_libvirtd;
    std::unique_ptr<QTemporaryDir> m_pids;
    std::vector<tests::Helper> m_emulators;
    std::unique_ptr<LibvirtConnection> m_connection;
    std::unique_ptr<LibvirtHypervisor> m_hypervisor;

    core::InstanceSpec makeSpec() {
        core::InstanceSpec spec;
        spec.id = randomId<InstanceId>();
        spec.memory = 128 * kMiB;
        spec.system.layers = {{"/s/system.qcow2", core::DiskFormat::Qcow2}, {"/s/base.img", core::DiskFormat::Raw}};
        spec.kernel = "/s/vmlinuz";
        spec.initrd = "/s/initrd.img";
        spec.tokenFile = "/s/token";
        spec.agentSocket = "/s/agent.sock";
        spec.emulatorUid = tests::helperUid();
        spec.emulatorGid = 65534;
        return spec;
    }
    void writePidFile(const InstanceId& id, pid_t pid) {
        QFile file(m_pids->filePath(QString::fromStdString(hypervisor::domainName(id)) + ".pid"));
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        file.write(QByteArray::number(pid));
    }
    core::InstanceSpec makeSpecWithEmulator() {
        auto spec = makeSpec();
        process::ProcessSpec standIn;
        standIn.program = "/bin/sh";
        standIn.arguments = {"-c", "while :; do sleep 1000; done", "-uuid", spec.id.text()};
        standIn.environment = process::toolEnvironment();
        tests::runAsHelper(standIn);
        auto child = process::spawn(standIn);
        if (!child) {
            qFatal("%s", child.error().message.c_str());
        }
        writePidFile(spec.id, child->pid);
        m_emulators.emplace_back(std::move(*child));
        return spec;
    }
    static qsizetype openPidfds() {
        qsizetype count = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code error;
            count += std::filesystem::read_symlink(entry.path(), error) == "anon_inode:[pidfd]" ? 1 : 0;
        }
        return count;
    }
    /// What an admin does with virsh.
    template <class Act> void asAdmin(const Act& act) {
        auto connection = m_connection->acquire();
        QVERIFY(connection);
        act(connection->get());
    }

private slots:
    void initTestCase() {
        // As LibvirtRuntime does; Qt Test has put its own handler in the place since.
        std::signal(SIGPIPE, SIG_IGN);
        QVERIFY2(m_libvirtd.start(), "the test's libvirtd did not come up");
    }
    void init() {
        m_pids = std::make_unique<QTemporaryDir>();
        m_connection = std::make_unique<LibvirtConnection>(m_runtime, m_libvirtd.uri());
        hypervisor::LibvirtHypervisorOptions options;
        options.pidDirectory = m_pids->path().toStdString();
        m_hypervisor = std::make_unique<LibvirtHypervisor>(*m_connection, options);
    }
    void cleanup() {
        if (const auto left = m_hypervisor->list()) {
            QVERIFY(left->empty());
        }
        m_hypervisor.reset();
        m_connection.reset();
        m_emulators.clear();
    }

    void contract_data() {
        QTest::addColumn<tests::HypervisorCase>("contractCase");
        for (const auto& contractCase : tests::hypervisorContract()) {
            QTest::newRow(contractCase.name) << contractCase;
        }
    }
    void contract() {
        QFETCH(tests::HypervisorCase, contractCase);
        const auto wrong = contractCase.run(*m_hypervisor, [this] { return makeSpecWithEmulator(); });
        QVERIFY2(wrong.empty(), wrong.c_str());
    }

    void othersDomainsAreNotOurs() {
        const auto id = randomId<InstanceId>();
        const std::string xml = "<domain type='test'><name>bh-web</name><uuid>" + id.text() +
                                "</uuid><memory>65536</memory><os><type>hvm</type></os></domain>";
        asAdmin([&xml](virConnectPtr connection) {
            virDomainPtr domain = virDomainCreateXML(connection, xml.c_str(), 0);
            QVERIFY(domain);
            virDomainFree(domain);
        });
        const auto all = m_hypervisor->list();
        QVERIFY(all);
        QVERIFY(all->empty());
        QVERIFY(m_hypervisor->destroy(id)); // not ours, so for us it does not exist …
        asAdmin([](virConnectPtr connection) {
            virDomainPtr domain = virDomainLookupByName(connection, "bh-web");
            QVERIFY2(domain, "an admin's domain was destroyed"); // … and stays
            virDomainDestroy(domain);
            virDomainFree(domain);
        });
    }

    void pausedIsSeenAndResumed() {
        const auto spec = makeSpecWithEmulator();
        QVERIFY(m_hypervisor->start(spec));
        asAdmin([&spec](virConnectPtr connection) {
            virDomainPtr domain = virDomainLookupByUUIDString(connection, spec.id.text().c_str());
            QVERIFY(domain);
            QCOMPARE(virDomainSuspend(domain), 0);
            virDomainFree(domain);
        });
        QVERIFY(tests::contract::find(*m_hypervisor, spec.id)->isPaused);
        QVERIFY(!tests::contract::find(*m_hypervisor, spec.id)->isPausedByFullDisk); // an admin's act is left alone
        QVERIFY(m_hypervisor->resume(spec.id));
        QVERIFY(!tests::contract::find(*m_hypervisor, spec.id)->isPaused);
        QVERIFY(m_hypervisor->destroy(spec.id));
    }

    void wrongProcessIsNoEmulator_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("mentions");
        QTest::newRow("no pid file") << "none"
                                     << "no pid file";
        QTest::newRow("a number that was given again") << "self"
                                                       << "no pid file";
        QTest::newRow("garbage in the pid file") << "garbage"
                                                 << "no pid file";
        QTest::newRow("another user") << "user"
                                      << "DAC security driver";
    }
    void wrongProcessIsNoEmulator() {
        QFETCH(QString, kind);
        QFETCH(QString, mentions);
        auto spec = kind == "user" ? makeSpecWithEmulator() : makeSpec();
        if (kind == "self") {
            writePidFile(spec.id, ::getpid());
        } else if (kind == "garbage") {
            writePidFile(spec.id, -1);
        } else if (kind == "user") {
            spec.emulatorUid = 1'900'000'000;
        }
        const auto pid = m_hypervisor->start(spec);
        QVERIFY(!pid);
        QCOMPARE(nameOf(pid.error().code), nameOf(ErrorCode::HostFailure));
        QVERIFY2(QString::fromStdString(pid.error().message).contains(mentions), pid.error().message.c_str());
        // cleanup() sees that nothing is left.
    }

    void nobodyListens() {
        LibvirtConnection nowhere(m_runtime, "test+unix:///default?socket=/nonexistent/libvirt-sock");
        LibvirtHypervisor unreachable(nowhere);
        for (const auto& error :
             {unreachable.list().error(), unreachable.destroy(randomId<InstanceId>()).error(),
              unreachable.resume(randomId<InstanceId>()).error(), unreachable.start(makeSpec()).error()}) {
            QCOMPARE(nameOf(error.code), nameOf(ErrorCode::Unavailable));
            QVERIFY2(error.message.find("is libvirtd running?") != std::string::npos, error.message.c_str());
            QVERIFY2(error.message.find("nonexistent") != std::string::npos, error.message.c_str());
        }
    }

    void killedLibvirtdIsToldAndComesBack() {
        QVERIFY(m_hypervisor->list());
        m_libvirtd.kill();
        const auto gone = m_hypervisor->list();
        QVERIFY(!gone);
        QCOMPARE(nameOf(gone.error().code), nameOf(ErrorCode::Unavailable));
        QVERIFY2(gone.error().message.find("is libvirtd running?") != std::string::npos, gone.error().message.c_str());
        QVERIFY(m_libvirtd.start());
        QVERIFY(m_hypervisor->list());
    }

    /// Each call is the first after the restart, on a connection whose other end is dead.
    void restartBetweenCallsIsNotNoticed_data() {
        QTest::addColumn<QString>("call");
        for (const char* call : {"list", "destroy", "start", "resume"}) {
            QTest::newRow(call) << QString(call);
        }
    }
    void restartBetweenCallsIsNotNoticed() {
        QFETCH(QString, call);
        QVERIFY(m_hypervisor->list());
        m_libvirtd.kill();
        QVERIFY(m_libvirtd.start());
        if (call == "list") {
            QVERIFY(m_hypervisor->list());
        } else if (call == "destroy") {
            QVERIFY(m_hypervisor->destroy(randomId<InstanceId>()));
        } else if (call == "start") {
            const auto spec = makeSpecWithEmulator();
            const auto pid = m_hypervisor->start(spec);
            QVERIFY2(pid, pid ? "" : pid.error().message.c_str());
            QVERIFY(m_hypervisor->destroy(spec.id));
        } else {
            QCOMPARE(nameOf(m_hypervisor->resume(randomId<InstanceId>()).error().code), nameOf(ErrorCode::NotFound));
        }
    }

    /// libvirt learns late of the end (here: not at all), the pidfd tells at once.
    void destroyReturnsWhenTheProcessEnds() {
        const auto spec = makeSpecWithEmulator();
        QVERIFY(m_hypervisor->start(spec));
        m_libvirtd.stop();
        std::optional<Status> destroyed;
        QElapsedTimer timer;
        timer.start();
        const auto before = openPidfds();
        std::thread caller([&] { destroyed = m_hypervisor->destroy(spec.id); });
        const bool isWatched = QTest::qWaitFor([before] { return openPidfds() > before; }, 5000);
        m_emulators.back().end();
        caller.join();
        const auto elapsed = timer.elapsed();
        m_libvirtd.goOn();
        QVERIFY(isWatched);
        QVERIFY(destroyed && *destroyed);
        QVERIFY2(elapsed < 10'000, "destroy() waited for libvirt");
        QVERIFY(m_hypervisor->destroy(spec.id));
        QVERIFY(!tests::contract::find(*m_hypervisor, spec.id));
    }

    /// libvirtd was killed in the middle of a start: it comes back without the domain, while the emulator runs on.
    void processThatLibvirtLostIsKilled_data() {
        QTest::addColumn<bool>("hasPidFile");
        QTest::addColumn<bool>("isOurs");
        QTest::newRow("pid file") << true << true;
        QTest::newRow("no pid file") << false << true;
        QTest::newRow("no pid file, somebody else's process") << false << false;
    }
    void processThatLibvirtLostIsKilled() {
        QFETCH(bool, hasPidFile);
        QFETCH(bool, isOurs);
        QCOMPARE(::chmod(qPrintable(m_pids->path()), 0755), 0);
        const auto program = m_pids->filePath("qemu-system-x86_64");
        QVERIFY(QFile::link("/bin/sh", program));
        const auto id = randomId<InstanceId>();
        process::ProcessSpec standIn;
        standIn.program = program.toStdString();
        standIn.arguments = {"-c", "while :; do sleep 1000; done", "-uuid", id.text()};
        standIn.environment = process::toolEnvironment();
        tests::runAsHelper(standIn);
        auto child = process::spawn(standIn);
        QVERIFY2(child, child ? "" : child.error().message.c_str());
        const UniqueFd pidfd(::fcntl(child->pidfd.get(), F_DUPFD_CLOEXEC, 3));
        if (hasPidFile) {
            writePidFile(id, child->pid);
        }
        m_emulators.emplace_back(std::move(*child));
        hypervisor::LibvirtHypervisorOptions options;
        options.pidDirectory = m_pids->path().toStdString();
        if (isOurs) {
            options.emulatorUsers = {tests::helperUid(), tests::helperUid()};
        }
        LibvirtHypervisor hypervisor(*m_connection, options);
        const auto destroyed = hypervisor.destroy(id);
        QVERIFY2(destroyed, destroyed ? "" : destroyed.error().message.c_str());
        QCOMPARE(hypervisor::hasEnded(pidfd), isOurs);
    }

    void manyThreadsShareOneConnection() {
        std::atomic<int> failures = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (int round = 0; round < 20; ++round) {
                    failures += m_hypervisor->list() ? 0 : 1;
                    failures += m_hypervisor->destroy(randomId<InstanceId>()) ? 0 : 1;
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        QCOMPARE(failures.load(), 0);
    }
};

// Without an application object: Qt would take GLib's main context, on which libvirt's event loop runs.
QTEST_APPLESS_MAIN(LibvirtHypervisorTest)
#include "tst_libvirt_hypervisor.moc"
