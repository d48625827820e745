// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_warm_image_store.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <fstream>
#include <linux/fs.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
namespace fs = std::filesystem;

namespace {

constexpr Bytes kMemory = kMiB;
const std::string kVersion(32, 'a');
const std::string kDigest(64, 'd');

class TickingClock final : public core::Clock {
public:
    std::int64_t now() override { return ++m_now; }

private:
    std::int64_t m_now = 1'700'000'000;
};

Result<std::vector<fs::path>> nothing() {
    return std::vector<fs::path>{};
}

} // namespace

class TestWarmImageStore : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_state = fs::path(m_temporary->path().toStdString()) / "state";
        fs::create_directories(m_state / "templates/minimal" / kVersion);
        const ImageLayout layout(m_state, m_state / "run", ::getegid(), ::geteuid(), ::getegid());
        m_isFull = false;
        m_store = std::make_unique<FileWarmImageStore>(layout, m_clock, [this](const fs::path&) {
            return Result<core::InstanceStore::Space>({100 * kGiB, m_isFull ? 0 : 90 * kGiB});
        });
    }

    void published_isFoundWithItsDigest() {
        const auto image = make("small", nothing);
        QVERIFY2(image, image ? "" : image.error().message.c_str());
        QCOMPARE(image->memoryDigest, kDigest);
        const auto found = m_store->find(key("small"));
        QVERIFY(found);
        QCOMPARE(found->memory, image->memory);
        QCOMPARE(found->memoryDigest, kDigest);
        const fs::path folder = image->memory.parent_path();
        for (const char* part : {"memory", "memory.chunks", "devices", "system.qcow2", "manifest.toml"}) {
            struct stat status {};
            QCOMPARE(::stat((folder / part).c_str(), &status), 0);
            QCOMPARE(status.st_mode & 07777U, mode_t{0440});
        }
        QVERIFY(!m_store->find(key("large")));
    }
    void firstLabel_getsWhatIsThere_others_getCopies() {
        const auto made = make("small", nothing);
        QVERIFY(!m_store->find(key("small", "red")));
        const auto red = m_store->provide(key("small", "red"), nothing);
        QVERIFY2(red, red ? "" : red.error().message.c_str());
        QCOMPARE(red->memory, made->memory);
        QCOMPARE(m_store->find(key("small", "red"))->memory, made->memory);
        QVERIFY(!m_store->find(key("small", "blue")));
        const auto blue = m_store->provide(key("small", "blue"), nothing);
        QVERIFY2(blue, blue ? "" : blue.error().message.c_str());
        QVERIFY(blue->memory != red->memory);
        QCOMPARE(blue->key.label, std::string("blue"));
        QCOMPARE(blue->memoryDigest, kDigest);
        QCOMPARE(blue->madeAt, red->madeAt);
        for (const char* part : {"memory", "memory.chunks", "devices", "system.qcow2", "manifest.toml"}) {
            const fs::path one = red->memory.parent_path() / part;
            const fs::path other = blue->memory.parent_path() / part;
            struct stat first {};
            struct stat second {};
            QCOMPARE(::stat(one.c_str(), &first), 0);
            QCOMPARE(::stat(other.c_str(), &second), 0);
            QVERIFY2(first.st_ino != second.st_ino, part);
            QCOMPARE(second.st_mode & 07777U, mode_t{0440});
            if (std::string_view(part) != "manifest.toml") {
                QCOMPARE(bytesOf(other), bytesOf(one));
            }
        }
        // A second call makes no second one, and nobody's name any one will do.
        QCOMPARE(m_store->provide(key("small", "blue"), nothing)->memory, blue->memory);
        QCOMPARE(m_store->all("minimal", kVersion).size(), std::size_t{2});
        QVERIFY(m_store->find(key("small")));
        // Of another size there is none to copy.
        QCOMPARE(m_store->provide(key("large", "blue"), nothing).error().code, ErrorCode::NotFound);
    }
    void newOne_takesThePlaceOfAllLabels() {
        QVERIFY(make("small", nothing));
        const auto red = m_store->provide(key("small", "red"), nothing);
        const auto blue = m_store->provide(key("small", "blue"), nothing);
        QVERIFY(red && blue);
        const auto next = make("small", nothing);
        QVERIFY(!fs::exists(red->memory) && !fs::exists(blue->memory));
        QVERIFY(!m_store->find(key("small", "red")) && !m_store->find(key("small", "blue")));
        QCOMPARE(m_store->provide(key("small", "blue"), nothing)->memory, next->memory);
    }
    void damagedOne_isNotCopied() {
        QVERIFY(make("small", nothing));
        const auto red = m_store->provide(key("small", "red"), nothing);
        fs::permissions(red->devices, fs::perms::owner_all);
        std::fstream(red->devices) << "X"; // of the same size
        const auto blue = m_store->provide(key("small", "blue"), nothing);
        if (isCloning(red->devices)) {
            return; // no byte was read
        }
        QVERIFY(!blue);
        QVERIFY2(blue.error().message.find("is damaged") != std::string::npos, blue.error().message.c_str());
        // And nothing of it stays.
        QCOMPARE(std::distance(fs::directory_iterator(red->memory.parent_path().parent_path()), {}), 1);
    }
    void leastUsed_goesFirst_butForThoseInUse() {
        QVERIFY(make("small", nothing));
        const auto red = m_store->provide(key("small", "red"), nothing);
        const auto blue = m_store->provide(key("small", "blue"), nothing);
        const auto green = m_store->provide(key("small", "green"), nothing);
        QVERIFY(red && blue && green);
        m_store->noteUse(*blue);
        m_store->noteUse(*red);
        QVERIFY(m_store->find(key("small", "blue"))->lastUsedAt < m_store->find(key("small", "red"))->lastUsedAt);
        QCOMPARE(m_store->find(key("small", "green"))->lastUsedAt, std::int64_t{0});
        // Where no room is made by it the last that could go has gone.
        m_isFull = true;
        const auto inUse = [&]() -> Result<std::vector<fs::path>> { return std::vector<fs::path>{green->memory}; };
        const auto refused = m_store->provide(key("small", "orange"), inUse);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, ErrorCode::NoSpace);
        QVERIFY(m_store->find(key("small", "green")) && !m_store->find(key("small", "blue")));
        m_isFull = false;
        QVERIFY(m_store->provide(key("small", "orange"), inUse));
    }
    void thereAreOnlySoMany() {
        QVERIFY(make("small", nothing));
        for (std::size_t i = 0; i < core::WarmImageStore::kMostImages + 2; ++i) {
            const auto image = m_store->provide(key("small", "label-" + std::to_string(i)), nothing);
            QVERIFY2(image, image ? "" : image.error().message.c_str());
            m_store->noteUse(*image);
        }
        QCOMPARE(m_store->all("minimal", kVersion).size(), core::WarmImageStore::kMostImages);
        QVERIFY(m_store->find(key("small", "label-" + std::to_string(core::WarmImageStore::kMostImages + 1))));
    }
    void next_takesThePlaceOfThatOfItsSize() {
        const auto first = make("small", nothing);
        const auto other = make("large", nothing);
        const auto second = make("small", nothing);
        QVERIFY(!fs::exists(first->memory));
        QVERIFY(fs::exists(other->memory));
        QCOMPARE(m_store->find(key("small"))->memory, second->memory);
    }
    /// Another device, another image; neither takes the other's place.
    void sound_isAnImageOfItsOwn() {
        const auto silent = make("small", nothing);
        auto audible = key("small");
        audible.audio = core::Audio::Out;
        QVERIFY(!m_store->find(audible));
        QVERIFY(make(audible, nothing));
        QVERIFY(m_store->find(audible));
        QCOMPARE(m_store->find(key("small"))->memory, silent->memory);
    }
    void manifestOfAnEarlierVersion_isWithoutSound() {
        const auto image = make("small", nothing);
        const fs::path file = image->memory.parent_path() / "manifest.toml";
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        std::string earlier = text.str();
        const std::string line = "audio = 'off'\n";
        const auto at = earlier.find(line);
        QVERIFY2(at != std::string::npos, earlier.c_str());
        earlier.erase(at, line.size());
        fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
        std::ofstream(file) << earlier;
        QVERIFY(m_store->find(key("small")));
    }
    void usedOne_stays_butNoStartFindsIt_data() {
        QTest::addColumn<QString>("use");
        QTest::newRow("its memory") << "memory";
        QTest::newRow("its layer") << "system.qcow2";
        QTest::newRow("unknown") << "";
    }
    void usedOne_stays_butNoStartFindsIt() {
        QFETCH(QString, use);
        const auto first = make("small", nothing);
        const fs::path folder = first->memory.parent_path();
        const auto inUse = [&]() -> Result<std::vector<fs::path>> {
            if (use.isEmpty()) {
                return fail(ErrorCode::Unavailable, "the database is away");
            }
            return std::vector<fs::path>{folder / use.toStdString()};
        };
        const auto second = make("small", inUse);
        QVERIFY(second);
        QVERIFY(fs::exists(first->memory) && fs::exists(folder / "memory.chunks"));
        QCOMPARE(m_store->find(key("small"))->memory, second->memory);
        QCOMPARE(m_store->all("minimal", kVersion).size(), std::size_t{1});
        // Also when the one that has taken its place is out of use again.
        m_store->remove(*second);
        QVERIFY(!m_store->find(key("small")));
        // With the next they go, whatever that is of.
        const auto third = make("large", nothing);
        QVERIFY(third);
        QVERIFY(!fs::exists(first->memory) && !fs::exists(second->memory));
        QVERIFY(m_store->find(key("large")));
    }
    void use_isAskedBeforeEachRemoval() {
        const auto first = make("small", [] { return nothing(); });
        int asked = 0;
        QVERIFY(make("small", [&] {
            ++asked;
            return nothing();
        }));
        QCOMPARE(asked, 1);
    }
    void manifestOfAnEarlierVersion_isNotFound_andReplaced() {
        const auto image = make("small", nothing);
        const fs::path manifest = image->memory.parent_path() / "manifest.toml";
        std::ifstream in(manifest);
        std::string text((std::istreambuf_iterator<char>(in)), {});
        in.close();
        text.replace(text.find("format = 2"), 10, "format = 1");
        fs::remove(manifest);
        std::ofstream(manifest) << text;
        QVERIFY(!m_store->find(key("small")));
        QVERIFY(make("small", nothing));
        QVERIFY(!fs::exists(manifest));
        QVERIFY(m_store->find(key("small")));
    }
    void damaged_isNotFound_data() {
        QTest::addColumn<QString>("part");
        for (const char* part : {"memory", "devices", "system.qcow2", "manifest.toml"}) {
            QTest::newRow(part) << part;
        }
    }
    void damaged_isNotFound() {
        QFETCH(QString, part);
        const auto image = make("small", nothing);
        const fs::path file = image->memory.parent_path() / part.toStdString();
        fs::permissions(file, fs::perms::owner_all);
        fs::resize_file(file, fs::file_size(file) / 2);
        QVERIFY(!m_store->find(key("small")));
    }
    void unfinished_isNotSeen() {
        const auto folder = m_store->begin(key("small"), kMemory);
        QVERIFY(folder);
        QVERIFY(m_store->all("minimal", kVersion).empty());
        m_store->discard(*folder);
        QVERIFY(!fs::exists(*folder));
    }

