// SPDX-License-Identifier: Apache-2.0
// Warm images over fakes: how they are made, when domains begin from one, and what happens when that fails.
#include "unit/core/fake_world.hpp"

#include <QTest>

#include <utility>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

const Caller kAlice{1000, ":1.1"};
const Caller kRoot{0, ":1.3"};

JobInfo makeImage(Daemon& daemon, bool force = false) {
    return daemon.wait(daemon.warmImages.make(kRoot, "minimal", {}, force).value());
}

JobInfo start(Daemon& daemon, const DomainId& id, bool isCold = false) {
    return daemon.wait(daemon.lifecycle.start(kAlice, id, isCold).value());
}

StartResult resultOf(const JobInfo& job) {
    return std::get<StartResult>(job.result);
}

/// No emulator, file or record is left of what was made.
bool isClean(Outside& world) {
    return world.hypervisor.list()->empty() && world.store.instancesOnDisk()->empty() &&
           world.instances.all()->empty() && world.images.unfinished == 0;
}

} // namespace

class TestWarmImages : public QObject {
    Q_OBJECT

private slots:
    void made_fromAGuestThatCameToRest() {
        Outside world;
        Daemon daemon(world);
        world.links.restless = 3;
        const auto job = makeImage(daemon);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<WarmImageResult>(job.result).made);
        QCOMPARE(world.images.images.size(), std::size_t{1});
        const auto& key = world.images.images.front().key;
        QCOMPARE(key.templateName, std::string("minimal"));
        QCOMPARE(key.size, std::string("small"));
        QCOMPARE(key.memory, Bytes{512 * kMiB});
        QCOMPARE(key.machine, world.machines.machine);
        const auto spec = world.hypervisor.started().front();
        QVERIFY(spec.isForImage && !spec.memoryImage);
        QCOMPARE(world.machines.saved, std::vector{spec.id});
        QVERIFY(!world.links.isOpen(spec.id));
        QVERIFY(isClean(world));
        // Once is enough, unless somebody wants another.
        QVERIFY(!std::get<WarmImageResult>(makeImage(daemon).result).made);
        QVERIFY(std::get<WarmImageResult>(makeImage(daemon, true).result).made);
    }

    void made_byRootOnly() {
        Outside world;
        Daemon daemon(world);
        QCOMPARE(daemon.warmImages.make(kAlice, "minimal", {}, false).error().code, ErrorCode::NotAuthorized);
        QCOMPARE(daemon.warmImages.make(kRoot, "nosuch", {}, false).error().code, ErrorCode::NotFound);
    }

    void failedMaking_leavesNothing_data() {
        QTest::addColumn<QString>("step");
        for (const char* step : {"prepare", "emulator", "agent", "space", "devices", "memory"}) {
            QTest::newRow(step) << step;
        }
    }
    void failedMaking_leavesNothing() {
        QFETCH(QString, step);
        Outside world;
        Daemon daemon(world);
        const Error error{ErrorCode::NoSpace, "the broken step"};
        if (step == "prepare") {
            world.store.failPrepare = error;
        } else if (step == "emulator") {
            world.hypervisor.failNextStart(error);
        } else if (step == "agent") {
            world.links.openError = error;
        } else if (step == "space") {
            world.images.beginError = error;
        } else if (step == "devices") {
            world.machines.saveError = error;
        } else {
            world.memoryCapturer.error = error;
        }
        const auto job = makeImage(daemon);
        QCOMPARE(job.state, JobState::Failed);
        QVERIFY2(job.error->message.find("the broken step") != std::string::npos, job.error->message.c_str());
        QVERIFY2(job.error->message.find("warm image of template \"minimal\"") != std::string::npos,
                 job.error->message.c_str());
        QVERIFY(world.images.images.empty());
        QVERIFY(isClean(world));
    }

    void killedDaemon_guestOfAnImageGoes() {
        Outside world;
        {
            Daemon daemon(world);
            const auto source = daemon.launcher.bootForImage("minimal", {}, Audio::Off,
                                                             JobContext({}, [](const std::string&, double) {}));
            QVERIFY(source);
            QVERIFY(world.hypervisor.isRunning(source->instance.id));
        }
        Daemon next(world);
        const auto report = next.reconciler.run();
        QVERIFY(report);
        QCOMPARE(report->undone, 1U);
        QVERIFY(isClean(world));
    }

    void domains_beginFromTheImageThatFits() {
        Outside world;
        Daemon daemon(world);
        makeImage(daemon);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto job = start(daemon, id);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(resultOf(job).isWarm);
        const auto spec = world.hypervisor.started().back();
        QVERIFY(spec.memoryImage && !spec.isForImage);
        QCOMPARE(world.machines.loaded, std::vector{spec.id});
        QCOMPARE(world.links.rejuvenated, std::vector{spec.id});
        // A token of its own, not that of the guest whose memory it has.
        QVERIFY(world.links.opened.front().token != world.links.opened.back().token);
    }

    void domains_bootWhereNoImageFits_data() {
        QTest::addColumn<QString>("why");
        for (const char* why : {"none", "asked", "machine", "version", "transport", "acceleration", "sound"}) {
            QTest::newRow(why) << why;
        }
    }
    void domains_bootWhereNoImageFits() {
        QFETCH(QString, why);
        Outside world;
        Daemon daemon(world);
        std::vector<std::string> booted;
        daemon.lifecycle.whenBooted([&](const InstanceRecord& instance, const std::string& name) {
            booted = {name, instance.size};
        });
        if (why != "none") {
            makeImage(daemon);
        }
        if (why == "machine") {
            world.machines.machine = "fake 2";
        } else if (why == "version") {
            world.images.images.front().key.templateVersion = "0123456789abcdef0123456789abcdef";
        } else if (why == "transport") {
            world.images.images.front().key.transport = Transport::Vsock;
        } else if (why == "sound") {
            world.images.images.front().key.audio = Audio::Out;
        } else if (why == "acceleration") {
            world.images.images.front().key.acceleration = Acceleration::Kvm;
        }
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto job = start(daemon, id, why == "asked");
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(!resultOf(job).isWarm);
        QCOMPARE(resultOf(job).note, std::string());
        QVERIFY(!world.hypervisor.started().back().memoryImage);
        QVERIFY(world.machines.loaded.empty() && world.links.rejuvenated.empty());
        // Whoever makes images hears of it, but for those who wanted it so.
        QCOMPARE(booted, why == "asked" ? std::vector<std::string>() : (std::vector<std::string>{"minimal", "small"}));
    }

    void imageThatDoesNotLive_domainBoots_data() {
        QTest::addColumn<QString>("step");
        QTest::addColumn<bool>("isRemoved");
        QTest::newRow("load") << "load" << true;
        QTest::newRow("libvirtd went away") << "libvirtd" << false;
        QTest::newRow("no answer") << "agent" << false; // once
        QTest::newRow("a broken home") << "rejuvenate" << false;
        QTest::newRow("the emulator does not take it") << "emulator" << false;
    }
    void imageThatDoesNotLive_domainBoots() {
        QFETCH(QString, step);
        QFETCH(bool, isRemoved);
        Outside world;
        Daemon daemon(world);
        makeImage(daemon);
        const Error error{step == "load" || step == "emulator" ? ErrorCode::HostFailure
                          : step == "libvirtd"                 ? ErrorCode::Unavailable
                                                               : ErrorCode::TimedOut,
                          "the broken step"};
        if (step == "agent") {
            world.links.nextOpenError = error;
        } else if (step == "rejuvenate") {
            world.links.rejuvenateError = error;
        } else if (step == "emulator") {
            world.hypervisor.failNextStart(error);
        } else {
            world.machines.loadError = error;
        }
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto job = start(daemon, id);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(!resultOf(job).isWarm);
        QVERIFY2(resultOf(job).note.find("the broken step") != std::string::npos, resultOf(job).note.c_str());
        QCOMPARE(world.images.images.empty(), isRemoved);
        // Of the try that failed nothing is left; the instance that runs is another one.
        QCOMPARE(world.hypervisor.list()->size(), std::size_t{1});
        QCOMPARE(world.instances.all()->size(), std::size_t{1});
        QVERIFY(!world.hypervisor.started().back().memoryImage);
        QCOMPARE(daemon.table.find(id)->state, DomainState::Running);
    }

    /// As QEMU does over an image that it cannot read. That death is not the disposable's.
    void disposableWhoseEmulatorDiesOverTheImage_boots() {
        Outside world;
        Daemon daemon(world);
        makeImage(daemon);
        world.machines.nextLoadError = Error{ErrorCode::HostFailure, "the broken step"};
        bool isFirst = true;
        world.machines.onLoad = [&](const InstanceId& instance) {
            if (!std::exchange(isFirst, false)) {
                return;
            }
            world.hypervisor.endEmulator(instance);
            world.watch.end(instance);
        };
        const auto id = daemon.domains.createDisposable(kAlice, "minimal", "").value();
        const auto job = daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY2(resultOf(job).note.find("the broken step") != std::string::npos, resultOf(job).note.c_str());
        QVERIFY(world.images.images.empty());
        QCOMPARE(daemon.table.find(id)->state, DomainState::Running);
        QCOMPARE(world.hypervisor.list()->size(), std::size_t{1});
        // Once it runs, its emulator's death is its own.
        const auto instance = daemon.table.find(id)->instance->id;
        world.hypervisor.endEmulator(instance);
        world.watch.end(instance);
        QTRY_VERIFY(!daemon.table.find(id));
        QTRY_VERIFY(world.instances.all()->empty());
    }

    void imageFromWhichNobodyAnswers_isRemovedTheSecondTime() {
        Outside world;
        Daemon daemon(world);
        makeImage(daemon);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto begin = [&](bool answers) {
            world.links.nextOpenError = answers ? std::nullopt : std::optional(Error{ErrorCode::TimedOut, "no answer"});
            const auto job = start(daemon, id);
            QCOMPARE(job.state, JobState::Succeeded);
            QCOMPARE(resultOf(job).isWarm, answers);
            world.links.nextOpenError.reset();
            daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value());
        };
        begin(false);
        begin(true); // it was the host that was busy
        begin(false);
        QCOMPARE(world.images.images.size(), std::size_t{1});
        begin(false);
        QVERIFY(world.images.images.empty());
    }

    void unaskedMaking_isTriedOnceInAWhile() {
        Outside world;
        Daemon daemon(world);
        world.machines.saveError = Error{ErrorCode::HostFailure, "it cannot be made"};
        for (int i = 0; i < 5; ++i) {
            daemon.warmImages.makeSoon("minimal", "small");
        }
        // Once somebody asks, it is tried.
        QCOMPARE(makeImage(daemon).state, JobState::Failed);
        QTRY_VERIFY(isClean(world));
        QCOMPARE(world.hypervisor.started().size(), std::size_t{2});
    }

    void startThatNeverReachedTheImage_isNoReasonToRemoveIt() {
        Outside world;
        Daemon daemon(world);
        makeImage(daemon);
        world.hypervisor.failNextStart({ErrorCode::Unavailable, "libvirtd is away"});
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        QCOMPARE(start(daemon, id).state, JobState::Failed);
        QCOMPARE(world.images.images.size(), std::size_t{1});
        QVERIFY(isClean(world));
    }
};

QTEST_GUILESS_MAIN(TestWarmImages)
#include "tst_warm_images.moc"
