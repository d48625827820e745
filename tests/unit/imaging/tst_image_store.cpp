// SPDX-License-Identifier: Apache-2.0
#include "base/scope_guard.hpp"
#include "imaging/file_instance_store.hpp"
#include "imaging/file_kept_homes.hpp"
#include "imaging/file_template_store.hpp"
#include "process/run.hpp"
#include "support/contract/image_store_contract.hpp"
#include "support/fakes/fake_image_store.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <fstream>
#include <map>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
using namespace bulkhead::tests;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kEmulatorUid = 1'900'000'000;
constexpr uid_t kStranger = 4711;
constexpr gid_t kEmulatorGroup = 4712;
constexpr uid_t kBuildUser = 4713;

class TickingClock final : public core::Clock {
public:
    std::int64_t now() override { return ++m_now; }
    void setBack(std::int64_t seconds) { m_now -= seconds; }

private:
    std::int64_t m_now = 1'700'000'000;
};

} // namespace

class TestImageStore : public QObject {
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
        // The store must be closed by its own modes, not by the temporary folder's.
        QCOMPARE(::chmod(m_root.c_str(), 0755), 0);
        open(m_root / "state");
    }

    void contract_data() {
        QTest::addColumn<int>("clause");
        QTest::addColumn<bool>("real");
        int index = 0;
        for (const auto& [name, clause] : imageStoreContract()) {
            QTest::addRow("disk: %s", name.c_str()) << index << true;
            QTest::addRow("fake: %s", name.c_str()) << index << false;
            ++index;
        }
    }
    void contract() {
        QFETCH(int, clause);
        QFETCH(bool, real);
        const auto check = imageStoreContract().at(static_cast<std::size_t>(clause)).second;
        FakeTemplateStore fakeTemplates;
        FakeInstanceStore fakeInstances;
        ImageStores disk{*m_templates, *m_instances, [&](const std::string& seed) { return build(seed); },
                         kEmulatorUid};
        ImageStores fake{fakeTemplates, fakeInstances,
                         [](const std::string& seed) {
                             return core::BuiltTemplate{"/x", "hash-" + seed};
                         },
                         kEmulatorUid};
        check(real ? disk : fake);
    }

    // ---- templates

    void installed_filesAreSharedAndImmutable() {
        const auto made = install("one");
        QCOMPARE(modeOf(m_root / "state"), mode_t{0711});
        QCOMPARE(modeOf(m_root / "state/templates"), mode_t{0710});
        QCOMPARE(modeOf(made.directory), mode_t{0710});
        for (const char* name : {"root.img", "vmlinuz", "initrd.img", "packages.txt", "manifest.toml"}) {
            struct stat status {};
            QCOMPARE(::lstat((made.directory / name).c_str(), &status), 0);
            QCOMPARE(status.st_mode & 07777, mode_t{0440});
            QCOMPARE(status.st_uid, uid_t{0});
            QCOMPARE(status.st_gid, kEmulatorGroup);
        }
        QVERIFY(made.sizeOnDisk < 2 * kMiB); // the holes are still there
        QCOMPARE(made.version.size(), std::size_t{32});
    }
    void sameContent_sameVersion_newManifest() {
        const auto first = install("one");
        auto again = build("one");
        again.definitionHash = "another";
        const auto second = m_templates->install(sampleTemplate(), again, {});
        QVERIFY2(second, second ? "" : second.error().message.c_str());
        QCOMPARE(second->version, first.version);
        QCOMPARE(m_templates->find("minimal")->definitionHash, std::string("another"));
        QCOMPARE(entriesOf(first.directory.parent_path()), std::size_t{1});
    }
    void samePackages_areConfirmed() {
        const auto made = install("one");
        QCOMPARE(made.checkedAt, made.builtAt);
        auto again = build("one");
        std::ofstream(again.directory / "root.img") << "other times in the same system";
        const auto same = m_templates->confirm("minimal", again);
        QVERIFY2(same, same ? "" : same.error().message.c_str());
        QVERIFY(*same);
        const auto checked = m_templates->find("minimal");
        QCOMPARE(checked->version, made.version);
        QCOMPARE(checked->builtAt, made.builtAt);
        QVERIFY(checked->checkedAt > made.checkedAt);
        QCOMPARE(modeOf(made.directory / "manifest.toml"), mode_t{0440});
        QCOMPARE(entriesOf(made.directory.parent_path()), std::size_t{1});

        std::ofstream(again.directory / "packages.txt") << "apt 2.7\n";
        QVERIFY(!*m_templates->confirm("minimal", again));
        QCOMPARE(m_templates->find("minimal")->checkedAt, checked->checkedAt);
        fs::remove(again.directory / "packages.txt");
        fs::create_symlink("/etc/passwd", again.directory / "packages.txt");
        QVERIFY(!m_templates->confirm("minimal", again));
    }
    void versionThatIsThere_isKnown() {
        const auto first = install("one");
        const auto second = install("two");
        QVERIFY(m_templates->has("minimal", first.version) && m_templates->has("minimal", second.version));
        QVERIFY(!m_templates->has("minimal", std::string(first.version.size(), '0')));
        QVERIFY(!m_templates->has("other", first.version));
        for (const char* const bad : {"", ".", "..", "../minimal", "a/b"}) {
            QVERIFY2(!m_templates->has("minimal", bad) && !m_templates->has(bad, first.version), bad);
        }
        fs::remove(first.directory / "root.img");
        QVERIFY(!m_templates->has("minimal", first.version));
    }
    void keptHome_getsAnotherOwnersName_andIsMeasured() {
        FileKeptHomes homes(ImageLayout(m_root / "state", m_root / "run", kEmulatorGroup));
        const auto id = randomId<DomainId>();
        QVERIFY(m_instances->createHome(id, 1000, "work", 64 * kMiB));
        const auto other = randomId<DomainId>();
        QVERIFY(m_instances->createHome(other, 1000, "other", 64 * kMiB));
        const fs::path folder = m_root / "state/homes" / id.text();
        std::map<fs::path, std::uintmax_t> before;
        for (const auto& entry : fs::directory_iterator(folder)) {
            if (entry.path().extension() != ".toml") {
                before[entry.path()] = entry.file_size();
            }
        }
        QVERIFY(!before.empty());
        QVERIFY(homes.rename(id, 1001, "work-2"));
        const auto noted = m_instances->homesOnDisk().value();
        QCOMPARE(noted.size(), std::size_t{2});
        QVERIFY(std::find(noted.begin(), noted.end(), core::HomeOnDisk{id, 1001, "work-2"}) != noted.end());
        QVERIFY(std::find(noted.begin(), noted.end(), core::HomeOnDisk{other, 1000, "other"}) != noted.end());
        for (const auto& [file, size] : before) {
            QVERIFY2(fs::exists(file) && fs::file_size(file) == size, file.c_str()); // the disk is what it was
        }
        QVERIFY(homes.rename(id, 1001, "work-2")); // again
        const auto size = homes.sizeOnDisk(id);
        QVERIFY(size && *size > 0 && *size < 64 * kMiB); // what it takes, not what it can hold
    }
    void keptHome_thatIsNotThere_isSuccess() {
        FileKeptHomes homes(ImageLayout(m_root / "state", m_root / "run", kEmulatorGroup));
        const auto id = randomId<DomainId>();
        QVERIFY(homes.rename(id, 1000, "work"));
        QCOMPARE(homes.sizeOnDisk(id).value(), Bytes{0});
        QVERIFY(!fs::exists(m_root / "state/homes" / id.text()));
    }
    /// What it is made of is not known any more, so nothing is written over it.
    void keptHome_ofWhichTheNoteIsDamaged_isLeftAlone() {
        FileKeptHomes homes(ImageLayout(m_root / "state", m_root / "run", kEmulatorGroup));
        const auto id = randomId<DomainId>();
        QVERIFY(m_instances->createHome(id, 1000, "work", 64 * kMiB));
        const fs::path note = m_root / "state/homes" / id.text() / "manifest.toml";
        QVERIFY(fs::exists(note));
        std::ofstream(note) << "not = [a note";
        QVERIFY(!homes.rename(id, 1000, "other"));
        std::ifstream file(note);
        QCOMPARE(std::string(std::istreambuf_iterator<char>(file), {}), std::string("not = [a note"));
        QVERIFY(homes.sizeOnDisk(id).value() > 0);
    }
    void oldVersions_stayWhileInUse() {
        const auto first = install("one");
        const auto second = install("two", {first.version});
        const auto third = install("three", {first.version});
        QVERIFY(fs::exists(first.directory));
        QVERIFY(fs::exists(second.directory));
        const auto fourth = install("four", {first.version});
        QVERIFY(fs::exists(first.directory));
        QVERIFY(!fs::exists(second.directory));
        QVERIFY(fs::exists(third.directory));
        QCOMPARE(m_templates->find("minimal")->version, fourth.version);
        install("five");
        QCOMPARE(entriesOf(first.directory.parent_path()), std::size_t{2});
    }
    /// A start has planned with the newest version, and has no record yet, when a build is installed.
    void versionBefore_staysForAStartThatIsPrepared() {
        const auto first = install("one");
        const auto plan = samplePlan(stores(), first, std::nullopt);
        install("two");
        const auto files = m_instances->prepareInstance(plan);
        QVERIFY2(files, files ? "" : files.error().message.c_str());
    }
    void useOfVersions_isAskedBeforeEachRemoval() {
        for (const char* seed : {"one", "two"}) {
            install(seed);
        }
        const auto versions = m_root / "state/templates/minimal";
        QVERIFY(m_templates->install(sampleTemplate(), build("three"), []() -> Result<std::vector<std::string>> {
            return fail(ErrorCode::Unavailable, "the database is away");
        }));
        QCOMPARE(entriesOf(versions), std::size_t{3}); // not known, so nothing goes
        QVERIFY(m_templates->install(sampleTemplate(), build("four"), [&]() -> Result<std::vector<std::string>> {
            std::vector<std::string> all;
            for (const auto& entry : fs::directory_iterator(versions)) {
                all.push_back(entry.path().filename());
            }
            return all;
        }));
        QCOMPARE(entriesOf(versions), std::size_t{4});
        int asked = 0;
        QVERIFY(m_templates->install(sampleTemplate(), build("five"), [&]() -> Result<std::vector<std::string>> {
            ++asked;
            return std::vector<std::string>{};
        }));
        QCOMPARE(entriesOf(versions), std::size_t{2});
        QCOMPARE(asked, 3);
    }
    void clockSetBack_doesNotHideTheNewBuild() {
        install("one");
        m_clock.setBack(86'400);
        const auto second = install("two");
        QCOMPARE(m_templates->find("minimal")->version, second.version);
        const auto third = install("three");
        QCOMPARE(m_templates->find("minimal")->version, third.version);
        QVERIFY(fs::exists(second.directory)); // and the version before is the one before
    }
    void brokenVersion_isLeftOut_data() {
        QTest::addColumn<QString>("damage");
        QTest::newRow("missing file") << "remove";
        QTest::newRow("bad manifest") << "manifest";
        QTest::newRow("link in place of a file") << "link";
    }
    void brokenVersion_isLeftOut() {
        QFETCH(QString, damage);
        const auto first = install("one");
        const auto second = install("two", {first.version});
        if (damage == "remove") {
            fs::remove(second.directory / "vmlinuz");
        } else if (damage == "manifest") {
            std::ofstream(second.directory / "manifest.toml") << "format = 9";
        } else {
            fs::remove(second.directory / "vmlinuz");
            fs::create_symlink("/etc/passwd", second.directory / "vmlinuz");
        }
        QCOMPARE(m_templates->find("minimal")->version, first.version);
        // And the same build can be installed over it.
        QCOMPARE(install("two", {first.version}).version, second.version);
        QCOMPARE(m_templates->find("minimal")->version, second.version);
    }
    void hostileBuild_isRefused_data() {
        QTest::addColumn<QString>("attack");
        for (const char* attack : {"link", "hard link", "fifo", "owner", "missing", "empty", "size", "folder"}) {
            QTest::newRow(attack) << attack;
        }
    }
    void hostileBuild_isRefused() {
        QFETCH(QString, attack);
        auto built = build("one");
        const fs::path kernel = built.directory / "vmlinuz";
        if (attack != "size" && attack != "folder") {
            fs::remove(kernel);
        }
        if (attack == "link") {
            fs::create_symlink("/etc/shadow", kernel);
        } else if (attack == "hard link") {
            std::ofstream(m_root / "other") << "secret";
            QCOMPARE(::chown((m_root / "other").c_str(), kBuildUser, kBuildUser), 0);
            fs::create_hard_link(m_root / "other", kernel);
        } else if (attack == "fifo") {
            QCOMPARE(::mkfifo(kernel.c_str(), 0600), 0);
            QCOMPARE(::chown(kernel.c_str(), kBuildUser, kBuildUser), 0);
        } else if (attack == "owner") {
            std::ofstream(kernel) << "x";
        } else if (attack == "empty") {
            std::ofstream(kernel).flush();
            QCOMPARE(::chown(kernel.c_str(), kBuildUser, kBuildUser), 0);
        } else if (attack == "size") {
            fs::resize_file(built.directory / "root.img", 64 * kMiB);
        } else if (attack == "folder") {
            fs::create_directory_symlink(built.directory, m_root / "linked");
            built.directory = m_root / "linked";
        }
        const auto made = m_templates->install(sampleTemplate(), built, {});
        QVERIFY(!made);
        QVERIFY(m_templates->installed()->empty());
        QCOMPARE(entriesOf(m_root / "state/templates"), std::size_t{0});
    }
    void hostileNames_neverBecomePaths() {
        auto definition = sampleTemplate("../../etc");
        QVERIFY(!m_templates->install(definition, build("one"), {}));
        QVERIFY(!m_templates->find("../x"));
        const auto made = install("two");
        auto plan = samplePlan(stores(), made, std::nullopt);
        plan.templateVersion = "../../../../../../../etc/passwd.";
        QCOMPARE(m_instances->prepareInstance(plan).error().code, ErrorCode::InvalidArgument);
        plan = samplePlan(stores(), made, std::nullopt);
        plan.emulatorUid = 0;
        QCOMPARE(m_instances->prepareInstance(plan).error().code, ErrorCode::InvalidArgument);
    }
    void leftovers_goAway() {
        const auto made = install("one");
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        for (const std::string name :
             {"templates/minimal/.new-x/y", "templates/minimal/.old-z", "homes/.new-a", "bases/.new-b"}) {
            fs::create_directories(m_root / "state" / name);
        }
        QVERIFY(m_templates->removeLeftovers());
        QCOMPARE(entriesOf(m_root / "state/templates/minimal"), std::size_t{1});
        QCOMPARE(entriesOf(m_root / "state/homes"), std::size_t{1});
        QCOMPARE(entriesOf(m_root / "state/bases"), std::size_t{0});
        QCOMPARE(m_templates->find("minimal")->version, made.version);
    }
    void largeSparseImage_isQuick() {
        auto built = build("one");
        fs::resize_file(built.directory / "root.img", 64 * kGiB);
        auto definition = sampleTemplate();
        definition.systemSize = 64 * kGiB;
        // No clock here: a copy that read the holes would run into the test's time-out.
        const auto made = m_templates->install(definition, built, {});
        QVERIFY2(made, made ? "" : made.error().message.c_str());
        QVERIFY(made->sizeOnDisk < 2 * kMiB);
    }

    // ---- space

    void noSpace_isRefusedBeforeAnything() {
        const auto made = install("one");
        m_space = [](const fs::path&) -> Result<Space> { return Space{100 * kGiB, kGiB}; };
        open(m_root / "state");
        const auto again = m_templates->install(sampleTemplate(), build("two"), {});
        QCOMPARE(again.error().code, ErrorCode::NoSpace);
        QVERIFY(again.error().message.find("1 GiB of 100 GiB") != std::string::npos);
        QCOMPARE(m_instances->createHome(randomId<DomainId>(), 1000, "work", kGiB).error().code, ErrorCode::NoSpace);
        QCOMPARE(m_instances->prepareInstance(samplePlan(stores(), made, std::nullopt)).error().code,
                 ErrorCode::NoSpace);
        QCOMPARE(entriesOf(m_root / "state/templates/minimal"), std::size_t{1});
        QCOMPARE(entriesOf(m_root / "state/homes"), std::size_t{0});
        QCOMPARE(entriesOf(m_root / "state/instances"), std::size_t{0});
    }
    void diskFullInTheMiddle_leavesNothing() {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
            QSKIP("needs the right to mount");
        }
        const fs::path small = m_root / "small";
        fs::create_directory(small);
        QCOMPARE(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=2m"), 0);
        const ScopeGuard unmount([&] { ::umount2(small.c_str(), MNT_DETACH); });
        m_space = [](const fs::path&) -> Result<Space> {
            return Space{100 * kGiB, 90 * kGiB};
        }; // it was free a moment ago
        open(small / "state");
        auto built = build("one");
        {
            std::fstream disk(built.directory / "root.img", std::ios::in | std::ios::out | std::ios::binary);
            std::string noise(4 * kMiB, 'n');
            disk.write(noise.data(), static_cast<std::streamsize>(noise.size()));
        }
        const auto made = m_templates->install(sampleTemplate(), built, {});
        QVERIFY(!made);
        QVERIFY2(made.error().code == ErrorCode::NoSpace, made.error().message.c_str());
        QCOMPARE(entriesOf(small / "state/templates"), std::size_t{0});

        const auto installed = install("two");
        std::ofstream(small / "filler") << std::string(4 * kMiB, 'f');
        const auto home = m_instances->createHome(randomId<DomainId>(), 1000, "work", 64 * kMiB);
        QVERIFY(!home);
        QVERIFY2(home.error().code == ErrorCode::NoSpace, home.error().message.c_str());
        QCOMPARE(entriesOf(small / "state/homes"), std::size_t{0});
        const auto started = m_instances->prepareInstance(samplePlan(stores(), installed, std::nullopt));
        QVERIFY(!started);
        QVERIFY2(started.error().code == ErrorCode::NoSpace, started.error().message.c_str());
        QCOMPARE(entriesOf(small / "state/instances"), std::size_t{0});
        QCOMPARE(entriesOf(small / "state/bases"), std::size_t{0});
    }

    // ---- homes and instances

    void home_isAnEmptyFileSystemOfRoot() {
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 8 * kGiB));
        const fs::path image = m_root / "state/homes" / domain.text() / "home.img";
        struct stat status {};
        QCOMPARE(::stat(image.c_str(), &status), 0);
        QCOMPARE(status.st_mode & 07777, mode_t{0600});
        QCOMPARE(status.st_uid, uid_t{0});
        QCOMPARE(static_cast<Bytes>(status.st_size), 8 * kGiB);
        QVERIFY(static_cast<Bytes>(status.st_blocks) * 512 < 32 * kMiB);
        const auto checked = tool("/sbin/e2fsck", {"-fn", image.string()});
        QVERIFY2(checked.status.isSuccess(), checked.output.c_str());
        const auto described = tool("/sbin/dumpe2fs", {"-h", image.string()});
        QVERIFY(described.output.find("Reserved block count:     0") != std::string::npos);
    }
    void lostNote_leavesTheHomeWithoutAName_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("absent") << QString();
        QTest::newRow("empty") << "";
        QTest::newRow("not TOML") << "owner = ";
        QTest::newRow("of a later format") << "format = 2\nowner = 1000\nname = 'work'\ncreated = 1\n";
        QTest::newRow("owner is a text") << "format = 1\nowner = '1000'\nname = 'work'\ncreated = 1\n";
        QTest::newRow("owner is nobody") << "format = 1\nowner = 4294967295\nname = 'work'\ncreated = 1\n";
        QTest::newRow("name is a path") << "format = 1\nowner = 1000\nname = '../x'\ncreated = 1\n";
        QTest::newRow("huge") << QString(1 << 20, '#');
    }
    void lostNote_leavesTheHomeWithoutAName() {
        QFETCH(QString, text);
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        const fs::path note = m_root / "state/homes" / domain.text() / "manifest.toml";
        QCOMPARE(modeOf(note), mode_t{0600});
        QCOMPARE(ownerOf(note), uid_t{0});
        fs::remove(note);
        if (!text.isNull()) {
            std::ofstream(note) << text.toStdString();
        }
        const auto homes = m_instances->homesOnDisk();
        QVERIFY(homes);
        QVERIFY(*homes == (std::vector<core::HomeOnDisk>{{domain, std::nullopt, ""}}));
    }
    void claimedHome_belongsToTheEmulator_andComesBack() {
        const auto made = install("one");
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        const auto plan = samplePlan(stores(), made, domain);
        const auto files = m_instances->prepareInstance(plan);
        QVERIFY2(files, files ? "" : files.error().message.c_str());
        const fs::path image = files->home.layers[0].path;
        QCOMPARE(ownerOf(image), kEmulatorUid);
        QCOMPARE(modeOf(image), mode_t{0600});
        QCOMPARE(ownerOf(files->system.layers[0].path), kEmulatorUid);
        QCOMPARE(modeOf(files->system.layers[0].path), mode_t{0600});
        QCOMPARE(ownerOf(files->tokenFile), kEmulatorUid);
        QCOMPARE(modeOf(files->tokenFile), mode_t{0400});
        QCOMPARE(fs::file_size(files->tokenFile), std::uintmax_t{32});
        QCOMPARE(ownerOf(files->tokenFile.parent_path()), uid_t{0}); // no emulator may rename anything
        QCOMPARE(modeOf(files->tokenFile.parent_path()), mode_t{0710});
        QCOMPARE(modeOf(files->agentSocket.parent_path()), mode_t{0700});
        QCOMPARE(ownerOf(files->agentSocket.parent_path()), uid_t{0});
        QVERIFY(files->agentSocket.native().size() < 200);
        QCOMPARE(files->emulatorGid, kEmulatorGroup);

        QVERIFY(m_instances->removeInstance(plan.instance, domain));
        QCOMPARE(ownerOf(image), uid_t{0});
        QVERIFY(fs::exists(image));
        QCOMPARE(entriesOf(m_root / "state/instances"), std::size_t{0});
        QCOMPARE(entriesOf(m_root / "run/instances"), std::size_t{0});
    }
    void damagedClaim_keepsAllHomes_data() {
        QTest::addColumn<QString>("kind");
        for (const char* kind : {"empty", "cut", "long", "link", "folder"}) {
            QTest::newRow(kind) << QString(kind);
        }
    }
    void damagedClaim_keepsAllHomes() {
        QFETCH(QString, kind);
        const auto made = install("one");
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        const auto plan = samplePlan(stores(), made, domain);
        QVERIFY(m_instances->prepareInstance(plan));
        const fs::path claim = m_root / "state/instances" / plan.instance.text() / "claim";
        fs::remove(claim);
        if (kind == "link") {
            std::ofstream(m_root / "elsewhere") << randomId<DomainId>().text();
            fs::create_symlink(m_root / "elsewhere", claim);
        } else if (kind == "folder") {
            fs::create_directory(claim);
        } else {
            std::ofstream(claim) << (kind == "empty" ? ""
                                     : kind == "cut" ? domain.text().substr(1)
                                                     : domain.text() + "x");
        }
        const auto again = m_instances->prepareInstance(samplePlan(stores(), made, domain));
        QVERIFY2(!again, "two emulators may write to one home");
        QVERIFY2(again.error().message.find(claim.string()) != std::string::npos, again.error().message.c_str());
        QCOMPARE(ownerOf(m_root / "state/homes" / domain.text() / "home.img"), kEmulatorUid);
        // It is not for ever: the instance can be removed, also when its record is lost, and gives back what it had.
        QVERIFY(m_instances->removeInstance(plan.instance, std::nullopt));
        QCOMPARE(ownerOf(m_root / "state/homes" / domain.text() / "home.img"), uid_t{0});
        QVERIFY(m_instances->prepareInstance(samplePlan(stores(), made, domain)));
    }
    void overlay_namesItsBase() {
        const auto files = m_instances->prepareInstance(samplePlan(stores(), install("one"), std::nullopt));
        QVERIFY(files);
        for (const core::Disk& disk : {files->system, files->home}) {
            const auto info = tool("/usr/bin/qemu-img", {"info", "-U", disk.layers[0].path.string()});
            QVERIFY(info.output.find("file format: qcow2") != std::string::npos);
            QVERIFY(info.output.find("backing file: " + disk.layers[1].path.string() + "\n") != std::string::npos);
            QVERIFY(info.output.find("backing file format: raw") != std::string::npos);
        }
        QCOMPARE(modeOf(files->home.layers[1].path), mode_t{0440});
    }
    void freshHomes_shareOneBase() {
        const auto made = install("one");
        const auto first = m_instances->prepareInstance(samplePlan(stores(), made, std::nullopt));
        const auto second = m_instances->prepareInstance(samplePlan(stores(), made, std::nullopt));
        QVERIFY(first && second);
        QCOMPARE(first->home.layers[1].path, second->home.layers[1].path);
        QVERIFY(first->home.layers[0].path != second->home.layers[0].path);
        QCOMPARE(entriesOf(m_root / "state/bases"), std::size_t{1});
    }
    void linkInsteadOfAHome_isRefused() {
        const auto made = install("one");
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        const fs::path image = m_root / "state/homes" / domain.text() / "home.img";
        fs::remove(image);
        std::ofstream(m_root / "shadow") << "secret";
        fs::create_symlink(m_root / "shadow", image);
        QVERIFY(!m_instances->prepareInstance(samplePlan(stores(), made, domain)));
        QCOMPARE(ownerOf(m_root / "shadow"), uid_t{0});
        QCOMPARE(entriesOf(m_root / "state/instances"), std::size_t{0});
    }
    void loosenedModes_areRepaired() {
        install("one");
        QCOMPARE(::chmod((m_root / "state/homes").c_str(), 0777), 0);
        QVERIFY(m_instances->createHome(randomId<DomainId>(), 1000, "work", 64 * kMiB));
        QCOMPARE(modeOf(m_root / "state/homes"), mode_t{0710});
    }

    /// Another local user opens nothing and lists nothing; the emulator opens exactly what is its own.
    void onlyTheRightUsers_canOpen() {
        const auto made = install("one");
        const auto domain = randomId<DomainId>();
        QVERIFY(m_instances->createHome(domain, 1000, "work", 64 * kMiB));
        const auto kept = m_instances->prepareInstance(samplePlan(stores(), made, domain));
        const auto fresh = m_instances->prepareInstance(samplePlan(stores(), made, std::nullopt));
        QVERIFY(kept && fresh);
        std::vector<fs::path> everything;
        for (const char* below : {"state", "run"}) {
            for (const auto& entry : fs::recursive_directory_iterator(m_root / below)) {
                everything.push_back(entry.path());
            }
        }
        QVERIFY(everything.size() > 15);
        for (const fs::path& path : everything) {
            QVERIFY2(!canRead({kStranger, kStranger}, path), path.c_str());
        }
        // Positive controls, and what an emulator may do.
        const process::Identity emulator{kEmulatorUid, kEmulatorGroup};
        const process::Identity other{kEmulatorUid + 2, kEmulatorGroup};
        for (const core::InstanceFiles* files : {&*kept, &*fresh}) {
            for (const fs::path& path : {files->kernel, files->initrd, files->tokenFile, files->system.layers[0].path,
                                         files->system.layers[1].path, files->home.layers[0].path}) {
                QVERIFY2(canRead(emulator, path), path.c_str());
            }
            for (const fs::path& path : {files->tokenFile, files->system.layers[0].path, files->home.layers[0].path}) {
                QVERIFY2(!canRead(other, path), path.c_str());
            }
            QVERIFY(!canRead(emulator, files->agentSocket.parent_path()));
            QVERIFY(!canWrite(emulator, files->system.layers[1].path));
            QVERIFY(!canWrite(emulator, files->kernel));
            QVERIFY(canWrite(emulator, files->system.layers[0].path));
        }
    }

