// SPDX-License-Identifier: Apache-2.0
// What may be changed in a definition: the rules alone, and the service with its files and disks around them.
#include "core/model/definition_change.hpp"

#include "unit/core/fake_world.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

const Caller kAlice{1000, ":1.1"};
const Caller kMallory{1001, ":1.2"};

QString textOf(const Error& error) {
    return QString::fromStdString(error.message);
}

TemplateDefinition twoSizes() {
    TemplateDefinition definition;
    definition.name = "desktop";
    definition.sizes = {{"small", {kGiB, 2}}, {"large", {4 * kGiB, 4}}};
    return definition;
}

void startNow(Daemon& daemon, const DomainId& id) {
    const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
    QVERIFY(job.state == JobState::Succeeded);
}

} // namespace

class TestDefinitionChange : public QObject {
    Q_OBJECT

private slots:
    void homeThatIsSmallerThanItIsToBe_grows() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        auto& home = world.store.homes.at(id);
        const Bytes wanted = home.size;
        home.size = kMiB;
        QCOMPARE(daemon.wait(daemon.lifecycle.start(kAlice, id).value()).state, JobState::Succeeded);
        QCOMPARE(home.size, wanted);
        QCOMPARE(daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value()).state,
                 JobState::Succeeded);
        home.size = 2 * wanted; // nothing is taken away
        QCOMPARE(daemon.wait(daemon.lifecycle.start(kAlice, id).value()).state, JobState::Succeeded);
        QCOMPARE(home.size, 2 * wanted);
    }

    void values_inTheirTypeOrAsText() {
        const auto own = readChange({{"size", "large"},
                                     {"label", "red"},
                                     {"egress", "none"},
                                     {"home-size", Bytes{4 * kGiB}},
                                     {"tags", std::vector<std::string>{"a", "b"}}});
        QVERIFY2(own, own ? "" : own.error().message.c_str());
        const auto text = readChange(
            {{"size", "large"}, {"label", "red"}, {"egress", "none"}, {"home-size", "4GiB"}, {"tags", "a, b"}});
        QVERIFY2(text, text ? "" : text.error().message.c_str());
        for (const auto* change : {&*own, &*text}) {
            QCOMPARE(*change->size, std::string("large"));
            QCOMPARE(*change->label, std::string("red"));
            QCOMPARE(*change->homeSize, 4 * kGiB);
            QVERIFY(*change->tags == (std::vector<std::string>{"a", "b"}));
        }
        QVERIFY(readChange({{"tags", ""}})->tags->empty());
        QVERIFY(readChange({{"audio", "out"}})->audio == Audio::Out);
    }

    void refusals_data() {
        using List = std::vector<std::string>;
        QTest::addColumn<QString>("key");
        QTest::addColumn<SettingValue>("value");
        QTest::addColumn<QString>("shown"); // with the key before it
        const auto row = [](const char* name, const char* key, const SettingValue& value, const char* shown) {
            QTest::newRow(name) << key << value << shown;
        };
        row("unknown key", "home_size", "2GiB", "size, label, egress, home-size, tags, audio");
        row("template", "template", "minimal", "no such setting");
        row("empty size", "size", "", "is empty");
        row("size of another type", "size", Bytes{1}, "must be a text");
        row("unknown label", "label", "pink", "no label \"pink\"; there are: red, orange, yellow");
        row("a label that is an attack", "label", "\x1b[2J", "no label \"\\x1b[2J\"");
        row("egress", "egress", "web", "\"web\" is not possible; the only");
        row("home as a word", "home-size", "large", "large");
        row("home too small", "home-size", "1MiB", "64 MiB to 4 TiB");
        row("home too large", "home-size", Bytes{5000 * kGiB}, "64 MiB to 4 TiB");
        row("home of half a MiB", "home-size", Bytes{64 * kMiB + kKiB}, "whole number of MiB");
        row("bad tag", "tags", "good,Bad", "\"Bad\" is not a tag name");
        row("tag twice", "tags", List{"a", "a"}, "\"a\" is there twice");
        row("tags of another type", "tags", Bytes{1}, "list of texts");
        row("a sound that there is not", "audio", "in", "\"in\" is not possible; there are: off, out");
        row("sound of another type", "audio", Bytes{1}, "must be a text");
        row("too many tags", "tags", List(33, "a"), "at most 32");
    }
    void refusals() {
        QFETCH(QString, key);
        QFETCH(SettingValue, value);
        QFETCH(QString, shown);
        const auto change = readChange({{key.toStdString(), value}});
        QVERIFY(!change);
        QCOMPARE(change.error().code, ErrorCode::InvalidArgument);
        QVERIFY2(textOf(change.error()).startsWith(key + ": "), change.error().message.c_str());
        QVERIFY2(textOf(change.error()).contains(shown), change.error().message.c_str());
    }
    void nothing_isRefused() { QVERIFY(textOf(readChange({}).error()).contains("there are: size, label")); }

    void size_isOneOfTheTemplates() {
        QVERIFY(checkSize(twoSizes(), "large"));
        const auto refused = checkSize(twoSizes(), "huge");
        QCOMPARE(textOf(refused.error()),
                 QString("template \"desktop\" has no size \"huge\"; there are: large, small"));
    }

    void whatIsNotNamed_stays() {
        DomainDefinition before;
        before.name = "work";
        before.size = "small";
        before.tags = {"a"};
        before.homeSize = 2 * kGiB;
        auto expected = before;
        expected.label = "red";
        QVERIFY(changedBy(before, *readChange({{"label", "red"}})) == expected);
        expected.tags = {};
        QVERIFY(changedBy(before, *readChange({{"label", "red"}, {"tags", ""}})) == expected);
    }

    // ---- the service ----

    void change_isSavedAndTold() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto before = daemon.events.changes();
        const auto changed = daemon.domains.setDefinition(kAlice, id, {{"label", "red"}, {"tags", "a,b"}});
        QVERIFY2(changed, changed ? "" : changed.error().message.c_str());
        QCOMPARE(changed->definition.label, std::string("red"));
        QVERIFY(!changed->isRestartNeeded());
        QCOMPARE(world.definitions.domains.size(), std::size_t{1});
        QVERIFY(world.definitions.domains.front() == changed->definition);
        QVERIFY(daemon.table.find(id)->definition == changed->definition);
        QVERIFY(daemon.events.changes() > before);
    }

    void refusedChange_changesNothing_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::newRow("label") << "label"
                               << "pink";
        QTest::newRow("size") << "size"
                              << "enormous";
        QTest::newRow("home that shrinks") << "home-size"
                                           << "1GiB";
    }
    void refusedChange_changesNothing() {
        QFETCH(QString, key);
        QFETCH(QString, value);
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        const auto before = daemon.table.find(id)->definition;
        const auto changed =
            daemon.domains.setDefinition(kAlice, id, {{"tags", "a"}, {key.toStdString(), value.toStdString()}});
        QVERIFY(!changed);
        QVERIFY2(textOf(changed.error()).startsWith(key + ": "), changed.error().message.c_str());
        QVERIFY(daemon.table.find(id)->definition == before);
        QVERIFY(world.definitions.domains.front() == before);
        QCOMPARE(world.store.homes.at(id).size, 2 * kGiB);
    }

    void whoMayNot_andWhatHasNoDefinition() {
        Outside world;
        world.definitions.domains.push_back(
            {.name = "kiosk", .owner = 1000, .templateName = "minimal", .isManaged = true, .file = "/etc/kiosk.toml"});
        Daemon daemon(world);
        QVERIFY(daemon.reconciler.run());
        const Settings red{{"label", "red"}};
        const auto managed =
            daemon.domains.setDefinition(kAlice, daemon.table.findByName(1000, "kiosk")->record.id, red);
        QCOMPARE(managed.error().code, ErrorCode::NotAuthorized);
        QVERIFY(textOf(managed.error()).contains("/etc/kiosk.toml"));
        const auto work = daemon.domains.create(kAlice, "work", {}).value();
        QCOMPARE(daemon.domains.setDefinition(kMallory, work, red).error().code, ErrorCode::NotFound);
        const auto disposable = daemon.domains.createDisposable(kAlice, "minimal", "").value();
        QCOMPARE(daemon.domains.setDefinition(kAlice, disposable, red).error().code, ErrorCode::WrongState);
    }

    void whatWasWrittenByHand_isTakenOver() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        world.definitions.domains.front().tags = {"by-hand"};
        const auto changed = daemon.domains.setDefinition(kAlice, id, {{"label", "red"}});
        QVERIFY(changed);
        QVERIFY(changed->definition.tags == std::vector<std::string>{"by-hand"});
        world.definitions.domains.clear();
        QCOMPARE(daemon.domains.setDefinition(kAlice, id, {{"label", "blue"}}).error().code, ErrorCode::NotFound);
    }

    void size_ofOneThatRuns_waitsForTheNextStart() {
        Outside world;
        world.definitions.templates.front().sizes.emplace("medium", TemplateSize{kGiB, 1});
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        startNow(daemon, id);
        QVERIFY(!daemon.table.find(id)->isRestartNeeded());
        QVERIFY(daemon.domains.setDefinition(kAlice, id, {{"size", "medium"}})->isRestartNeeded());
        // Back again: nothing waits any more.
        QVERIFY(!daemon.domains.setDefinition(kAlice, id, {{"size", "small"}})->isRestartNeeded());
        QVERIFY(daemon.domains.setDefinition(kAlice, id, {{"size", "medium"}}));
        daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true}).value());
        QVERIFY(!daemon.table.find(id)->isRestartNeeded());
        startNow(daemon, id);
        QCOMPARE(world.hypervisor.started().back().memory, kGiB);
    }

    void home_growsWhileStoppedOnly() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.create(kAlice, "work", {}).value();
        QCOMPARE(*daemon.table.find(id)->definition.homeSize, 2 * kGiB); // told, also when the template chose it
        QVERIFY(daemon.domains.setDefinition(kAlice, id, {{"home-size", "3GiB"}}));
        QCOMPARE(world.store.homes.at(id).size, 3 * kGiB);
        startNow(daemon, id);
        const auto refused = daemon.domains.setDefinition(kAlice, id, {{"home-size", "4GiB"}});
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        QVERIFY2(textOf(refused.error()).startsWith("home-size: "), refused.error().message.c_str());
        QVERIFY(textOf(refused.error()).contains("bulkhead domain stop work"));
        QCOMPARE(world.store.homes.at(id).size, 3 * kGiB);
        // The size that it has is no change.
        QVERIFY(daemon.domains.setDefinition(kAlice, id, {{"home-size", "3GiB"}, {"label", "red"}}));
    }
};

QTEST_APPLESS_MAIN(TestDefinitionChange)
#include "tst_definition_change.moc"
