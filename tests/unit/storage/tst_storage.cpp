// SPDX-License-Identifier: Apache-2.0
#include "storage/database.hpp"
#include "storage/sqlite_domain_repository.hpp"
#include "storage/sqlite_instance_repository.hpp"
#include "storage/sqlite_snapshot_repository.hpp"
#include "support/contract/repository_contract.hpp"
#include "support/fakes/fake_repositories.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::storage;
using namespace bulkhead::tests;

namespace {

/// Does what only a stranger would do to the file.
void tamper(const std::filesystem::path& file, const char* sql) {
    sqlite3* database = nullptr;
    QCOMPARE(sqlite3_open(file.c_str(), &database), SQLITE_OK);
    char* why = nullptr;
    const int code = sqlite3_exec(database, sql, nullptr, nullptr, &why);
    QVERIFY2(code == SQLITE_OK, why);
    sqlite3_close(database);
}

} // namespace

class TestStorage : public QObject {
    Q_OBJECT

private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void contract_data() {
        QTest::addColumn<int>("clause");
        QTest::addColumn<bool>("real");
        int index = 0;
        for (const auto& [name, clause] : repositoryContract()) {
            QTest::addRow("sqlite: %s", name.c_str()) << index << true;
            QTest::addRow("fake: %s", name.c_str()) << index << false;
            ++index;
        }
    }
    void contract() {
        QFETCH(int, clause);
        QFETCH(bool, real);
        const auto check = repositoryContract().at(static_cast<std::size_t>(clause)).second;
        if (real) {
            const auto database = Database::open(file());
            QVERIFY2(database, database ? "" : database.error().message.c_str());
            SqliteDomainRepository domains(**database);
            SqliteInstanceRepository instances(**database);
            check(domains, instances);
        } else {
            FakeDatabase database;
            FakeDomainRepository domains(database);
            FakeInstanceRepository instances(database);
            check(domains, instances);
        }
    }

    void snapshotContract_data() {
        QTest::addColumn<int>("clause");
        QTest::addColumn<bool>("real");
        int index = 0;
        for (const auto& [name, clause] : snapshotRepositoryContract()) {
            QTest::addRow("sqlite: %s", name.c_str()) << index << true;
            QTest::addRow("fake: %s", name.c_str()) << index << false;
            ++index;
        }
    }
    void snapshotContract() {
        QFETCH(int, clause);
        QFETCH(bool, real);
        const auto check = snapshotRepositoryContract().at(static_cast<std::size_t>(clause)).second;
        if (real) {
            const auto database = Database::open(file());
            QVERIFY2(database, database ? "" : database.error().message.c_str());
            SqliteDomainRepository domains(**database);
            SqliteSnapshotRepository snapshots(**database);
            check(domains, snapshots);
        } else {
            FakeDatabase database;
            FakeDomainRepository domains(database);
            FakeSnapshotRepository snapshots(database);
            check(domains, snapshots);
        }
    }

    void records_surviveReopening() {
        const auto record = sampleDomain();
        {
            const auto database = Database::open(file());
            QVERIFY(SqliteDomainRepository(**database).insert(record));
        }
        const auto database = Database::open(file());
        QVERIFY(SqliteDomainRepository(**database).all()->front() == record);
    }
    void file_isForRootOnly_evenWithALooseUmask() {
        const mode_t before = ::umask(0);
        {
            const auto database = Database::open(file());
            QVERIFY(SqliteDomainRepository(**database).insert(sampleDomain()));
            for (const char* suffix : {"", "-wal", "-shm"}) {
                struct stat status {};
                QCOMPARE(::stat((file().string() + suffix).c_str(), &status), 0);
                QCOMPARE(status.st_mode & 07777, mode_t{0600});
            }
        }
        ::umask(before);
    }
    void open_refusesALink() {
        std::ofstream(path("target")).flush();
        std::filesystem::create_symlink(path("target"), file());
        QVERIFY(!Database::open(file()));
    }
    void open_setsTheKnobs() {
        const auto database = Database::open(file());
        for (const auto& [pragma, value] : std::vector<std::pair<std::string, std::string>>{
                 {"PRAGMA application_id", "1112229956"},
                 {"PRAGMA user_version", std::to_string(embeddedMigrations().size())},
                 {"PRAGMA journal_mode", "wal"},
                 {"PRAGMA synchronous", "2"},
                 {"PRAGMA foreign_keys", "1"}}) {
            std::string seen;
            QVERIFY((*database)->read([&](Connection& connection) -> Status {
                return connection.query(pragma, {}, [&](const Row& row) -> Status {
                    seen = row.text(0);
                    return {};
                });
            }));
            QCOMPARE(seen, value);
        }
    }

