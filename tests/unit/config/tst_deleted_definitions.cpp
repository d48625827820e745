// SPDX-License-Identifier: Apache-2.0
#include "config/file_definition_store.hpp"
#include "config/file_deleted_definitions.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <iterator>
#include <string>

using namespace bulkhead;
using namespace bulkhead::config;
namespace fs = std::filesystem;

class TestDeletedDefinitions : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_users = fs::path(m_temporary->path().toStdString()) / "users";
        m_deleted = std::make_unique<FileDeletedDefinitions>(m_users);
        m_present = std::make_unique<FileDefinitionStore>(
            FileDefinitionStore::Folders{m_users / "none", m_users, {m_users / "none"}});
    }

    void nothing_isEmpty() {
        QVERIFY(m_deleted->all()->empty());
        QVERIFY(m_deleted->setAside(work(1)).has_value());
        QVERIFY(m_deleted->bringBack(work(1).id, 1000, "work").has_value());
        QVERIFY(m_deleted->remove(work(1).id, 1000).has_value());
    }
    void setAside_isNoDefinition_andComesBackAsItWas() {
        write("work", "# mine\ntemplate = \"minimal\"\nlabel = \"red\"\n");
        const auto what = work(1234);
        QVERIFY(m_deleted->setAside(what).has_value());
        QVERIFY(m_present->loadDomains().domains.empty());
        QVERIFY(m_present->loadDomains().problems.empty());
        QVERIFY(m_deleted->all().value() == std::vector{what});

        // Another one of that name is not touched by a second try, nor overwritten.
        write("work", "template = \"minimal\"\n");
        QVERIFY(m_deleted->setAside(what).has_value());
        QCOMPARE(m_present->loadDomains().domains.size(), std::size_t{1});
        QCOMPARE(m_deleted->bringBack(what.id, 1000, "work").error().code, ErrorCode::AlreadyExists);
        QCOMPARE(m_deleted->all()->size(), std::size_t{1});

        QVERIFY(m_deleted->bringBack(what.id, 1000, "other").has_value());
        QVERIFY(m_deleted->bringBack(what.id, 1000, "other").has_value());
        QVERIFY(m_deleted->all()->empty());
        std::ifstream file(m_users / "1000/other.toml");
        QCOMPARE(std::string(std::istreambuf_iterator<char>(file), {}),
                 std::string("# mine\ntemplate = \"minimal\"\nlabel = \"red\"\n"));
    }
    void removed_isGone_othersStay() {
        write("work", "template = \"minimal\"\n");
        const auto first = work(1);
        QVERIFY(m_deleted->setAside(first).has_value());
        write("work", "template = \"minimal\"\n");
        const auto second = work(2);
        QVERIFY(m_deleted->setAside(second).has_value());
        QCOMPARE(m_deleted->all()->size(), std::size_t{2});
        QVERIFY(m_deleted->remove(first.id, 1000).has_value());
        QVERIFY(m_deleted->all().value() == std::vector{second});
    }
    void strangeNames_areLeftAlone_data() {
        QTest::addColumn<QString>("name");
        const QString id = QString::fromStdString(randomId<DomainId>().text());
        QTest::newRow("no id") << "work.5.toml";
        QTest::newRow("no time") << "work." + id + ".toml";
        QTest::newRow("negative time") << "work." + id + ".-5.toml";
        QTest::newRow("zeros before") << "work." + id + ".05.toml";
        QTest::newRow("no name") << "." + id + ".5.toml";
        QTest::newRow("bad name") << "Work." + id + ".5.toml";
        QTest::newRow("another suffix") << "work." + id + ".5.toml~";
    }
    void strangeNames_areLeftAlone() {
        QFETCH(QString, name);
        fs::create_directories(m_users / "1000/deleted");
        std::ofstream(m_users / "1000/deleted" / name.toStdString()) << "x";
        QVERIFY(m_deleted->all()->empty());
    }
    void badNames_areRefused() {
        auto what = work(1);
        what.name = "../x";
        QCOMPARE(m_deleted->setAside(what).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(m_deleted->bringBack(what.id, 1000, "../x").error().code, ErrorCode::InvalidArgument);
    }

private:
    static core::SetAsideDefinition work(std::int64_t time) { return {randomId<DomainId>(), 1000, "work", time}; }
    void write(const std::string& name, const std::string& text) {
        fs::create_directories(m_users / "1000");
        std::ofstream(m_users / "1000" / (name + ".toml")) << text;
    }
    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_users;
    std::unique_ptr<FileDeletedDefinitions> m_deleted;
    std::unique_ptr<FileDefinitionStore> m_present;
};

QTEST_GUILESS_MAIN(TestDeletedDefinitions)
#include "tst_deleted_definitions.moc"
