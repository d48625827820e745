// SPDX-License-Identifier: Apache-2.0
// A real emulator: its layers are switched and its memory is copied while it goes on, and others begin from that.
// Nobody speaks to the guest here (tests/e2e does); what is compared is what lies on the disk.
#include "core/services/uid_leases.hpp"
#include "hypervisor/libvirt_hypervisor.hpp"
#include "hypervisor/libvirt_machines.hpp"
#include "hypervisor/libvirt_runtime.hpp"
#include "imaging/file_instance_store.hpp"
#include "imaging/file_snapshot_store.hpp"
#include "imaging/file_template_store.hpp"
#include "imaging/process_memory_capturer.hpp"
#include "memory/image_chunks.hpp"

#include <QElapsedTimer>
#include <QProcess>
#include <QTest>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <map>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
namespace fs = std::filesystem;

namespace {

constexpr Bytes kMemory = 512 * kMiB;
constexpr Bytes kLateHome = 128 * kMiB;
constexpr const char* kState = "/var/lib/bulkhead";

class SystemClock final : public core::Clock {
public:
    std::int64_t now() override { return ::time(nullptr); }
};

gid_t emulatorGroup() {
    const auto* const group = ::getgrnam("kvm");
    return group != nullptr ? group->gr_gid : 0;
}

} // namespace

