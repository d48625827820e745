// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_warm_image_store.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <sstream>
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
        m_store = std::make_unique<FileWarmImageStore>(layout, m_clock);
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
    static core::WarmImageKey key(const std::string& size) {
        core::WarmImageKey key;
        key.templateName = "minimal";
        key.templateVersion = kVersion;
        key.size = size;
        key.memory = kMemory;
        key.vcpus = 1;
        key.machine = "fake 1";
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
    std::unique_ptr<FileWarmImageStore> m_store;
};

QTEST_GUILESS_MAIN(TestWarmImageStore)
#include "tst_warm_image_store.moc"
