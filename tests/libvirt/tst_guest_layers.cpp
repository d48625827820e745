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
#include <QTest>

#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <map>
#include <sstream>
#include <unistd.h>

using namespace bulkhead;
namespace fs = std::filesystem;

namespace {

constexpr Bytes kMemory = 512 * kMiB;
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
        const auto source = start({}, {});
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
            const auto child = start(node->system, *image);
            QVERIFY(child);
            qInfo("shell started: %lld ms", static_cast<long long>(timer.restart()));
            const auto loaded = m_machines.load(child->id, node->memory->devices);
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
    /// As for a suspension: no new layers for an emulator that ends; what it still has of the disks it has written by
    /// then.
    void suspended_isWholeAfterItsEnd() {
        const auto source = start({}, {});
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
    void wrongLayers_areRefusedAndNothingIsSwitched() {
        const auto source = start({}, {});
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

    std::optional<Running> start(const core::Disk& systemBase, const std::optional<core::MemoryImageRef>& memory) {
        core::InstancePlan plan;
        plan.instance = randomId<InstanceId>();
        plan.templateName = m_template.name;
        plan.templateVersion = m_template.version;
        plan.keptHome = m_domain;
        plan.systemBase = systemBase;
        plan.memory = memory;
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
        if (memory) {
            spec.memoryImage = memory->file;
        }
        const auto pid = m_hypervisor->start(spec);
        if (!pid) {
            qWarning("%s", pid.error().message.c_str());
            return std::nullopt;
        }
        return Running{plan.instance, *pid};
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

QTEST_GUILESS_MAIN(TestGuestLayers)
#include "tst_guest_layers.moc"
