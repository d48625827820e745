// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_instance_store.hpp"
#include "imaging/file_snapshot_store.hpp"
#include "imaging/file_template_store.hpp"
#include "imaging/overlays.hpp"
#include "memory/delta_file.hpp"
#include "memory/image_chunks.hpp"
#include "process/run.hpp"
#include "support/contract/snapshot_store_contract.hpp"
#include "support/fakes/fake_host.hpp"
#include "support/fakes/fake_snapshot_store.hpp"
#include "unit/imaging/real_disks.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
using namespace bulkhead::tests;
namespace fs = std::filesystem;

namespace {

constexpr Bytes kRam = kMiB;

} // namespace

class TestSnapshotStore : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (::geteuid() != 0) {
            QSKIP("giving files to other users needs root");
        }
    }
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_root = m_temporary->path().toStdString();
        QCOMPARE(::chmod(m_root.c_str(), 0755), 0);
        open(m_root / "state");
        m_installed = installSample(*m_templates, m_root);
    }

    void contract_data() {
        QTest::addColumn<int>("clause");
        QTest::addColumn<bool>("real");
        int index = 0;
        for (const auto& [name, clause] : snapshotStoreContract()) {
            QTest::addRow("disk: %s", name.c_str()) << index << true;
            QTest::addRow("fake: %s", name.c_str()) << index << false;
            ++index;
        }
    }
    void contract() {
        QFETCH(int, clause);
        QFETCH(bool, real);
        const auto check = snapshotStoreContract().at(static_cast<std::size_t>(clause)).second;
        FakeInstanceStore fakeInstances;
        FakeSnapshotStore fakeSnapshots(fakeInstances);
        SnapshotStores fake{fakeSnapshots,
                            fakeInstances,
                            m_installed,
                            kEmulatorUid,
                            [&](const core::DiskLayer& layer, int place, int value) {
                                fakeSnapshots.write(layer.path, std::to_string(place), std::to_string(value));
                            },
                            [&](const core::Disk& disk, int place) {
                                const auto content = fakeSnapshots.read(disk);
                                const auto found = content.find(std::to_string(place));
                                return found == content.end() ? 0 : std::stoi(found->second);
                            }};
        auto disk = stores();
        check(real ? disk : fake);
    }

    // ---- files

    void publishedFiles_areSealed() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        const auto node = fullSnapshot(domain, std::nullopt, {{0, 'a'}});
        const fs::path folder = m_root / "state/snapshots" / node.id.text();
        QCOMPARE(modeOf(folder), mode_t{0710});
        for (const char* layer : {"system.qcow2", "home.img"}) {
            QCOMPARE(modeOf(folder / layer), mode_t{0440});
            QCOMPARE(ownerOf(folder / layer), uid_t{0});
        }
        for (const char* rest : {"memory.delta", "devices", "manifest.toml"}) {
            QCOMPARE(modeOf(folder / rest), mode_t{0400});
            QCOMPARE(ownerOf(folder / rest), uid_t{0});
        }
        QCOMPARE(entriesOf(folder), std::size_t{5});
        QVERIFY(node.memory->delta == folder / "memory.delta");
        // The emulator's names for its layers are still good, and its new layers are its own.
        QVERIFY(fs::exists(m_root / "state/homes" / domain.id.text() / "home.img"));
        QVERIFY(fs::exists(m_root / "state/instances" / domain.instance->text() / "system.qcow2"));
        QCOMPARE(ownerOf(domain.home().layers[0].path), kEmulatorUid);
        QCOMPARE(modeOf(domain.home().layers[0].path), mode_t{0600});
        const auto active = domain.home().layers[0].path;
        domain.stop();
        QCOMPARE(ownerOf(active), uid_t{0});
        QCOMPARE(entriesOf(active.parent_path()), std::size_t{2}); // and the manifest
        QVERIFY(*m_snapshots->all() == std::vector{node});
    }
    void stoppedHome_losesItsOldNameAtOnce() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.snapshot();
        domain.snapshot();
        QCOMPARE(entriesOf(m_root / "state/homes" / domain.id.text()), std::size_t{2});
    }
    void movedStore_stillWorks() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.write(0, 1);
        const auto node = domain.snapshot();
        fs::rename(m_root / "state", m_root / "moved");
        open(m_root / "moved");
        const auto home = m_snapshots->home(domain.id);
        QVERIFY(home);
        QVERIFY(home->layers[1].path == m_root / "moved/snapshots" / node.id.text() / "home.img");
        const auto all = *m_snapshots->all();
        QCOMPARE(all.size(), std::size_t{1});
        QVERIFY(!m_snapshots->findDamage(all.front()));
    }
    /// A crash after each step leaves a home whose files are all there, and nothing once the node is removed.
    void interrupted_leavesWholeHomes_data() {
        QTest::addColumn<int>("steps");
        QTest::addColumn<bool>("running");
        for (int steps = 1; steps <= 3; ++steps) {
            QTest::addRow("stopped, after %d", steps) << steps << false;
            QTest::addRow("running, after %d", steps) << steps << true;
        }
    }
    void interrupted_leavesWholeHomes() {
        QFETCH(int, steps);
        QFETCH(bool, running);
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.snapshot();
        if (running) {
            domain.start();
        }
        domain.write(0, 1);
        const auto node = randomId<SnapshotId>();
        const auto files = m_snapshots->begin(node, domain.source());
        QVERIFY(files);
        if (steps > 1) {
            QVERIFY(m_snapshots->commit(*files, domain.source()));
        }
        if (steps > 2) {
            QVERIFY(m_snapshots->publish(domain.record(node), *files));
        }
        // The next daemon.
        open(m_root / "state");
        const auto home = m_snapshots->home(domain.id);
        QVERIFY(home);
        for (const auto& layer : home->layers) {
            QVERIFY2(fs::exists(layer.path), layer.path.c_str());
        }
        QCOMPARE(readDisk(*home, 0), 1);
        QCOMPARE(m_snapshots->all()->size(), steps > 2 ? std::size_t{2} : std::size_t{1});
        const auto removed = m_snapshots->remove(node);
        QCOMPARE(removed.has_value(), steps == 1);
        if (running) {
            QVERIFY(m_instances->removeInstance(*domain.instance, domain.id));
        }
        if (steps == 1) {
            QCOMPARE(entriesOf(m_root / "state/homes" / domain.id.text()), std::size_t{2});
        }
        QVERIFY(m_instances->removeHome(domain.id));
        for (const auto& id : nodesOf(*m_snapshots)) {
            [[maybe_unused]] const Status gone = m_snapshots->remove(id); // those above go first, whatever their order
        }
        for (const auto& id : nodesOf(*m_snapshots)) {
            QVERIFY(m_snapshots->remove(id));
        }
        for (const char* folder : {"snapshots", "homes", "instances"}) {
            QCOMPARE(entriesOf(m_root / "state" / folder), std::size_t{0});
        }
    }
    void lostManifest_doesNotMakeAFrozenLayerActive() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        domain.snapshot();
        fs::remove(m_root / "state/homes" / domain.id.text() / "manifest.toml");
        // home.img is still there, by its old name, and must not be written to again.
        QCOMPARE(m_snapshots->home(domain.id).error().code, ErrorCode::HostFailure);
        QVERIFY(!m_snapshots->filesInUse());
        QVERIFY(!m_instances->growHome(domain.id, kGiB));
        // Its instance can go all the same, and leaves nothing to the next emulator with that number.
        QVERIFY(m_instances->removeInstance(*domain.instance, domain.id));
        QVERIFY(m_instances->instancesOnDisk()->empty());
        for (const auto& entry : fs::directory_iterator(m_root / "state/homes" / domain.id.text())) {
            QCOMPARE(ownerOf(entry.path()), uid_t{0});
        }
    }
    void manifestThatLeavesTheStore_isRefused_data() {
        QTest::addColumn<QByteArray>("file");
        QTest::newRow("absolute") << QByteArray("/etc/shadow");
        QTest::newRow("upwards") << QByteArray("homes/../../etc/shadow");
        QTest::newRow("empty") << QByteArray("");
        QTest::newRow("active layer elsewhere") << QByteArray("bases/home.img");
    }
    void manifestThatLeavesTheStore_isRefused() {
        QFETCH(QByteArray, file);
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.snapshot();
        const fs::path manifest = m_root / "state/homes" / domain.id.text() / "manifest.toml";
        std::ofstream(manifest) << "format = 2\nowner = 1\nname = 'x'\ncreated = 1\nlayers = [{file = '"
                                << file.toStdString() << "', format = 'raw'}]\n";
        QCOMPARE(m_snapshots->home(domain.id).error().code, ErrorCode::HostFailure);
    }
    void noSpace_isRefusedWithNumbers() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        m_space = [](const fs::path&) -> Result<Space> { return Space{100 * kGiB, 6 * kGiB}; };
        open(m_root / "state");
        auto source = domain.source();
        source.needs = 2 * kGiB;
        const auto begun = m_snapshots->begin(randomId<SnapshotId>(), source);
        QCOMPARE(begun.error().code, ErrorCode::NoSpace);
        QVERIFY(begun.error().message.find("6 GiB of 100 GiB") != std::string::npos);
        QVERIFY(m_snapshots->onDisk()->empty());
        source.needs = 0;
        QVERIFY(m_snapshots->begin(randomId<SnapshotId>(), source));
    }

    // ---- layers that an emulator may have written

    void hostileLayer_isNotFollowed_data() {
        QTest::addColumn<QString>("attack");
        for (const char* attack : {"backing", "data file", "not qcow2", "huge", "link", "fifo"}) {
            QTest::newRow(attack) << attack;
        }
    }
    void hostileLayer_isNotFollowed() {
        QFETCH(QString, attack);
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.snapshot();
        const fs::path active = domain.home().layers[0].path;
        if (attack == "backing") {
            // A pipe: whoever opens it hangs.
            QCOMPARE(::mkfifo((m_root / "pipe").c_str(), 0644), 0);
            fs::remove(active);
            QVERIFY(tool("/usr/bin/qemu-img", {"create", "-q", "-u", "-f", "qcow2", "-F", "raw", "-b",
                                               (m_root / "pipe").string(), active.string(), "64M"}));
            const auto node = domain.snapshot();
            QCOMPARE(node.home.layers.size(), std::size_t{2});
            QVERIFY(m_instances->growHome(domain.id, 128 * kMiB));
            return;
        }
        std::fstream header(active, std::ios::in | std::ios::out | std::ios::binary);
        if (attack == "data file") {
            header.seekp(79);
            header.put(4);
        } else if (attack == "not qcow2") {
            header.put('x');
        } else if (attack == "huge") {
            header.seekp(24);
            header.put(0x7f);
        }
        header.close();
        if (attack == "link" || attack == "fifo") {
            fs::remove(active);
            if (attack == "link") {
                fs::create_symlink("/etc/passwd", active);
            } else {
                QCOMPARE(::mkfifo(active.c_str(), 0600), 0);
            }
        }
        const auto begun = m_snapshots->begin(randomId<SnapshotId>(), domain.source());
        QVERIFY(!begun);
        QCOMPARE(begun.error().code, ErrorCode::HostFailure);
        QVERIFY(!m_instances->growHome(domain.id, 128 * kMiB));
        QCOMPARE(m_snapshots->onDisk()->size(), std::size_t{1});
    }
    void homeWithLayers_grows() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.write(0, 1);
        const auto node = domain.snapshot();
        QVERIFY(m_instances->growHome(domain.id, 96 * kMiB));
        QCOMPARE(*diskSizeOf(domain.home().layers[0]), 96 * kMiB);
        QCOMPARE(*diskSizeOf(node.home.layers[0]), 64 * kMiB);
        QCOMPARE(m_instances->growHome(domain.id, 80 * kMiB).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(domain.read(0), 1);
        domain.write(600, 3); // behind the end of the layer below
        QCOMPARE(domain.read(600), 3);
        domain.snapshot();
        QCOMPARE(*diskSizeOf(domain.home().layers[0]), 96 * kMiB);
        QCOMPARE(domain.read(600), 3);
        QVERIFY(!m_snapshots->findDamage(node));
    }

    // ---- damage

    void damage_isFound_data() {
        QTest::addColumn<QString>("part");
        QTest::addColumn<QString>("how");
        QTest::addColumn<bool>("atOnce"); // without reading everything
        for (const char* part : {"home.img", "system.qcow2", "memory.delta", "devices", "manifest.toml"}) {
            const bool isManifest = std::string_view(part) == "manifest.toml";
            QTest::addRow("%s missing", part) << part << "remove" << true;
            if (!isManifest) {
                QTest::addRow("%s shorter", part) << part << "shorten" << true;
                QTest::addRow("%s writable", part) << part << "mode" << true;
                QTest::addRow("%s flipped", part) << part << "flip" << false;
            }
        }
        QTest::newRow("manifest of another") << "manifest.toml"
                                             << "flip" << true;
        QTest::newRow("parent's memory missing") << "parent"
                                                 << "remove" << true;
        QTest::newRow("parent's memory writable") << "parent"
                                                  << "mode" << true;
    }
    void damage_isFound() {
        QFETCH(QString, part);
        QFETCH(QString, how);
        QFETCH(bool, atOnce);
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        const auto base = fullSnapshot(domain, std::nullopt, {{0, 'a'}});
        const auto parent = m_snapshots->memoryImage(base);
        QVERIFY(parent);
        const auto node = fullSnapshot(domain, *parent, {{1, 'b'}});
        QVERIFY(!m_snapshots->findDamage(node));
        const fs::path name = part == "home.img" ? "home.qcow2" : part.toStdString(); // the second is a layer above
        const fs::path file = part == "parent" ? parent->file : m_root / "state/snapshots" / node.id.text() / name;
        QVERIFY2(fs::exists(file), file.c_str());
        if (how == "remove") {
            fs::remove(file);
        } else if (how == "shorten") {
            fs::resize_file(file, fs::file_size(file) - 1);
        } else if (how == "mode") {
            QCOMPARE(::chmod(file.c_str(), 0640), 0);
        } else {
            std::fstream there(file, std::ios::in | std::ios::out | std::ios::binary);
            there.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
            there.put('\xa7');
        }
        QCOMPARE(m_snapshots->findMissing(node).has_value(), atOnce);
        const auto damage = m_snapshots->findDamage(node);
        QVERIFY(damage);
        QVERIFY2(damage->file == file, damage->file.c_str());
        QVERIFY(!damage->why.empty());
        QVERIFY(!m_snapshots->findDamage(base) || part == "parent");
    }
    void damageBelow_isFound() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        const auto first = domain.snapshot();
        const auto second = domain.snapshot();
        QCOMPARE(::chmod(first.home.layers[0].path.c_str(), 0600), 0);
        QVERIFY(m_snapshots->findMissing(second));
        fs::remove(first.home.layers[0].path);
        const auto missing = m_snapshots->findMissing(second);
        QVERIFY(missing && missing->file == first.home.layers[0].path);
    }

    // ---- memory

    void memory_isComposedOnce() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        const auto base = fullSnapshot(domain, std::nullopt, {{0, 'a'}, {5, 'b'}});
        const auto image = m_snapshots->memoryImage(base);
        QVERIFY2(image, image ? "" : image.error().message.c_str());
        QCOMPARE(modeOf(image->file), mode_t{0440});
        QCOMPARE(pageOf(image->file, 0), 'a');
        QCOMPARE(pageOf(image->file, 5), 'b');
        struct stat before {};
        QCOMPARE(::stat(image->file.c_str(), &before), 0);
        QVERIFY(*m_snapshots->memoryImage(base) == *image);
        open(m_root / "state");
        QVERIFY(*m_snapshots->memoryImage(base) == *image);
        struct stat after {};
        QCOMPARE(::stat(image->file.c_str(), &after), 0);
        QCOMPARE(after.st_ino, before.st_ino);

        const auto child = fullSnapshot(domain, *image, {{0, 'c'}});
        const auto childImage = m_snapshots->memoryImage(child);
        QVERIFY(childImage && childImage->digest != image->digest);
        QCOMPARE(pageOf(childImage->file, 0), 'c');
        QCOMPARE(pageOf(childImage->file, 5), 'b');
        // Made again when it was thrown away, but not without what it lies above.
        QVERIFY(m_snapshots->keepImages({image->file}));
        QVERIFY(fs::exists(image->file) && !fs::exists(childImage->file));
        QCOMPARE(entriesOf(m_root / "state/memory"), std::size_t{2});
        QVERIFY(*m_snapshots->memoryImage(child) == *childImage);
        QVERIFY(m_snapshots->keepImages({}));
        QCOMPARE(entriesOf(m_root / "state/memory"), std::size_t{0});
        const auto lost = m_snapshots->memoryImage(child);
        QVERIFY(!lost);
        QVERIFY(lost.error().message.find(image->file.string()) != std::string::npos);
    }
    void labelGivenMeanwhile_stays() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        auto node = fullSnapshot(domain, std::nullopt, {{0, 'a'}});
        const auto old = node;
        node.label = "mine";
        QVERIFY(m_snapshots->update(node));
        QVERIFY(m_snapshots->memoryImage(old));
        QCOMPARE(m_snapshots->all()->front().label, std::string("mine"));
    }
    void images_goWithTheLastThatNeedsThem() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        domain.start();
        const auto base = fullSnapshot(domain, std::nullopt, {{0, 'a'}});
        const auto image = m_snapshots->memoryImage(base);
        const auto child = fullSnapshot(domain, *image, {{1, 'b'}});
        domain.stop();
        QVERIFY(m_instances->removeHome(domain.id));
        QVERIFY(m_snapshots->memoryImage(child));
        QCOMPARE(entriesOf(m_root / "state/memory"), std::size_t{4});
        QVERIFY(m_snapshots->remove(child.id));
        QCOMPARE(entriesOf(m_root / "state/memory"), std::size_t{2});
        QVERIFY(fs::exists(image->file));
        QVERIFY(m_snapshots->remove(base.id));
        QCOMPARE(entriesOf(m_root / "state/memory"), std::size_t{0});
    }
    void diskSnapshot_hasNoMemory() {
        auto stores = this->stores();
        SampleDomain domain(stores);
        QCOMPARE(m_snapshots->memoryImage(domain.snapshot()).error().code, ErrorCode::InvalidArgument);
    }

