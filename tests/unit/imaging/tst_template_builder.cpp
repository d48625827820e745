// SPDX-License-Identifier: Apache-2.0
#include "imaging/disk_probe.hpp"
#include "imaging/template_builder.hpp"
#include "support/contract/image_store_contract.hpp"
#include "support/fakes/fake_host.hpp"
#include "support/fakes/fake_image_store.hpp"
#include "support/fakes/fake_repositories.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <pwd.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::imaging;
using namespace bulkhead::tests;
namespace fs = std::filesystem;

namespace {

class FixedMemory final : public core::HostMemory {
public:
    Amount amount;
    Amount memory() override { return amount; }
};

Result<Space> roomy(const fs::path&) {
    return Space{100 * kGiB, 50 * kGiB};
}

} // namespace

class TestTemplateBuilder : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_root = m_temporary->path().toStdString();
        QCOMPARE(::chmod(m_root.c_str(), 0755), 0);
        std::ofstream(m_root / "agent") << "agent";
        program("exit 0");
        m_options = {m_root / "bulkhead-build", m_root / "agent", m_root / "work/build", "nobody", {},
                     std::chrono::seconds(30)};
    }

    void build_runsAsTheBuildUserInAFolderOfItsOwn() {
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        program("id -un >\"$2/packages.txt\"; pwd >>\"$2/packages.txt\"; stat -c '%U %a' \"$2\" >>\"$2/packages.txt\"\n"
                "env | sort >\"$2/env\"; printf '%s\\n' \"$@\" >\"$2/arguments\"\n"
                "echo 'PHASE packages 0.5 Installing' >&3; echo nonsense >&3; echo 'PHASE disk 1' >&3");
        auto builder = ProcessTemplateBuilder(m_options, roomy);
        std::vector<std::pair<std::string, double>> steps;
        const auto built = builder.build(
            definition(), [&](const std::string& phase, double fraction) { steps.emplace_back(phase, fraction); }, {});
        QVERIFY2(built, built ? "" : built.error().message.c_str());
        QCOMPARE(contentOf(built->directory / "packages.txt"),
                 "nobody\n" + built->directory.string() + "\nnobody 711\n");
        QCOMPARE(contentOf(built->directory / "arguments"),
                 "--output\n" + built->directory.string() + "\n--name\nminimal\n--agent\n" +
                     (m_root / "agent").string() +
                     "\n--suite\nbookworm\n--kernel\nlinux-image-cloud-amd64\n--system-size\n134217728\n--init\nagent\n"
                     "--package\ngit\n--package\napt\n");
        const std::string environment = contentOf(built->directory / "env");
        QVERIFY(environment.find("HOME=" + built->directory.string()) != std::string::npos);
        QVERIFY(environment.find("SSH_AUTH_SOCK") == std::string::npos);
        QCOMPARE(steps, (std::vector<std::pair<std::string, double>>{{"Installing", 0.5}, {"disk", 1.0}}));
        QCOMPARE(built->definitionHash, *builder.definitionHash(definition()));
        builder.discard(*built);
        QCOMPARE(entriesOf(m_options.workDirectory), std::size_t{0});
    }
    void failedBuild_showsWhyAndLeavesNothing() {
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        program("mkdir -p \"$2/tree/deep\"; touch \"$2/tree/deep/file\"; chmod 0 \"$2/tree\"\n"
                "printf 'E: cannot find \\033[31mgit\\033[0m\\n' >&2; exit 1");
        const auto built = ProcessTemplateBuilder(m_options, roomy).build(definition(), {}, {});
        QVERIFY(!built);
        QCOMPARE(built.error().message,
                 std::string("bulkhead-build failed (exit status 1): E: cannot find \\x1b[31mgit\\x1b[0m"));
        QCOMPARE(entriesOf(m_options.workDirectory), std::size_t{0});
    }
    void cancelledBuild_endsAndLeavesNothing() {
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        program("touch \"$2/half\"; echo 'PHASE x 0.1 Waiting' >&3; sleep 100");
        std::stop_source source;
        const auto built =
            ProcessTemplateBuilder(m_options, roomy)
                .build(
                    definition(), [&](const std::string&, double) { source.request_stop(); }, source.get_token());
        QCOMPARE(built.error().code, ErrorCode::Cancelled);
        QCOMPARE(entriesOf(m_options.workDirectory), std::size_t{0});
    }
    void noBuildUser_saysHowToMakeIt() {
        m_options.user = "no-such-user";
        const auto built = ProcessTemplateBuilder(m_options, roomy).build(definition(), {}, {});
        QCOMPARE(built.error().code, ErrorCode::Unavailable);
        QVERIFY(built.error().message.find("systemd-sysusers") != std::string::npos);
        m_options.user = "root";
        QVERIFY(ProcessTemplateBuilder(m_options, roomy)
                    .build(definition(), {}, {})
                    .error()
                    .message.find("never built as root") != std::string::npos);
        QVERIFY(!fs::exists(m_options.workDirectory));
    }
    void noSpace_isRefusedFirst() {
        const SpaceProbe tight = [](const fs::path&) -> Result<Space> { return Space{100 * kGiB, 2 * kGiB}; };
        QCOMPARE(ProcessTemplateBuilder(m_options, tight).build(definition(), {}, {}).error().code, ErrorCode::NoSpace);
        QVERIFY(!fs::exists(m_options.workDirectory));
    }
    void leftovers_goAway_othersStay() {
        fs::create_directories(m_options.workDirectory / "crashed/tree");
        fs::create_directories(m_root / "precious");
        ProcessTemplateBuilder builder(m_options, roomy);
        builder.discard({m_root / "precious", ""});
        builder.discard({"/", ""});
        QVERIFY(fs::exists(m_root / "precious"));
        builder.removeLeftovers();
        QCOMPARE(entriesOf(m_options.workDirectory), std::size_t{0});
        m_options.workDirectory = m_root / "absent";
        ProcessTemplateBuilder(m_options, roomy).removeLeftovers();
    }

    void hash_dependsOnWhatABuildSees() {
        ProcessTemplateBuilder builder(m_options, roomy);
        const std::string before = *builder.definitionHash(definition());
        QCOMPARE(before.size(), std::size_t{64});
        auto same = definition();
        same.packages = {"apt", "git"};
        same.description = "other words";
        same.sizes.clear();
        QCOMPARE(*builder.definitionHash(same), before);
        for (const auto& change : std::vector<std::function<void(core::TemplateDefinition&)>>{
                 [](auto& d) { d.suite = "trixie"; }, [](auto& d) { d.kernel = "linux-image-amd64"; },
                 [](auto& d) { d.packages.emplace_back("curl"); }, [](auto& d) { d.packages = {"gitapt"}; },
                 [](auto& d) { d.systemSize += kMiB; }, [](auto& d) { d.name = "other"; }}) {
            auto changed = definition();
            change(changed);
            QVERIFY(*builder.definitionHash(changed) != before);
        }
        std::ofstream(m_root / "agent") << "another agent";
        const std::string withAgent = *builder.definitionHash(definition());
        QVERIFY(withAgent != before);
        program("exit 1");
        QVERIFY(*builder.definitionHash(definition()) != withAgent);
        fs::remove(m_root / "agent");
        QVERIFY(!builder.definitionHash(definition()));
    }

    void hash_dependsOnTheFiles() {
        ProcessTemplateBuilder builder(m_options, roomy);
        auto desktop = definition();
        desktop.init = core::TemplateInit::Systemd;
        QVERIFY(*builder.definitionHash(desktop) != *builder.definitionHash(definition()));
        desktop.files = m_root / "files";
        QVERIFY(!builder.definitionHash(desktop)); // there are none
        fs::create_directories(m_root / "files/etc");
        std::set<std::string> seen;
        const auto isNew = [&] { return seen.insert(*builder.definitionHash(desktop)).second; };
        QVERIFY(isNew());
        QVERIFY(!isNew());
        std::ofstream(m_root / "files/etc/a") << "text";
        QVERIFY(isNew());
        std::ofstream(m_root / "files/etc/a") << "another text";
        QVERIFY(isNew());
        fs::permissions(m_root / "files/etc/a", fs::perms(0755));
        QVERIFY(isNew());
        // What a checkout's umask makes of it is no change.
        fs::permissions(m_root / "files/etc/a", fs::perms(0775));
        QVERIFY(!isNew());
        fs::rename(m_root / "files/etc/a", m_root / "files/etc/b");
        QVERIFY(isNew());
        fs::create_symlink("/dev/null", m_root / "files/etc/link");
        QVERIFY(isNew());
        fs::remove(m_root / "files/etc/link");
        fs::create_symlink("/dev/zero", m_root / "files/etc/link");
        QVERIFY(isNew());
        QCOMPARE(::mkfifo((m_root / "files/etc/pipe").c_str(), 0644), 0);
        QVERIFY(!builder.definitionHash(desktop));
    }
    void heads_needTheSessionProgram() {
        program("exit 0");
        m_options.session = m_root / "bulkhead-session";
        ProcessTemplateBuilder builder(m_options, roomy);
        auto desktop = definition();
        desktop.init = core::TemplateInit::Systemd;
        const std::string headless = *builder.definitionHash(desktop);
        desktop.heads = 8;
        const std::string without = *builder.definitionHash(desktop);
        QVERIFY(without != headless);
        const auto refused = builder.build(desktop, {}, {});
        QVERIFY(!refused);
        QVERIFY2(refused.error().message.find("bulkhead-session") != std::string::npos,
                 refused.error().message.c_str());
        std::ofstream(m_options.session) << "a program";
        QVERIFY(*builder.definitionHash(desktop) != without);
    }
    void build_getsWhatTheDefinitionSays() {
        program("printf '%s\\n' \"$@\" > \"$2/words\"");
        m_options.session = m_root / "bulkhead-session";
        std::ofstream(m_options.session) << "a program";
        auto desktop = definition();
        desktop.init = core::TemplateInit::Systemd;
        desktop.heads = 8;
        desktop.files = m_root / "files";
        fs::create_directories(*desktop.files);
        ProcessTemplateBuilder builder(m_options, roomy);
        const auto built = builder.build(desktop, {}, {});
        QVERIFY2(built, built ? "" : built.error().message.c_str());
        const std::string words = contentOf(built->directory / "words");
        for (const std::string& expected :
             std::vector<std::string>{"--init\nsystemd\n", "--files\n" + desktop.files->string() + "\n",
                                      "--session\n" + m_options.session.string() + "\n"}) {
            QVERIFY2(words.find(expected) != std::string::npos, words.c_str());
        }
    }

    /// bulkhead-build says its reason last, behind what the tools said.
    void failedBuild_saysItsReason() {
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        program("for i in $(seq 100); do echo \"  | I: a line that a tool wrote ($i)\" >&2; done\n"
                "echo 'bulkhead-build: HostFailure: mmdebstrap failed: E: Unable to locate package sl' >&2; exit 1");
        ProcessTemplateBuilder builder(m_options, roomy);
        const auto built = builder.build(definition(), {}, {});
        QVERIFY(!built);
        QVERIFY2(built.error().message.find("E: Unable to locate package sl") != std::string::npos,
                 built.error().message.c_str());
    }

    void diskProbe_data() {
        QTest::addColumn<qulonglong>("available");
        QTest::addColumn<int>("status");
        QTest::newRow("fine") << 50ULL << int(core::FindingStatus::Ok);
        QTest::newRow("tight") << 5ULL << int(core::FindingStatus::Warning);
        QTest::newRow("full") << 1ULL << int(core::FindingStatus::Problem);
    }
    void diskProbe() {
        QFETCH(qulonglong, available);
        QFETCH(int, status);
        DiskProbe probe("/state", [&](const fs::path&) -> Result<Space> { return Space{90 * kGiB, available * kGiB}; });
        const auto findings = probe.examine(false);
        QCOMPARE(findings.size(), std::size_t{1});
        QCOMPARE(findings[0].check, std::string("disk"));
        QCOMPARE(int(findings[0].status), status);
        QCOMPARE(findings[0].fix.empty(), status == int(core::FindingStatus::Ok));
    }
    void memoryProbe_comparesWithTheDefaultSize() {
        FixedMemory memory;
        FakeDefinitionStore definitions;
        definitions.templates = {definition()};
        MemoryProbe probe(memory, definitions);
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Problem); // unknown
        memory.amount = {4 * kGiB, 2 * kGiB};
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Ok);
        memory.amount = {4 * kGiB, 100 * kMiB};
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Warning);
        memory.amount = {256 * kMiB, 100 * kMiB};
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Problem);
    }
    void templatesProbe_saysWhatToBuild() {
        FakeDefinitionStore definitions;
        FakeTemplateStore store;
        ProcessTemplateBuilder builder(m_options, roomy);
        FakeClock clock;
        TemplatesProbe probe(definitions, store, builder, clock);
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Problem); // none defined
        definitions.templates = {definition()};
        auto findings = probe.examine(false);
        QCOMPARE(findings.size(), std::size_t{1});
        QCOMPARE(findings[0].status, core::FindingStatus::Warning);
        QCOMPARE(findings[0].fix, std::string("sudo bulkhead template build minimal"));
        store.add("minimal", "stale");
        QVERIFY(probe.examine(false)[0].text.find("older") != std::string::npos);
        store.add("minimal", *builder.definitionHash(definition()));
        findings = probe.examine(false);
        QCOMPARE(findings.size(), std::size_t{1});
        QCOMPARE(findings[0].status, core::FindingStatus::Ok);
    }
    void templatesProbe_saysWhatIsOld() {
        constexpr std::int64_t kDay = 24 * 60 * 60;
        FakeDefinitionStore definitions;
        definitions.templates = {definition()};
        FakeTemplateStore store;
        FakeClock clock;
        ProcessTemplateBuilder builder(m_options, roomy);
        TemplatesProbe probe(definitions, store, builder, clock);
        clock.advance(-clock.now() + store.add("minimal", *builder.definitionHash(definition())).checkedAt);
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Ok);
        clock.advance(14 * kDay - 1);
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Ok);
        clock.advance(1);
        const auto findings = probe.examine(false);
        QCOMPARE(findings.size(), std::size_t{1});
        QCOMPARE(findings[0].status, core::FindingStatus::Warning);
        QCOMPARE(findings[0].fix, std::string("sudo bulkhead template update minimal"));
        QVERIFY2(findings[0].text.find("14 days") != std::string::npos, findings[0].text.c_str());
        clock.advance(-30 * kDay); // a clock that was set back
        QCOMPARE(probe.examine(false)[0].status, core::FindingStatus::Ok);
    }

private:
    static core::TemplateDefinition definition() {
        auto made = sampleTemplate();
        made.packages = {"git", "apt"};
        return made;
    }
    /// Stands in for bulkhead-build; $2 is the output folder.
    void program(const std::string& script) const {
        fs::remove(m_root / "bulkhead-build");
        std::ofstream(m_root / "bulkhead-build") << "#!/bin/sh\n" << script << "\n";
        fs::permissions(m_root / "bulkhead-build", fs::perms(0755));
    }
    static std::string contentOf(const fs::path& file) {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    static std::size_t entriesOf(const fs::path& folder) {
        std::error_code error;
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder, error), {}));
    }

    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_root;
    ProcessTemplateBuilder::Options m_options;
};

QTEST_GUILESS_MAIN(TestTemplateBuilder)
#include "tst_template_builder.moc"