private:
    void open(const fs::path& state) {
        const ImageLayout layout(state, m_root / "run", kEmulatorGroup);
        m_templates = std::make_unique<FileTemplateStore>(layout, m_clock, m_space);
        m_instances = std::make_unique<FileInstanceStore>(layout, m_space);
    }
    ImageStores stores() { return {*m_templates, *m_instances, {}, kEmulatorUid}; }

    core::BuiltTemplate build(const std::string& seed) {
        const fs::path folder = m_root / ("build-" + seed + "-" + randomUuidText());
        fs::create_directory(folder);
        std::ofstream(folder / "root.img") << "file system " << seed;
        fs::resize_file(folder / "root.img", 128 * kMiB);
        std::ofstream(folder / "vmlinuz") << "kernel";
        std::ofstream(folder / "initrd.img") << "initrd " << seed;
        std::ofstream(folder / "packages.txt") << "apt 2.6\n";
        for (const auto& entry : fs::directory_iterator(folder)) {
            [[maybe_unused]] const int given = ::chown(entry.path().c_str(), kBuildUser, kBuildUser);
        }
        [[maybe_unused]] const int given = ::chown(folder.c_str(), kBuildUser, kBuildUser);
        return {folder, "hash-" + seed};
    }
    core::InstalledTemplate install(const std::string& seed, const std::vector<std::string>& inUse = {}) {
        const auto made = m_templates->install(sampleTemplate(), build(seed),
                                               [&]() -> Result<std::vector<std::string>> { return inUse; });
        if (!made) {
            qWarning("%s", made.error().message.c_str());
            return {};
        }
        return *made;
    }

    static process::RunResult tool(const char* program, std::vector<std::string> arguments) {
        process::ProcessSpec spec;
        spec.program = program;
        spec.arguments = std::move(arguments);
        spec.environment = process::toolEnvironment();
        const auto result = process::run(spec);
        return result ? *result : process::RunResult{};
    }
    static bool succeeds(const process::Identity& who, const char* script, const fs::path& path) {
        process::ProcessSpec spec;
        spec.program = "/bin/sh";
        spec.arguments = {"-c", script, "sh", path.string()};
        spec.environment = process::toolEnvironment();
        spec.identity = who;
        const auto result = process::run(spec);
        return result && result->status.isSuccess();
    }
    static bool canRead(const process::Identity& who, const fs::path& path) {
        return succeeds(who, "if [ -d \"$1\" ]; then ls \"$1\"; else head -c 1 \"$1\"; fi", path);
    }
    static bool canWrite(const process::Identity& who, const fs::path& path) {
        return succeeds(who, ": >>\"$1\"", path);
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
    TickingClock m_clock;
    SpaceProbe m_space = fileSystemSpace;
    std::unique_ptr<FileTemplateStore> m_templates;
    std::unique_ptr<FileInstanceStore> m_instances;
};

QTEST_GUILESS_MAIN(TestImageStore)
#include "tst_image_store.moc"