private:
    static QByteArray bytesOf(const fs::path& file) {
        std::ifstream in(file);
        return QByteArray::fromStdString(std::string(std::istreambuf_iterator<char>(in), {}));
    }
    static bool isCloning(const fs::path& file) {
        const fs::path other = file.string() + "-clone";
        const UniqueFd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
        const UniqueFd to(::open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        const bool isCloned = ::ioctl(to.get(), FICLONE, from.get()) == 0;
        fs::remove(other);
        return isCloned;
    }
    static core::WarmImageKey key(const std::string& size, const std::string& label = {}) {
        core::WarmImageKey key;
        key.templateName = "minimal";
        key.templateVersion = kVersion;
        key.size = size;
        key.memory = kMemory;
        key.vcpus = 1;
        key.machine = "fake 1";
        key.label = label;
        return key;
    }
    Result<core::WarmImage> make(const std::string& size, const core::WarmImageStore::FilesInUse& filesInUse) {
        return make(key(size), filesInUse);
    }
    Result<core::WarmImage> make(const core::WarmImageKey& wanted, const core::WarmImageStore::FilesInUse& filesInUse) {
        const auto folder = m_store->begin(wanted, kMemory);
        if (!folder) {
            return fail(folder.error());
        }
        for (const char* part : {"memory", "memory.chunks", "devices"}) {
            std::ofstream(*folder / part) << part;
        }
        fs::resize_file(*folder / "memory", kMemory);
        const fs::path layer = m_state / "layer";
        std::ofstream(layer) << "a layer";
        return m_store->publish(wanted, *folder, layer, kDigest, filesInUse);
    }

    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_state;
    TickingClock m_clock;
    bool m_isFull = false;
    std::unique_ptr<FileWarmImageStore> m_store;
};

QTEST_GUILESS_MAIN(TestWarmImageStore)
#include "tst_warm_image_store.moc"
