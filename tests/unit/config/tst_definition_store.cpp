// SPDX-License-Identifier: Apache-2.0
#include "config/file_definition_store.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::config;
namespace fs = std::filesystem;

class TestDefinitionStore : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_root = m_temporary->path().toStdString();
        fs::create_directories(m_root / "etc");
        fs::create_directories(m_root / "t1");
        fs::create_directories(m_root / "t2");
        m_store = std::make_unique<FileDefinitionStore>(FileDefinitionStore::Folders{
            m_root / "etc", m_root / "users", {m_root / "t1", m_root / "t2", m_root / "absent"}});
    }

    void nothing_isEmpty() {
        fs::remove(m_root / "etc");
        const auto loaded = m_store->loadDomains();
        QVERIFY(loaded.domains.empty());
        QVERIFY(loaded.problems.empty());
        QVERIFY(m_store->loadTemplates().problems.empty());
    }
    void saved_isLoadedAndRemoved() {
        const auto saved = m_store->save(domain());
        QVERIFY2(saved, saved ? "" : saved.error().message.c_str());
        QCOMPARE(saved->file, (m_root / "users/1000/work.toml").string());
        auto loaded = m_store->loadDomains();
        QVERIFY(loaded.problems.empty());
        QCOMPARE(loaded.domains.size(), std::size_t{1});
        QVERIFY(loaded.domains.front() == *saved);
        QCOMPARE(modeOf("users"), mode_t{0700});
        QCOMPARE(modeOf("users/1000"), mode_t{0700});
        QCOMPARE(modeOf("users/1000/work.toml"), mode_t{0600});

        auto changed = domain();
        changed.label = "red";
        QVERIFY(m_store->save(changed));
        QCOMPARE(m_store->loadDomains().domains.front().label, std::string("red"));
        QCOMPARE(std::distance(fs::directory_iterator(m_root / "users/1000"), {}), std::ptrdiff_t{1});

        QVERIFY(m_store->removeDefinition(*saved));
        QVERIFY(m_store->removeDefinition(*saved));
        QVERIFY(m_store->loadDomains().domains.empty());
    }
    void comments_surviveAChange_data() {
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        QTest::newRow("values") << "# mine\n\nlabel = \"gray\"   # quiet\ntemplate = 'minimal'\nsize=\"small\"\n# end\n"
                                << "# mine\n\nlabel = \"red\"   # quiet\ntemplate = 'minimal'\nsize=\"large\"\n# end\n"
                                   "tags = [\"a\", \"b\"]\nhome_size = \"2GiB\"\n";
        QTest::newRow("no newline at the end") << "template = \"minimal\" # t\nsize = \"large\"\nlabel = \"red\""
                                               << "template = \"minimal\" # t\nsize = \"large\"\nlabel = \"red\"\ntags "
                                                  "= [\"a\", \"b\"]\nhome_size = \"2GiB\"\n";
        QTest::newRow("a list over lines, and no ASCII")
            << QString::fromUtf8("# b\u00fcro \u2014 \u00e9\ntemplate = \"minimal\"\ntags = [ # \u00fc\n  \"x\", # "
                                 "\u00fc\n  \"y\" ] # t\u00e4gs\n"
                                 "size = \"large\"\n\"label\" = \"gray\" # \u00fc\nhome_size = \"2GiB\"\n")
            << QString::fromUtf8("# b\u00fcro \u2014 \u00e9\ntemplate = \"minimal\"\ntags = [\"a\", \"b\"] # "
                                 "t\u00e4gs\nsize = \"large\"\n"
                                 "\"label\" = \"red\" # \u00fc\nhome_size = \"2GiB\"\n");
        QTest::newRow("lines of another system") << "# x\r\ntemplate = \"minimal\"\r\nlabel = \"gray\" # y\r\nsize = "
                                                    "\"large\"\r\ntags = [\"a\", \"b\"]\r\nhome_size = \"1GiB\"\r\n"
                                                 << "# x\r\ntemplate = \"minimal\"\r\nlabel = \"red\" # y\r\nsize = "
                                                    "\"large\"\r\ntags = [\"a\", \"b\"]\r\nhome_size = \"2GiB\"\r\n";
    }
    void comments_surviveAChange() {
        QFETCH(QString, before);
        QFETCH(QString, after);
        write("users/1000/work.toml", before.toStdString());
        auto wanted = m_store->reload(domain());
        QVERIFY2(wanted, wanted ? "" : wanted.error().message.c_str());
        wanted->label = "red";
        wanted->size = "large";
        wanted->tags = {"a", "b"};
        wanted->homeSize = 2 * kGiB;
        QVERIFY(m_store->save(*wanted));
        QCOMPARE(textOf("users/1000/work.toml"), after);
        QVERIFY(*m_store->reload(*wanted) == *wanted);
        wanted->tags.clear();
        QVERIFY(m_store->save(*wanted));
        QVERIFY(textOf("users/1000/work.toml").contains("tags = []"));
        QVERIFY(*m_store->reload(*wanted) == *wanted);
    }
    /// What cannot be kept gives way to the definition, never the other way round.
    void textThatCannotBeKept_isWrittenAnew() {
        write("users/1000/work.toml", "template = \"minimal\" # t\nsize = \"large\" # s\n");
        auto wanted = m_store->reload(domain());
        QVERIFY(wanted);
        wanted->size.clear();
        QVERIFY(m_store->save(*wanted));
        QVERIFY(*m_store->reload(*wanted) == *wanted);
        QVERIFY(textOf("users/1000/work.toml").startsWith("# Written by bulkheadd."));
    }
    void reload_saysWhatIsWrong() {
        QCOMPARE(m_store->reload(domain()).error().code, ErrorCode::NotFound);
        write("users/1000/work.toml", "template = \"minimal\"\nsize = 1\n");
        const auto broken = m_store->reload(domain());
        QVERIFY2(broken.error().message.find("work.toml:2:8: ") != std::string::npos, broken.error().message.c_str());
        auto managed = domain();
        managed.isManaged = true;
        QCOMPARE(m_store->reload(managed).error().code, ErrorCode::NotAuthorized);
    }
    void save_refuses_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("templateName");
        QTest::addColumn<bool>("managed");
        QTest::newRow("path as a name") << "../../etc/x"
                                        << "minimal" << false;
        QTest::newRow("reserved name") << "dom0"
                                       << "minimal" << false;
        QTest::newRow("TOML in a value") << "work"
                                         << "minimal\"\nowner = 0 #" << false;
        QTest::newRow("an admin's") << "work"
                                    << "minimal" << true;
    }
    void save_refuses() {
        QFETCH(QString, name);
        QFETCH(QString, templateName);
        QFETCH(bool, managed);
        auto bad = domain();
        bad.name = name.toStdString();
        bad.templateName = templateName.toStdString();
        bad.isManaged = managed;
        QVERIFY(!m_store->save(bad));
        QVERIFY(!fs::exists(m_root / "users"));
    }
    void oneBadFile_doesNotHideTheOthers() {
        write("etc/good.toml", "owner = 1000\ntemplate = \"minimal\"\n");
        write("etc/bad.toml", "owner = 1000\nx");
        write("etc/good.toml~", "an editor's copy");
        write("users/1000/also.toml", "template = \"minimal\"\n");
        write("users/alice/lost.toml", "template = \"minimal\"\n");
        const auto loaded = m_store->loadDomains();
        QCOMPARE(loaded.domains.size(), std::size_t{2});
        QVERIFY(loaded.domains[0].isManaged);
        QVERIFY(!loaded.domains[1].isManaged);
        QCOMPARE(loaded.problems.size(), std::size_t{2});
        QVERIFY2(loaded.problems[0].error.message.starts_with((m_root / "etc/bad.toml").string() + ":2:"),
                 loaded.problems[0].error.message.c_str());
        QVERIFY(loaded.problems[1].error.message.find("not named by a uid") != std::string::npos);
    }
    void problems_sayWhoseTheyAre_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("text");
        QTest::addColumn<qint64>("owner"); // -1: none
        QTest::addColumn<QString>("name");
        const QString good = "template = \"minimal\"\n";
        QTest::newRow("a user's") << "users/1001/work.toml"
                                  << "x" << qint64{1001} << "work";
        QTest::newRow("a user's, who names another") << "users/1001/work.toml"
                                                     << "owner = 1000\n" + good << qint64{1001} << "work";
        QTest::newRow("an admin's") << "etc/work.toml"
                                    << "owner = 1000\nnonsense = 1\n" + good << qint64{1000} << "work";
        QTest::newRow("an admin's that is not TOML") << "etc/work.toml"
                                                     << "owner = 1000\nx" << qint64{-1} << "work";
        QTest::newRow("an admin's without owner") << "etc/work.toml" << good << qint64{-1} << "work";
        QTest::newRow("a stray folder") << "users/alice/work.toml" << good << qint64{-1} << "";
    }
    void problems_sayWhoseTheyAre() {
        QFETCH(QString, path);
        QFETCH(QString, text);
        QFETCH(qint64, owner);
        QFETCH(QString, name);
        write(qPrintable(path), text.toStdString());
        const auto loaded = m_store->loadDomains();
        QVERIFY(!loaded.problems.empty());
        for (const auto& problem : loaded.problems) {
            QCOMPARE(problem.owner ? qint64{*problem.owner} : qint64{-1}, owner);
            QCOMPARE(QString::fromStdString(problem.name), name);
            QVERIFY(problem.error.message.find(problem.file.string()) != std::string::npos);
        }
    }
    void adminsDefinition_wins() {
        write("etc/work.toml", "owner = 1000\ntemplate = \"minimal\"\nlabel = \"red\"\n");
        write("users/1000/work.toml", "template = \"minimal\"\n");
        write("users/1001/work.toml", "template = \"minimal\"\n");
        const auto loaded = m_store->loadDomains();
        QCOMPARE(loaded.domains.size(), std::size_t{2});
        QCOMPARE(loaded.domains[0].label, std::string("red"));
        QCOMPARE(loaded.domains[1].owner, uid_t{1001});
        QCOMPARE(loaded.problems.size(), std::size_t{1});
    }
    void oddFiles_areProblems_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("message");
        QTest::newRow("link") << "link"
                              << "symbolic link";
        QTest::newRow("fifo") << "fifo"
                              << "not a regular file";
        QTest::newRow("folder") << "folder"
                                << "not a regular file";
        QTest::newRow("large") << "large"
                               << "larger than 64 KiB";
        QTest::newRow("writable by others") << "loose"
                                            << "chmod go-w";
        QTest::newRow("of another user") << "foreign"
                                         << "chown it to root";
    }
    void oddFiles_areProblems() {
        QFETCH(QString, kind);
        QFETCH(QString, message);
        const fs::path file = m_root / "etc/odd.toml";
        const std::string good = "owner = 1000\ntemplate = \"minimal\"\n";
        if (kind == "link") {
            write("elsewhere", good);
            fs::create_symlink(m_root / "elsewhere", file);
        } else if (kind == "fifo") {
            QCOMPARE(::mkfifo(file.c_str(), 0600), 0);
        } else if (kind == "folder") {
            fs::create_directory(file);
        } else {
            write("etc/odd.toml", good + (kind == "large" ? std::string(65536, '#') : ""));
            if (kind == "loose") {
                QCOMPARE(::chmod(file.c_str(), 0666), 0);
            } else if (kind == "foreign") {
                if (::geteuid() != 0) {
                    QSKIP("giving a file away needs root");
                }
                QCOMPARE(::chown(file.c_str(), 4711, 4711), 0);
            }
        }
        const auto loaded = m_store->loadDomains();
        QVERIFY(loaded.domains.empty());
        QCOMPARE(loaded.problems.size(), std::size_t{1});
        QVERIFY2(loaded.problems[0].error.message.find(message.toStdString()) != std::string::npos,
                 loaded.problems[0].error.message.c_str());
        QVERIFY(loaded.problems[0].error.message.find(file.string()) != std::string::npos);
    }
    void linkedUserFolder_isNotFollowed() {
        write("elsewhere/work.toml", "template = \"minimal\"\n");
        fs::create_directory(m_root / "users");
        fs::create_directory_symlink(m_root / "elsewhere", m_root / "users/1000");
        QVERIFY(m_store->loadDomains().domains.empty());
        QVERIFY(!m_store->save(domain()));
        QVERIFY(!m_store->removeDefinition(domain()));
        QVERIFY(fs::exists(m_root / "elsewhere/work.toml"));
    }
    void leftoverOfACrashedSave_isHarmless() {
        write("users/1000/.work.toml.new", "half a def");
        QVERIFY(m_store->loadDomains().problems.empty());
        QVERIFY(m_store->save(domain()));
        QCOMPARE(m_store->loadDomains().domains.size(), std::size_t{1});
        QVERIFY(!fs::exists(m_root / "users/1000/.work.toml.new"));
    }

    void templates_laterFolderMasks() {
        write("t1/minimal.toml", templateText("minimal", "bookworm"));
        write("t1/other.toml", templateText("other", "bookworm"));
        write("t2/minimal.toml", templateText("minimal", "trixie"));
        auto loaded = m_store->loadTemplates();
        QVERIFY(loaded.problems.empty());
        QCOMPARE(loaded.templates.size(), std::size_t{2});
        QCOMPARE(loaded.templates[0].suite, std::string("trixie"));
        QCOMPARE(loaded.templates[0].file, m_root / "t2/minimal.toml");
        write("t2/minimal.toml", "broken");
        loaded = m_store->loadTemplates();
        QCOMPARE(loaded.templates.size(), std::size_t{1}); // not silently the old one
        QCOMPARE(loaded.problems.size(), std::size_t{1});
        QCOMPARE(loaded.problems[0].name, std::string("minimal"));
        QCOMPARE(loaded.problems[0].file, m_root / "t2/minimal.toml");
    }

    void dropIns_addPackages() {
        write("t1/minimal.toml", templateText("minimal", "bookworm"));
        write("t1/minimal.d/10-vendor.toml", "packages = [\"git\", \"vim\"]\n");
        write("t1/minimal.d/20-masked.toml", "packages = [\"emacs\"]\n");
        write("t2/minimal.d/20-masked.toml", "packages = [\"git\", \"nano\"]\n");
        write("t2/minimal.d/note", "no definition");
        auto loaded = m_store->loadTemplates();
        QVERIFY(loaded.problems.empty());
        QVERIFY((loaded.templates[0].packages == std::vector<std::string>{"git", "vim", "nano"}));
        QVERIFY(loaded.templates[0].addedPackages.empty());
        write("t2/minimal.d/30-bad.toml", "packages = [\"-x\"]\nsuite = \"sid\"\n");
        loaded = m_store->loadTemplates();
        QVERIFY(loaded.templates.empty()); // not silently without what was asked for
        QCOMPARE(loaded.problems.size(), std::size_t{2});
        QCOMPARE(loaded.problems[0].name, std::string("minimal"));
        QCOMPARE(loaded.problems[0].file, m_root / "t2/minimal.d/30-bad.toml");
        QVERIFY2(loaded.problems[1].error.message.find("30-bad.toml:2:1: unknown key \"suite\"") != std::string::npos,
                 loaded.problems[1].error.message.c_str());
    }
    void addedPackages_areKept() {
        const std::vector<fs::path> folders{m_root / "t1", m_root / "etc2/templates.d"};
        fs::create_directories(m_root / "etc2");
        m_store = std::make_unique<FileDefinitionStore>(
            FileDefinitionStore::Folders{m_root / "etc", m_root / "users", folders});
        write("t1/minimal.toml", templateText("minimal", "bookworm"));
        QVERIFY(m_store->saveAddedPackages("minimal", {})); // nothing to take away
        QVERIFY(!fs::exists(folders[1]));
        const auto saved = m_store->saveAddedPackages("minimal", {"sl", "g++"});
        QVERIFY2(saved, saved ? "" : saved.error().message.c_str());
        const auto loaded = m_store->loadTemplates();
        QVERIFY((loaded.templates[0].packages == std::vector<std::string>{"sl", "g++"}));
        QVERIFY((loaded.templates[0].addedPackages == std::vector<std::string>{"sl", "g++"}));
        QCOMPARE(modeOf("etc2/templates.d/minimal.d"), mode_t{0755});
        QCOMPARE(modeOf("etc2/templates.d/minimal.d/50-installed.toml"), mode_t{0644});
        QVERIFY(m_store->saveAddedPackages("minimal", {}));
        QVERIFY(!fs::exists(folders[1] / "minimal.d/50-installed.toml"));
        QVERIFY(m_store->loadTemplates().templates[0].packages.empty());
        QVERIFY(!m_store->saveAddedPackages("../x", {"sl"}));
        QVERIFY(!m_store->saveAddedPackages("minimal", {"s l"}));
        QVERIFY(!fs::exists(folders[1] / "minimal.d/50-installed.toml"));
    }