    void migrations_runOnceAndInOrder() {
        const std::vector<Migration> first{{"0001_a", "CREATE TABLE a (x INTEGER) STRICT"}};
        const std::vector<Migration> second{first[0], {"0002_b", "CREATE TABLE b (x INTEGER) STRICT"}};
        QVERIFY(Database::open(file(), first));
        QVERIFY(Database::open(file(), second));
        QVERIFY(Database::open(file(), second));
        const auto older = Database::open(file(), first);
        QVERIFY(!older);
        QCOMPARE(older.error().code, ErrorCode::Unavailable);
        QVERIFY(older.error().message.find("written by a newer Bulkhead") != std::string::npos);
        QVERIFY(older.error().message.find(file().string()) != std::string::npos);
        QVERIFY(older.error().message.find("0002_b") != std::string::npos);
        const auto other = Database::open(file(), {first[0], {"0002_c", ""}});
        QCOMPARE(other.error().code, ErrorCode::Unavailable);
    }
    void migration_thatFails_leavesNothing() {
        const Migration good{"0001_a", "CREATE TABLE a (x INTEGER) STRICT"};
        const auto failed = Database::open(file(), {good, {"0002_b", "CREATE TABLE b (x INTEGER) STRICT; NONSENSE"}});
        QVERIFY(!failed);
        QVERIFY(failed.error().message.starts_with("schema step 0002_b: "));
        // Table b is not there: the corrected step can make it.
        QVERIFY(Database::open(file(), {good, {"0002_b", "CREATE TABLE b (x INTEGER) STRICT"}}));
    }
    void damagedFile_isNamed_data() {
        QTest::addColumn<int>("offset");
        QTest::addColumn<QByteArray>("bytes");
        QTest::newRow("header") << 0 << QByteArray(100, 'x');
        QTest::newRow("schema page") << 100 << QByteArray(2000, '\xff');
        QTest::newRow("table page") << 4096 << QByteArray(4096 * 3, '\xff');
    }
    void damagedFile_isNamed() {
        QFETCH(int, offset);
        QFETCH(QByteArray, bytes);
        {
            const auto database = Database::open(file());
            QVERIFY(SqliteDomainRepository(**database).insert(sampleDomain()));
        }
        {
            std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
            stream.seekp(offset);
            stream.write(bytes.data(), bytes.size());
        }
        const auto database = Database::open(file());
        QVERIFY(!database);
        QVERIFY2(database.error().message.find("is damaged") != std::string::npos, database.error().message.c_str());
        QVERIFY(database.error().message.find(file().string()) != std::string::npos);
    }
    void databaseOfAnotherProgram_isLeftAlone() {
        tamper(file(), "CREATE TABLE photos (x)");
        const auto database = Database::open(file());
        QVERIFY(!database);
        QVERIFY(database.error().message.find("another program") != std::string::npos);
    }
    void unknownWord_isAnError_data() {
        QTest::addColumn<QByteArray>("sql");
        QTest::newRow("kind") << QByteArray("UPDATE domains SET kind = 'vm'");
        QTest::newRow("phase") << QByteArray("UPDATE domains SET phase = ''");
        QTest::newRow("id") << QByteArray("PRAGMA foreign_keys = OFF; UPDATE domains SET id = "
                                          "'../../../../../../../../etc/passwd..'");
        QTest::newRow("instance phase") << QByteArray("UPDATE instances SET phase = 'Running'");
        QTest::newRow("acceleration") << QByteArray("UPDATE instances SET acceleration = 'xen'");
    }
    void unknownWord_isAnError() {
        QFETCH(QByteArray, sql);
        {
            const auto database = Database::open(file());
            const auto domain = sampleDomain();
            QVERIFY(SqliteDomainRepository(**database).insert(domain));
            QVERIFY(SqliteInstanceRepository(**database).insert(sampleInstance(domain.id, 1)));
        }
        tamper(file(), sql.constData());
        const auto database = Database::open(file());
        QVERIFY(database);
        const auto domains = SqliteDomainRepository(**database).all();
        const auto instances = SqliteInstanceRepository(**database).all();
        QVERIFY(!domains || !instances);
        const Error error = !domains ? domains.error() : instances.error();
        QVERIFY2(error.message.find("unknown") != std::string::npos, error.message.c_str());
    }

    void fullDatabase_isNoSpace_andChangesNothing() {
        const auto database = Database::open(file());
        QVERIFY((*database)->execute("PRAGMA max_page_count = 12"));
        checkFull(**database);
    }
    void fullDisk_isNoSpace_andChangesNothing() {
        // A mount name space of our own; the test process goes away with it.
        if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
            QSKIP("needs the right to mount");
        }
        const std::string folder = path("small");
        std::filesystem::create_directory(folder);
        QCOMPARE(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=512k"), 0);
        {
            const auto database = Database::open(folder + "/db");
            QVERIFY(database);
            checkFull(**database);
            const auto before = SqliteDomainRepository(**database).all()->size();
            QVERIFY(before > 0);
        }
        ::umount2(folder.c_str(), MNT_DETACH);
    }

    void manyThreads_writeWithoutLoss() {
        const auto database = Database::open(file());
        SqliteDomainRepository domains(**database);
        std::vector<std::thread> threads;
        for (uid_t owner = 0; owner < 4; ++owner) {
            threads.emplace_back([&domains, owner] {
                for (int i = 0; i < 25; ++i) {
                    const auto record = sampleDomain("d" + std::to_string(i), owner);
                    if (!domains.insert(record) || !domains.setPhase(record.id, core::DomainRecord::Phase::Present)) {
                        return;
                    }
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        QCOMPARE(domains.all()->size(), std::size_t{100});
    }

private:
    static void checkFull(Database& database) {
        SqliteDomainRepository domains(database);
        std::size_t good = 0;
        Status last;
        while (last && good < 5000) {
            auto record = sampleDomain("d" + std::to_string(good));
            record.lastFailure = std::string(1000, 'x');
            last = domains.insert(record);
            good += last ? 1 : 0;
        }
        QVERIFY(!last);
        QVERIFY2(last.error().code == ErrorCode::NoSpace, last.error().message.c_str());
        const auto all = domains.all();
        QVERIFY2(all, all ? "" : all.error().message.c_str());
        QCOMPARE(all->size(), good);
    }
    [[nodiscard]] std::string path(const char* name) const { return m_folder->filePath(name).toStdString(); }
    [[nodiscard]] std::filesystem::path file() const { return path("bulkhead.db"); }

    std::unique_ptr<QTemporaryDir> m_folder;
};

QTEST_GUILESS_MAIN(TestStorage)
#include "tst_storage.moc"