class TestGuestLayers : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        std::signal(SIGPIPE, SIG_IGN); // again: Qt has its own idea of it
        QVERIFY2(::getenv("BULKHEAD_PRIVATE_HOST") != nullptr, "run it by tests/support/host/private_host");
        const fs::path library = fs::path(BULKHEAD_LIBRARIES) / "libbulkhead-readonly.so";
        const fs::path helper = fs::path(BULKHEAD_PROGRAMS) / "bulkhead-memcap";
        const auto installedTemplate = m_templates.find("minimal");
        QVERIFY2(installedTemplate, installedTemplate ? "" : installedTemplate.error().message.c_str());
        m_template = *installedTemplate;
        hypervisor::LibvirtHypervisorOptions options;
        options.readonlyPreload = library;
        m_hypervisor = std::make_unique<hypervisor::LibvirtHypervisor>(m_connection, options);
        m_capturer = std::make_unique<imaging::ProcessMemoryCapturer>(helper);
        const auto made = m_instances.createHome(m_domain, 1000, "work", m_template.homeSize);
        QVERIFY2(made, made ? "" : made.error().message.c_str());
    }
    void cleanupTestCase() {
        if (m_hypervisor) {
            for (const auto& observed : m_hypervisor->list().value_or(std::vector<core::ObservedInstance>())) {
                QVERIFY(m_hypervisor->destroy(observed.id));
            }
        }
    }

    void guest_goesOnAndIsBegunFrom() {
        const auto source = start({});
        QVERIFY(source);
        waitForRest(source->pid);
        const auto first = snapshot(*source);
        QVERIFY(first);
        // It goes on where it was told to, and what is frozen stays as it is.
        const auto active = m_machines.activeLayers(source->id);
        QVERIFY2(active, active ? "" : active.error().message.c_str());
        QVERIFY(*active->system == m_snapshots.disksOf(source->id)->system.layers[0].path);
        QVERIFY(*active->home == m_snapshots.disksOf(source->id)->home.layers[0].path);
        QVERIFY(!isPaused(source->id));
        const auto second = snapshot(*source);
        QVERIFY(second);
        QCOMPARE(second->system.layers.size(), std::size_t{3});
        QVERIFY(m_hypervisor->destroy(source->id));
        QVERIFY(m_instances.removeInstance(source->id, m_domain));
        for (const auto* const node : {&*first, &*second}) {
            const auto damage = m_snapshots.findDamage(*node);
            QVERIFY2(!damage, damage ? (damage->file.string() + damage->why).c_str() : "");
        }

        // A child of each, and a snapshot of a child, which stores what it changed only.
        for (const auto* const node : {&*first, &*second}) {
            QElapsedTimer timer;
            timer.start();
            const auto image = m_snapshots.memoryImage(*node);
            QVERIFY2(image, image ? "" : image.error().message.c_str());
            QCOMPARE(image->digest, m_wholeDigests.at(node->id));
            qInfo("memory image composed: %lld ms", static_cast<long long>(timer.restart()));
            QVERIFY(m_snapshots.resetHome(m_domain, 1000, "work", node->home));
            qInfo("home reset: %lld ms", static_cast<long long>(timer.restart()));
            const auto child = start({.systemBase = node->system, .memory = *image});
            QVERIFY(child);
            qInfo("shell started: %lld ms", static_cast<long long>(timer.restart()));
            const auto loaded = m_machines.load(child->id, node->memory->devices, std::nullopt);
            QVERIFY2(loaded, loaded ? "" : loaded.error().message.c_str());
            qInfo("devices loaded, guest runs: %lld ms", static_cast<long long>(timer.restart()));
            QVERIFY(!isPaused(child->id));
            QTest::qWait(3000); // it does what it did before; if it cannot, it panics and powers off
            QVERIFY(isThere(child->id));
            const auto grandchild = snapshot(*child);
            QVERIFY(grandchild);
            QVERIFY(grandchild->memory->parent == *image);
            QCOMPARE(m_snapshots.memoryImage(*grandchild)->digest, m_wholeDigests.at(grandchild->id));
            QVERIFY(m_hypervisor->destroy(child->id));
            QVERIFY(m_instances.removeInstance(child->id, m_domain));
            QVERIFY(!m_snapshots.findDamage(*grandchild));
        }
    }
    /// Wherever libvirtd dies, what the call says is true, and the notes can be made so.
    void libvirtdKilled_whatIsSaidIsTrue() {
        const auto source = start({});
        QVERIFY(source);
        for (const int milliseconds : {0, 4, 8, 12, 16, 20, 24, 28, 34, 40, 60}) {
            const core::SnapshotSource from{source->id, m_domain, m_uid, 0};
            const auto before = m_snapshots.disksOf(source->id);
            const auto id = randomId<SnapshotId>();
            const auto files = m_snapshots.begin(id, from);
            QVERIFY2(files, files ? "" : files.error().message.c_str());
            QVERIFY(m_snapshots.commit(*files, from));
            Status switched;
            std::thread caller([&] {
                switched = m_machines.switchLayers(source->id, {files->newSystem, files->newHome});
            });
            QTest::qWait(milliseconds);
            const int killed = QProcess::execute("ph-libvirtd", {"kill"});
            caller.join();
            QCOMPARE(killed, 0);
            QCOMPARE(QProcess::execute("ph-libvirtd", {"start"}), 0);
            const auto active = m_machines.activeLayers(source->id);
            QVERIFY2(active, active ? "" : active.error().message.c_str());
            const bool isNew = active->home == files->newHome;
            QCOMPARE(active->system == files->newSystem, isNew);
            qInfo("killed after %d ms: %s, %s", milliseconds, isNew ? "switched" : "not switched",
                  switched ? "success" : switched.error().message.c_str());
            if (switched || switched.error().code != ErrorCode::Unavailable) {
                QCOMPARE(switched.has_value(), isNew);
            }
            const auto settled = m_snapshots.settle(source->id, m_domain, *active);
            QVERIFY2(settled, settled ? "" : settled.error().message.c_str());
            const auto now = m_snapshots.disksOf(source->id);
            QVERIFY(now && now->home.layers[0].path == *active->home && now->system.layers[0].path == *active->system);
            QCOMPARE(now->home.layers.size(), before->home.layers.size() + (isNew ? 1 : 0));
            QCOMPARE(m_snapshots.remove(id).has_value(), !isNew);
        }
        QVERIFY(isThere(source->id));
        QVERIFY(m_hypervisor->destroy(source->id));
        QVERIFY(m_instances.removeInstance(source->id, m_domain));
        // What the emulator wrote last is what the next one begins with, above layers that were never published.
        const auto next = start({});
        QVERIFY(next);
        QVERIFY(m_hypervisor->destroy(next->id));
        QVERIFY(m_instances.removeInstance(next->id, m_domain));
    }
    /// As for a suspension: no new layers for an emulator that ends; what it still has of the disks it has written by
    /// then.
    void suspended_isWholeAfterItsEnd() {
        const auto source = start({});
        QVERIFY(source);
        waitForRest(source->pid);
        const auto node = snapshot(*source, true);
        QVERIFY(node);
        QVERIFY(isPaused(source->id));
        QVERIFY(m_hypervisor->destroy(source->id));
        QVERIFY(m_instances.removeInstance(source->id, m_domain));
        const auto damage = m_snapshots.findDamage(*node);
        QVERIFY2(!damage, damage ? (damage->file.string() + damage->why).c_str() : "");
        QCOMPARE(m_snapshots.memoryImage(*node)->digest, m_wholeDigests.at(node->id));
    }
    /// An emulator that was begun with a fresh home takes a kept one before its guest runs. The guest leaves its home
    /// alone (it is one that boots for an image), so whatever changes on the disk was changed by the exchange.
    void lateHome_isTakenAsItIs() {
        const auto source = start({.isForImage = true});
        QVERIFY(source);
        const auto node = snapshot(*source, true);
        QVERIFY(node);
        QVERIFY(m_hypervisor->destroy(source->id) && m_instances.removeInstance(source->id, m_domain));
        const auto image = m_snapshots.memoryImage(*node);
        QVERIFY2(image, image ? "" : image.error().message.c_str());

        // Of one file, and of a layer with content over another with content.
        for (const bool isLayered : {false, true}) {
            const auto domain = randomId<DomainId>();
            QVERIFY(m_instances.createHome(domain, 1000, "late", kLateHome));
            const fs::path folder = m_layout.homeFolder(domain);
            fs::path top = folder / "home.img";
            writeInto(top, "raw", 0x11);
            if (isLayered) {
                QVERIFY(m_snapshots.resetHome(domain, 1000, "late", layersOver(top)));
                top = activeHome(domain);
                QVERIFY2(top.extension() == ".qcow2", top.c_str());
                writeInto(top, "qcow2", 0x33);
            }
            const auto before = contents(folder);
            // As often as libvirtd dies in the middle, what is on the disk stays as it is.
            for (const int milliseconds : {-1, 5, 30}) {
                const Late late = startLate(node->system, *image, domain);
                QVERIFY(late.running);
                QVERIFY(late.home.layers.front().path == top);
                Status loaded;
                QElapsedTimer timer;
                timer.start();
                std::thread caller(
                    [&] { loaded = m_machines.load(late.running->id, node->memory->devices, late.home); });
                if (milliseconds >= 0) {
                    QTest::qWait(milliseconds);
                    QProcess::execute("ph-libvirtd", {"kill"});
                }
                caller.join();
                qInfo("loaded with another home: %lld ms, %s", static_cast<long long>(timer.elapsed()),
                      loaded ? "success" : loaded.error().message.c_str());
                if (milliseconds >= 0) {
                    QCOMPARE(QProcess::execute("ph-libvirtd", {"start"}), 0);
                } else {
                    QVERIFY(loaded);
                    QVERIFY(!isPaused(late.running->id));
                    QVERIFY(m_machines.activeLayers(late.running->id)->home == top);
                    QVERIFY(m_snapshots.disksOf(late.running->id)->home == late.home);
                    // libvirt knows it too: the next layer comes above it, with the layers that it has.
                    const auto files = m_snapshots.begin(randomId<SnapshotId>(), {late.running->id, domain, m_uid, 0});
                    QVERIFY(files);
                    QVERIFY(m_machines.switchLayers(late.running->id, {files->newSystem, files->newHome}));
                }
                QVERIFY(m_hypervisor->destroy(late.running->id));
                QVERIFY(m_instances.removeInstance(late.running->id, domain));
                QCOMPARE(contents(folder), before);
            }
            // One of another size is refused, and is left alone as well.
            QVERIFY(m_instances.growHome(domain, 2 * kLateHome));
            const auto grown = contents(folder);
            const Late late = startLate(node->system, *image, domain);
            QVERIFY(late.running);
            const auto refused = m_machines.load(late.running->id, node->memory->devices, late.home);
            QVERIFY(!refused);
            qInfo("of another size: %s", refused.error().message.c_str());
            QVERIFY(isPaused(late.running->id));
            QVERIFY(m_hypervisor->destroy(late.running->id));
            QVERIFY(m_instances.removeInstance(late.running->id, domain));
            QCOMPARE(contents(folder), grown);
        }
    }
    void wrongLayers_areRefusedAndNothingIsSwitched() {
        const auto source = start({});
        QVERIFY(source);
        const auto before = m_machines.activeLayers(source->id);
        QVERIFY(before && before->system && before->home);
        const fs::path home = m_snapshots.disksOf(source->id)->home.layers[0].path;
        // One is there, the other is not: all or nothing.
        const auto files = m_snapshots.begin(randomId<SnapshotId>(), {source->id, m_domain, m_uid, 0});
        QVERIFY(files);
        const auto refused = m_machines.switchLayers(source->id, {files->newSystem, "/var/lib/bulkhead/nowhere"});
        QVERIFY(!refused);
        QVERIFY2(refused.error().code != ErrorCode::Unavailable, refused.error().message.c_str());
        const auto after = m_machines.activeLayers(source->id);
        QVERIFY(after->system == before->system && after->home == before->home);
        QVERIFY(m_machines.switchLayers(source->id, {files->newSystem, files->newHome}));
        QCOMPARE(m_machines.switchLayers(randomId<InstanceId>(), {files->newSystem, std::nullopt}).error().code,
                 ErrorCode::NotFound);
        QVERIFY(m_hypervisor->destroy(source->id));
        QVERIFY(m_instances.removeInstance(source->id, m_domain));
    }

