// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/acceleration_probe.hpp"
#include "hypervisor/kvm_device.hpp"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using core::Acceleration;
using Outcome = core::AccelerationProbe::Outcome;

/// The self-test with shell scripts in QEMU's place and /dev/null in /dev/kvm's (a character device that everybody may
/// open). That a real guest passes it is for the e2e tests.
class AccelerationTest : public QObject {
    Q_OBJECT

private:
    std::unique_ptr<QTemporaryDir> m_folder;

    [[nodiscard]] QString path(const char* name) const { return m_folder->filePath(name); }
    void write(const char* name, const QByteArray& text, bool isProgram = false) const {
        QFile file(path(name));
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        file.write(text);
        file.close();
        ::chmod(qPrintable(path(name)), isProgram ? 0755 : 0666);
    }
    [[nodiscard]] QByteArray read(const char* name) const {
        QFile file(path(name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    /// Each run leaves a line in "runs" and its arguments in "arguments".
    void writeEmulator(const QByteArray& body) const {
        const auto folder = m_folder->path().toUtf8();
        write("qemu",
              "#!/bin/sh\necho run >> " + folder + "/runs\nprintf '%s\\n' \"$@\" > " + folder + "/arguments\n" + body +
                  "\n",
              true);
    }
    [[nodiscard]] auto runs() const { return read("runs").count('\n'); }
    [[nodiscard]] hypervisor::AccelerationSelfTestOptions options() const {
        hypervisor::AccelerationSelfTestOptions options;
        options.cacheFile = path("state/acceleration").toStdString();
        options.uid = ::geteuid() == 0 ? 65534 : ::geteuid();
        options.gid = 65534;
        options.emulator = path("qemu").toStdString();
        options.device = "/dev/null";
        options.cpuInfo = path("cpuinfo").toStdString();
        options.limit = std::chrono::seconds(20);
        return options;
    }
    [[nodiscard]] Outcome determine(bool refresh = false) const {
        return hypervisor::AccelerationSelfTest(options()).determine(path("vmlinuz").toStdString(),
                                                                     path("initrd.img").toStdString(), refresh);
    }

private slots:
    void init() {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(m_folder->isValid());
        ::chmod(qPrintable(m_folder->path()), 0755);
        write("vmlinuz", "kernel");
        write("initrd.img", "initrd");
        write("cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n");
        write("runs", "");
        write("arguments", "");
    }

    void outcomes_data() {
        QTest::addColumn<QByteArray>("script");
        QTest::addColumn<bool>("isKvm");
        QTest::addColumn<bool>("isKnown");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, const char* script, bool isKvm, bool isKnown, const char* mentions) {
            QTest::newRow(name) << QByteArray(script) << isKvm << isKnown << QString(mentions);
        };
        row("answers and hangs", "echo BULKHEAD-SELFTEST-OK >&3; exec sleep 60", true, true, "booted under KVM");
        row("answers and ends", "printf 'noise BULKHEAD-SELFTEST-OK\\r\\n' >&3", true, true, "booted under KVM");
        row("aborts", "kill -ABRT $$", false, true, "killed by signal 6");
        row("KVM refuses", "echo 'failed to initialize kvm: Invalid argument' >&2; exit 1", false, true,
            "failed to initialize kvm");
        row("guest ends early", "exit 0", false, true, "before it reached user space");
        row("answer on the wrong line", "echo BULKHEAD-SELFTEST-OK; echo BULKHEAD-SELFTEST-OK >&2", false, true,
            "before it reached user space");
        row("half an answer", "echo BULKHEAD-SELFTEST >&3", false, true, "before it reached user space");
        row("unknown option", "echo 'invalid option' >&2; exit 1", false, false, "invalid option");
        row("no memory", "echo 'kvm: cannot set up guest memory' >&2; exit 1", false, false, "guest memory");
        row("hostile words", "printf 'KVM \\033[2J' >&2; exit 1", false, true, "\\x1b[2J");
    }
    void outcomes() {
        QFETCH(QByteArray, script);
        QFETCH(bool, isKvm);
        QFETCH(bool, isKnown);
        QFETCH(QString, mentions);
        writeEmulator(script);
        const auto outcome = determine();
        QCOMPARE(outcome.acceleration == Acceleration::Kvm, isKvm);
        QCOMPARE(outcome.isKnown, isKnown);
        QVERIFY2(QString::fromStdString(outcome.reason).contains(mentions), outcome.reason.c_str());
        // What is not known is tried again, the rest is not.
        const auto again = determine();
        QCOMPARE(runs(), isKnown ? 1 : 2);
        QCOMPARE(again.reason, outcome.reason);
        QCOMPARE(again.acceleration == Acceleration::Kvm, isKvm);
    }

    void silenceEndsAtTheLimit_data() {
        QTest::addColumn<QByteArray>("script");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, const char* script, const char* mentions) {
            QTest::newRow(name) << QByteArray(script) << QString(mentions);
        };
        row("nothing", "exec sleep 60", "firmware does not come up");
        row("the boot loader only", "echo 'Probing EDD... ok' >&3; exec sleep 60", "kernel does not come up");
        row("the boot loader on and on", "while echo 'Probing EDD... ok' >&3; do sleep 0.05; done",
            "kernel does not come up");
        row("a kernel that hangs later", "echo '[ 0.0] Linux version 6' >&3; exec sleep 60", "does not get there");
    }
    void silenceEndsAtTheLimit() {
        QFETCH(QByteArray, script);
        QFETCH(QString, mentions);
        writeEmulator(script);
        auto few = options();
        few.startLimit = std::chrono::seconds(mentions.contains("firmware") ? 0 : 20);
        few.limit = std::chrono::milliseconds(200);
        few.bootLimit = std::chrono::milliseconds(200);
        QElapsedTimer timer;
        timer.start();
        const auto outcome = hypervisor::AccelerationSelfTest(few).determine(path("vmlinuz").toStdString(),
                                                                             path("initrd.img").toStdString(), false);
        QVERIFY(timer.elapsed() < 30'000); // long before the script would end
        QVERIFY(outcome.isKnown);
        QVERIFY(outcome.acceleration == Acceleration::Emulation);
        QVERIFY2(outcome.reason.find("no guest reached user space") != std::string::npos, outcome.reason.c_str());
        QVERIFY2(QString::fromStdString(outcome.reason).contains(mentions), outcome.reason.c_str());
    }

    void aSlowKernel_isWaitedFor() {
        // Longer silent than a kernel that does not come up may be, but it has spoken.
        writeEmulator("echo '[ 0.0] Linux version 6' >&3; sleep 1; echo BULKHEAD-SELFTEST-OK >&3; exec sleep 60");
        auto few = options();
        few.limit = std::chrono::milliseconds(200);
        const auto outcome = hypervisor::AccelerationSelfTest(few).determine(path("vmlinuz").toStdString(),
                                                                             path("initrd.img").toStdString(), false);
        QVERIFY2(outcome.acceleration == Acceleration::Kvm, outcome.reason.c_str());
    }

    /// A host that was busy for a moment must not turn KVM off for good; one on which it is broken must.
    void slowTrialAloneOverturnsNothing_data() {
        QTest::addColumn<QByteArray>("slowRuns");
        QTest::addColumn<bool>("isKvm");
        QTest::addColumn<int>("runsMade");
        QTest::newRow("slow once") << QByteArray("2") << true << 3;
        QTest::newRow("slow again") << QByteArray("2|3") << false << 3;
    }
    void slowTrialAloneOverturnsNothing() {
        QFETCH(QByteArray, slowRuns);
        QFETCH(bool, isKvm);
        QFETCH(int, runsMade);
        writeEmulator("case $(wc -l < " + m_folder->path().toUtf8() + "/runs) in " + slowRuns +
                      ") exec sleep 60;; esac; echo BULKHEAD-SELFTEST-OK >&3");
        QVERIFY(determine().acceleration == Acceleration::Kvm);
        auto few = options();
        few.startLimit = std::chrono::seconds(2);
        const auto outcome = hypervisor::AccelerationSelfTest(few).determine(path("vmlinuz").toStdString(),
                                                                             path("initrd.img").toStdString(), true);
        QCOMPARE(outcome.acceleration == Acceleration::Kvm, isKvm);
        QCOMPARE(runs(), runsMade);
        QCOMPARE(hypervisor::AccelerationSelfTest(options()).remembered().acceleration == Acceleration::Kvm, isKvm);
    }
    void trialIsShared() {
        writeEmulator("echo BULKHEAD-SELFTEST-OK >&3");
        hypervisor::AccelerationSelfTest probe(options());
        for (const bool refresh : {false, true, true}) {
            QVERIFY(probe.determine(path("vmlinuz").toStdString(), path("initrd.img").toStdString(), refresh).isKnown);
        }
        QCOMPARE(runs(), 1);
    }
    void rememberedAnswerWaitsForNoTrial() {
        const auto hang = m_folder->path().toUtf8() + "/hang";
        writeEmulator("while [ -e " + hang + " ]; do sleep 0.02; done; echo BULKHEAD-SELFTEST-OK >&3");
        auto unshared = options();
        unshared.shareFor = std::chrono::milliseconds(0);
        hypervisor::AccelerationSelfTest probe(unshared);
        const auto ask = [&](bool refresh) {
            return probe.determine(path("vmlinuz").toStdString(), path("initrd.img").toStdString(), refresh).isKnown;
        };
        QVERIFY(ask(false));
        write("hang", "");
        std::atomic<bool> isOver = false;
        std::thread doctor([&] {
            ask(true);
            isOver = true;
        });
        const bool isTrying = QTest::qWaitFor([this] { return runs() == 2; }, 10'000);
        const bool isKnown = ask(false);
        const bool hasWaited = isOver;
        QFile::remove(path("hang"));
        doctor.join();
        QVERIFY(isTrying && isKnown && !hasWaited);
    }

    void emulatorIsAskedForTheRealThing() {
        writeEmulator("id -u > " + m_folder->path().toUtf8() + "/runs; echo BULKHEAD-SELFTEST-OK >&3");
        QVERIFY(determine().acceleration == Acceleration::Kvm);
        const auto arguments = read("arguments");
        QVERIFY(arguments.contains("\n-accel\nkvm\n-cpu\nhost,migratable=on\n"));
        QVERIFY(arguments.contains("\n-kernel\n" + path("vmlinuz").toUtf8() + "\n-initrd\n"));
        QVERIFY(arguments.contains(" bulkhead.selftest\n"));
        QVERIFY(arguments.contains("-nodefaults"));
        QVERIFY2(read("runs").trimmed() != "0", "the trial emulator ran as root");
    }

    void answerIsRememberedUntilTheHostChanges() {
        writeEmulator("echo BULKHEAD-SELFTEST-OK >&3");
        hypervisor::AccelerationSelfTest probe(options());
        QVERIFY(!probe.remembered().isKnown);
        QVERIFY(determine().isKnown);
        QVERIFY(probe.remembered().isKnown);
        QVERIFY(probe.remembered().acceleration == Acceleration::Kvm);
        QCOMPARE(runs(), 1);

        QVERIFY(determine(true).isKnown);
        QCOMPARE(runs(), 2);

        write("cpuinfo", "model name\t: Another CPU\n");
        QVERIFY(!probe.remembered().isKnown);
        QVERIFY(determine().isKnown);
        QCOMPARE(runs(), 3);

        writeEmulator("kill -ABRT $$ # a new build");
        QVERIFY(!probe.remembered().isKnown);
        QVERIFY(determine().acceleration == Acceleration::Emulation);
        QCOMPARE(runs(), 4);

        QCOMPARE(QDir(path("state")).entryList(QDir::Files), QStringList{"acceleration"}); // no temporary file is left
    }

    void damagedMemoryIsTestedAgain_data() {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("other version") << QByteArray("bulkhead-acceleration 0\nkey\nkvm\nx\n");
        QTest::newRow("other key") << QByteArray("bulkhead-acceleration 2\nkey\nkvm\nx\n");
        QTest::newRow("cut") << QByteArray("bulkhead-acceleration 2\n");
    }
    void damagedMemoryIsTestedAgain() {
        QFETCH(QByteArray, content);
        QDir(m_folder->path()).mkdir("state");
        write("state/acceleration", content);
        writeEmulator("kill -ABRT $$");
        QVERIFY(determine().acceleration == Acceleration::Emulation);
        QCOMPARE(runs(), 1);
    }

    void withoutPrerequisitesNothingIsKnown() {
        QVERIFY(!determine().isKnown); // no emulator
        writeEmulator("echo BULKHEAD-SELFTEST-OK >&3");
        QFile::remove(path("vmlinuz"));
        QVERIFY(!determine().isKnown);
        QVERIFY(determine().acceleration == Acceleration::Emulation);
        auto asRoot = options();
        asRoot.uid = 0;
        write("vmlinuz", "kernel");
        QVERIFY(!hypervisor::AccelerationSelfTest(asRoot)
                     .determine(path("vmlinuz").toStdString(), path("initrd.img").toStdString(), false)
                     .isKnown);
        QCOMPARE(runs(), 0);
    }

    void memoryThatCannotBeWrittenIsNoFailure() {
        writeEmulator("echo BULKHEAD-SELFTEST-OK >&3");
        write("state", "a file where the folder should be");
        QVERIFY(determine().isKnown);
    }

    void device_data() {
        using Access = hypervisor::KvmDevice::Access;
        QTest::addColumn<QString>("device");
        QTest::addColumn<int>("access");
        QTest::addColumn<QString>("fix");
        QTest::newRow("absent") << "/nonexistent/kvm" << static_cast<int>(Access::Absent) << "firmware";
        QTest::newRow("no device") << "/etc/passwd" << static_cast<int>(Access::Absent) << "firmware";
        QTest::newRow("closed") << "/dev/console" << static_cast<int>(Access::RootOnly)
                                << "chgrp kvm /dev/console; chmod 660 /dev/console";
        QTest::newRow("open") << "/dev/null" << static_cast<int>(Access::Ok) << "";
    }
    void device() {
        QFETCH(QString, device);
        QFETCH(int, access);
        QFETCH(QString, fix);
        const auto found = hypervisor::examineKvmDevice(device.toStdString(), 65534);
        QCOMPARE(static_cast<int>(found.access), access);
        QVERIFY2(QString::fromStdString(found.fix).contains(fix), found.fix.c_str());

        // A device that nobody can use is known to be of no use, without any trial.
        auto here = options();
        here.device = device.toStdString();
        const auto outcome = hypervisor::AccelerationSelfTest(here).remembered();
        QCOMPARE(outcome.isKnown, found.access != hypervisor::KvmDevice::Access::Ok);
        QVERIFY(outcome.acceleration == Acceleration::Emulation);
    }
};

QTEST_APPLESS_MAIN(AccelerationTest)
#include "tst_acceleration.moc"