private:
    void open(const fs::path& state) {
        const ImageLayout layout(state, m_root / "run", kEmulatorGroup);
        m_templates = std::make_unique<FileTemplateStore>(layout, m_clock, m_space);
        m_instances = std::make_unique<FileInstanceStore>(layout, m_space);
        m_snapshots = std::make_unique<FileSnapshotStore>(layout, m_space);
    }
    SnapshotStores stores() { return {*m_snapshots, *m_instances, m_installed, kEmulatorUid, writeLayer, readDisk}; }
    /// A snapshot with memory: `pages` are those that differ from the parent, each full of one letter.
    core::SnapshotRecord fullSnapshot(SampleDomain& domain, const std::optional<core::MemoryImageRef>& parent,
                                      const std::map<std::uint64_t, char>& pages) {
        const auto id = randomId<SnapshotId>();
        auto record = domain.record(id);
        record.kind = core::SnapshotKind::Full;
        record.memory = core::SnapshotMemory{};
        record.memory->machine.memory = kRam;
        record.memory->machine.version = "fake 1";
        record.memory->parent = parent;
        const auto files = m_snapshots->begin(id, domain.source());
        if (!files) {
            qWarning("%s", files.error().message.c_str());
            return record;
        }
        std::ofstream(files->devices) << std::string(5000, 'v');
        const UniqueFd delta(::open(files->delta.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        memory::DeltaWriter writer(delta.get(), "delta");
        memory::DeltaIndex index;
        index.ram = kRam;
        index.parent = parent ? parent->digest : std::string(memory::zeroParent());
        for (const auto& [page, letter] : pages) {
            index.append(page, 1, memory::RunKind::Data);
        }
        bool isGood = writer.begin(index).has_value();
        for (const auto& [page, letter] : pages) {
            isGood = isGood && writer.add(std::string(memory::kPage, letter));
        }
        isGood = isGood && writer.finish();
        auto made =
            m_snapshots->commit(*files, domain.source()).and_then([&] { return m_snapshots->publish(record, *files); });
        if (!isGood || !made) {
            qWarning("%s", made ? "the delta" : made.error().message.c_str());
        }
        return made.value_or(record);
    }
    static char pageOf(const fs::path& image, int page) {
        std::ifstream file(image, std::ios::binary);
        file.seekg(static_cast<std::streamoff>(memory::kPage) * page);
        return static_cast<char>(file.get());
    }
    static bool tool(const char* program, std::vector<std::string> arguments) {
        process::ProcessSpec spec;
        spec.program = program;
        spec.arguments = std::move(arguments);
        spec.environment = process::toolEnvironment();
        return process::runChecked(spec).has_value();
    }
    static mode_t modeOf(const fs::path& path) {
        struct stat status {};
        return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
    }
    static uid_t ownerOf(const fs::path& path) {
        struct stat status {};
        return ::lstat(path.c_str(), &status) == 0 ? status.st_uid : static_cast<uid_t>(-1);
    }
    static std::size_t entriesOf(const fs::path& folder) {
        std::error_code error;
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder, error), {}));
    }

    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_root;
    StoppedClock m_clock;
    SpaceProbe m_space = fileSystemSpace;
    core::InstalledTemplate m_installed;
    std::unique_ptr<FileTemplateStore> m_templates;
    std::unique_ptr<FileInstanceStore> m_instances;
    std::unique_ptr<FileSnapshotStore> m_snapshots;
};

QTEST_GUILESS_MAIN(TestSnapshotStore)
#include "tst_snapshot_store.moc"