private:
    struct Running {
        InstanceId id;
        pid_t pid = 0;
    };

    struct Begin {
        core::Disk systemBase;
        std::optional<core::MemoryImageRef> memory;
        bool isForImage = false;
        bool isWithHome = true; ///< that of m_domain; otherwise a fresh one
    };
    struct Late {
        std::optional<Running> running;
        core::Disk home;
    };

    std::optional<Running> start(const Begin& begin) {
        core::InstancePlan plan;
        plan.instance = randomId<InstanceId>();
        plan.templateName = m_template.name;
        plan.templateVersion = m_template.version;
        if (begin.isWithHome) {
            plan.keptHome = m_domain;
        }
        plan.homeSize = kLateHome; // of a fresh one
        plan.systemBase = begin.systemBase;
        plan.memory = begin.memory;
        plan.emulatorUid = m_uid;
        const auto files = m_instances.prepareInstance(plan);
        if (!files) {
            qWarning("%s", files.error().message.c_str());
            return std::nullopt;
        }
        core::InstanceSpec spec;
        spec.id = plan.instance;
        spec.memory = kMemory;
        spec.system = files->system;
        spec.home = files->home;
        spec.kernel = files->kernel;
        spec.initrd = files->initrd;
        spec.tokenFile = files->tokenFile;
        spec.agentSocket = files->agentSocket;
        spec.emulatorUid = m_uid;
        spec.emulatorGid = files->emulatorGid;
        spec.isForImage = begin.isForImage;
        if (begin.memory) {
            spec.memoryImage = begin.memory->file;
        }
        const auto pid = m_hypervisor->start(spec);
        if (!pid) {
            qWarning("%s", pid.error().message.c_str());
            return std::nullopt;
        }
        return Running{plan.instance, *pid};
    }
    /// One that was begun before it was known whose it would be, and the home that it is to take.
    Late startLate(const core::Disk& systemBase, const core::MemoryImageRef& memory, const DomainId& domain) {
        Late late;
        late.running = start({.systemBase = systemBase, .memory = memory, .isWithHome = false});
        if (late.running) {
            core::InstancePlan plan;
            plan.instance = late.running->id;
            plan.keptHome = domain;
            plan.emulatorUid = m_uid;
            auto home = m_instances.giveHome(plan);
            if (!home) {
                qWarning("%s", home.error().message.c_str());
                return {};
            }
            late.home = std::move(*home);
        }
        return late;
    }
    fs::path activeHome(const DomainId& domain) {
        for (const auto& entry : fs::directory_iterator(m_layout.homeFolder(domain))) {
            if (entry.path().extension() == ".qcow2") {
                return entry.path();
            }
        }
        return m_layout.homeFolder(domain) / "home.img";
    }
    /// What a snapshot would have of a home: the file, and a layer over it that has content.
    core::Disk layersOver(const fs::path& file) {
        const fs::path frozen = fs::path(kState) / ("frozen-" + randomUuidText() + ".img");
        fs::copy_file(file, frozen);
        fs::path layer = frozen;
        layer.replace_extension(".qcow2");
        QProcess::execute("qemu-img",
                          {"create", "-q", "-f", "qcow2", "-F", "raw", "-b", frozen.c_str(), layer.c_str()});
        writeInto(layer, "qcow2", 0x22);
        for (const auto& one : {frozen, layer}) {
            fs::permissions(one, fs::perms(0440));
            QProcess::execute("chgrp", {"kvm", one.c_str()});
        }
        return {{{layer, core::DiskFormat::Qcow2}, {frozen, core::DiskFormat::Raw}}};
    }
    /// A pattern in the middle of the disk, and each at a place of its own as well.
    static void writeInto(const fs::path& file, const char* format, int pattern) {
        const auto text = QString::number(pattern);
        QProcess::execute("qemu-io",
                          {"-f", format, "-c", "write -q -P " + text + " 10M 1M", "-c",
                           "write -q -P " + text + " " + QString::number(20 + pattern) + "M 64k", file.c_str()});
    }
    /// The files of a home by name: all bytes of the layer that the emulator gets.
    static std::map<std::string, QByteArray> contents(const fs::path& folder) {
        std::map<std::string, QByteArray> found;
        for (const auto& entry : fs::directory_iterator(folder)) {
            QProcess digest;
            digest.start("sha256sum", {entry.path().c_str()});
            digest.waitForFinished(-1);
            found[entry.path().filename()] = digest.readAllStandardOutput().left(64);
        }
        return found;
    }
    /// Until its memory has not grown for a while.
    void waitForRest(pid_t emulator) {
        Bytes before = 0;
        int quiet = 0;
        for (int i = 0; i < 120 && quiet < 4; ++i) {
            QTest::qWait(2000);
            const auto now = m_capturer->privateMemory(emulator);
            QVERIFY2(now, now ? "" : now.error().message.c_str());
            quiet = *now > 150 * kMiB && *now < before + 2 * kMiB ? quiet + 1 : 0;
            before = *now;
        }
        qInfo("private memory at rest: %llu MiB", static_cast<unsigned long long>(before / kMiB));
        QVERIFY(quiet == 4);
    }
    std::optional<core::SnapshotRecord> snapshot(const Running& source, bool isLast = false) {
        QElapsedTimer timer;
        timer.start();
        std::string times;
        const auto said = [&](const char* step) {
            times += std::string(step) + " " + std::to_string(timer.restart()) + ", ";
        };
        core::SnapshotRecord record;
        record.id = randomId<SnapshotId>();
        record.domain = m_domain;
        record.owner = 1000;
        record.domainName = "work";
        record.kind = core::SnapshotKind::Full;
        record.templateName = m_template.name;
        record.templateVersion = m_template.version;
        record.memory.emplace();
        record.memory->machine.memory = kMemory;
        record.memory->machine.version = *m_machines.version(core::Acceleration::Emulation);
        const core::SnapshotSource from{source.id, m_domain, m_uid, kMiB};
        const auto files = m_snapshots.begin(record.id, from);
        const auto disks = m_snapshots.disksOf(source.id);
        if (!files || !disks) {
            qWarning("%s", (!files ? files.error() : disks.error()).message.c_str());
            return std::nullopt;
        }
        said("begin");
        record.memory->parent = disks->memory;
        auto capture = m_capturer->prepare({source.pid, kMemory, disks->memory, files->delta});
        if (!capture) {
            qWarning("%s", capture.error().message.c_str());
            return std::nullopt;
        }
        said("prepare");
        auto done = m_snapshots.commit(*files, from);
        said("commit");
        done = done.and_then([&] { return m_machines.pauseAndSave(source.id, files->devices); });
        said("pause+devices");
        done = done.and_then([&] { return (*capture)->copy(); });
        said("copy");
        if (!isLast) {
            done = done.and_then([&] {
                return m_machines.switchLayers(source.id, {files->newSystem, files->newHome});
            });
            said("switch");
        }
        // Not a part of a snapshot: the same memory by another way, to compare.
        m_wholeDigests[record.id] = digestOfMemory(source.pid);
        timer.restart();
        if (!isLast) {
            done = done.and_then([&] { return m_hypervisor->resume(source.id); });
            said("resume");
        }
        done = done.and_then([&] { return (*capture)->finish(); });
        said("finish");
        if (!done) {
            qWarning("%s", done.error().message.c_str());
            return std::nullopt;
        }
        auto made = m_snapshots.publish(record, *files);
        said("publish");
        if (!made) {
            qWarning("%s", made.error().message.c_str());
            return std::nullopt;
        }
        qInfo("snapshot, ms: %sdelta of %llu KiB", times.c_str(),
              static_cast<unsigned long long>(fs::file_size(files->delta) / kKiB));
        return *made;
    }
    /// All of the guest's memory as its paused emulator sees it.
    static std::string digestOfMemory(pid_t emulator) {
        const std::string proc = "/proc/" + std::to_string(emulator);
        std::ifstream maps(proc + "/maps");
        std::uint64_t begin = 0;
        for (std::string line; std::getline(maps, line) && begin == 0;) {
            std::uint64_t end = 0;
            char dash = 0;
            std::istringstream(line) >> std::hex >> begin >> dash >> end;
            begin = end - begin == kMemory && line.find("rw") != std::string::npos ? begin : 0;
        }
        const fs::path file = fs::path(kState) / "whole";
        const UniqueFd memory(::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
        const UniqueFd copy(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        std::string buffer(kMiB, '\0');
        for (Bytes at = 0; begin != 0 && at < kMemory; at += buffer.size()) {
            if (::pread(memory.get(), buffer.data(), buffer.size(), static_cast<off_t>(begin + at)) !=
                    static_cast<ssize_t>(buffer.size()) ||
                ::pwrite(copy.get(), buffer.data(), buffer.size(), static_cast<off_t>(at)) !=
                    static_cast<ssize_t>(buffer.size())) {
                return "unreadable";
            }
        }
        fs::remove(file);
        const auto chunks = memory::ImageChunks::ofFile(copy.get(), kMemory, "whole");
        return begin != 0 && chunks ? chunks->digest() : "no memory found";
    }
    std::optional<core::ObservedInstance> observed(const InstanceId& id) {
        const auto list = m_hypervisor->list();
        for (const auto& one : list ? *list : std::vector<core::ObservedInstance>()) {
            if (one.id == id) {
                return one;
            }
        }
        return std::nullopt;
    }
    bool isPaused(const InstanceId& id) {
        const auto one = observed(id);
        return one && one->isPaused;
    }
    bool isThere(const InstanceId& id) { return observed(id).has_value(); }

    const uid_t m_uid = core::UidLeases::emulatorUid(0);
    const DomainId m_domain = randomId<DomainId>();
    SystemClock m_clock;
    imaging::ImageLayout m_layout{kState, "/run/bulkhead", emulatorGroup()};
    imaging::FileTemplateStore m_templates{m_layout, m_clock};
    imaging::FileInstanceStore m_instances{m_layout};
    imaging::FileSnapshotStore m_snapshots{m_layout};
    hypervisor::LibvirtRuntime m_runtime;
    hypervisor::LibvirtConnection m_connection{m_runtime};
    hypervisor::LibvirtMachines m_machines{m_connection};
    std::unique_ptr<hypervisor::LibvirtHypervisor> m_hypervisor;
    std::unique_ptr<imaging::ProcessMemoryCapturer> m_capturer;
    core::InstalledTemplate m_template;
    std::map<SnapshotId, std::string> m_wholeDigests;
};

// Without an application: its event loop would take libvirt's.
QTEST_APPLESS_MAIN(TestGuestLayers)
#include "tst_guest_layers.moc"