private:
    static core::DomainDefinition domain() {
        core::DomainDefinition definition;
        definition.name = "work";
        definition.owner = 1000;
        definition.templateName = "minimal";
        definition.tags = {"a"};
        definition.homeSize = kGiB;
        return definition;
    }
    static std::string templateText(const std::string& name, const std::string& suite) {
        return "name = \"" + name + "\"\nsuite = \"" + suite +
               "\"\nkernel = \"linux-image-cloud-amd64\"\nsystem_size = \"1GiB\"\nhome_size = \"1GiB\"\n"
               "default_size = \"s\"\n[sizes.s]\nmemory = \"512MiB\"\nvcpus = 1\n";
    }
    void write(const char* name, const std::string& text) const {
        fs::create_directories((m_root / name).parent_path());
        std::ofstream(m_root / name) << text;
    }
    QString textOf(const char* name) const {
        std::ifstream file(m_root / name);
        return QString::fromStdString({std::istreambuf_iterator<char>(file), {}});
    }
    mode_t modeOf(const char* name) const {
        struct stat status {};
        return ::stat((m_root / name).c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
    }

    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_root;
    std::unique_ptr<FileDefinitionStore> m_store;
};

QTEST_GUILESS_MAIN(TestDefinitionStore)
#include "tst_definition_store.moc"
