// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/image_store.hpp"

#include <QTest>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// What image stores must do, those on disk and the fakes. Each clause gets empty stores.
namespace bulkhead::tests {

struct ImageStores {
    core::TemplateStore& templates;
    core::InstanceStore& instances;
    /// Makes a finished build whose content depends on `seed`.
    std::function<core::BuiltTemplate(const std::string& seed)> build;
    /// Somebody whom a file may be given to.
    uid_t emulatorUid = 0;
};

inline core::TemplateDefinition sampleTemplate(const std::string& name = "minimal") {
    core::TemplateDefinition definition;
    definition.name = name;
    definition.suite = "bookworm";
    definition.kernel = "linux-image-cloud-amd64";
    definition.systemSize = 128 * kMiB;
    definition.homeSize = 64 * kMiB;
    definition.sizes = {{"small", {512 * kMiB, 1}}};
    definition.defaultSize = "small";
    return definition;
}

inline core::InstancePlan samplePlan(const ImageStores& stores, const core::InstalledTemplate& installed,
                                     const std::optional<DomainId>& keptHome) {
    core::InstancePlan plan;
    plan.instance = randomId<InstanceId>();
    plan.templateName = installed.name;
    plan.templateVersion = installed.version;
    plan.keptHome = keptHome;
    plan.homeSize = 64 * kMiB;
    plan.emulatorUid = stores.emulatorUid;
    plan.token.fill(std::byte{0x5a});
    return plan;
}

using ImageStoreClause = std::function<void(ImageStores&)>;

inline std::vector<std::pair<std::string, ImageStoreClause>> imageStoreContract() {
    return {
        {"new stores are empty",
         [](ImageStores& stores) {
             QVERIFY(stores.templates.installed()->empty());
             QVERIFY(stores.templates.removeLeftovers());
             QVERIFY(stores.instances.homesOnDisk()->empty());
             QVERIFY(stores.instances.instancesOnDisk()->empty());
             QCOMPARE(stores.templates.find("minimal").error().code, ErrorCode::NotFound);
             QVERIFY(stores.templates.find("minimal").error().message.find("template build minimal") !=
                     std::string::npos);
         }},
        {"an installed template is found",
         [](ImageStores& stores) {
             const auto made = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             QVERIFY2(made, made ? "" : made.error().message.c_str());
             QVERIFY(!made->version.empty());
             QCOMPARE(made->systemSize, 128 * kMiB);
             QCOMPARE(made->artefacts.size(), std::size_t{4});
             QCOMPARE(stores.templates.find("minimal")->version, made->version);
             QCOMPARE(stores.templates.installed()->size(), std::size_t{1});
             QCOMPARE(stores.templates.installed()->front().definitionHash, made->definitionHash);
         }},
        {"a newer version takes the place of the older",
         [](ImageStores& stores) {
             const auto first = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             const auto second = stores.templates.install(sampleTemplate(), stores.build("two"), {});
             QVERIFY(first && second);
             QVERIFY(first->version != second->version);
             QCOMPARE(stores.templates.find("minimal")->version, second->version);
             QCOMPARE(stores.templates.installed()->size(), std::size_t{1});
         }},
        {"a build of the same packages confirms the newest version",
         [](ImageStores& stores) {
             const auto none = stores.templates.confirm("minimal", stores.build("one"));
             QVERIFY(none && !*none);
             const auto made = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             QVERIFY(made);
             const auto same = stores.templates.confirm("minimal", stores.build("one"));
             QVERIFY2(same, same ? "" : same.error().message.c_str());
             QVERIFY(*same);
             const auto other = stores.templates.confirm("minimal", stores.build("two")); // another definition
             QVERIFY(other && !*other);
             QCOMPARE(stores.templates.find("minimal")->version, made->version);
             QVERIFY(stores.templates.find("minimal")->checkedAt >= made->checkedAt);
         }},
        {"a home is made once and removed at will",
         [](ImageStores& stores) {
             const auto domain = randomId<DomainId>();
             const auto made = stores.instances.createHome(domain, 1000, "work", 64 * kMiB);
             QVERIFY2(made, made ? "" : made.error().message.c_str());
             QCOMPARE(stores.instances.createHome(domain, 1000, "work", 64 * kMiB).error().code,
                      ErrorCode::AlreadyExists);
             QVERIFY(*stores.instances.homesOnDisk() == (std::vector<core::HomeOnDisk>{{domain, 1000, "work"}}));
             QVERIFY(stores.instances.removeHome(domain));
             QVERIFY(stores.instances.removeHome(domain));
             QVERIFY(stores.instances.homesOnDisk()->empty());
         }},
        {"a home grows while nobody uses it",
         [](ImageStores& stores) {
             const auto installed = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             const auto domain = randomId<DomainId>();
             QVERIFY(stores.instances.growHome(domain, 64 * kMiB)); // there is none yet
             QVERIFY(stores.instances.createHome(domain, 1000, "work", 64 * kMiB));
             QVERIFY(stores.instances.growHome(domain, 64 * kMiB));
             QVERIFY(stores.instances.growHome(domain, 96 * kMiB));
             QCOMPARE(stores.instances.growHome(domain, 95 * kMiB).error().code, ErrorCode::InvalidArgument);
             const auto plan = samplePlan(stores, *installed, domain);
             QVERIFY(stores.instances.prepareInstance(plan));
             QCOMPARE(stores.instances.growHome(domain, 128 * kMiB).error().code, ErrorCode::Busy);
             QVERIFY(stores.instances.removeInstance(plan.instance, domain));
             QVERIFY(stores.instances.growHome(domain, 128 * kMiB));
         }},
        {"an instance with a fresh home comes and goes",
         [](ImageStores& stores) {
             const auto installed = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             const auto plan = samplePlan(stores, *installed, std::nullopt);
             const auto files = stores.instances.prepareInstance(plan);
             QVERIFY2(files, files ? "" : files.error().message.c_str());
             QCOMPARE(files->system.layers.size(), std::size_t{2});
             QCOMPARE(files->home.layers.size(), std::size_t{2});
             QCOMPARE(files->system.layers[0].format, core::DiskFormat::Qcow2);
             QCOMPARE(files->system.layers[1].format, core::DiskFormat::Raw);
             QCOMPARE(files->kernel.parent_path(), files->initrd.parent_path());
             QVERIFY(*stores.instances.instancesOnDisk() == std::vector{plan.instance});
             QCOMPARE(stores.instances.prepareInstance(plan).error().code, ErrorCode::AlreadyExists);
             QVERIFY(*stores.instances.instancesOnDisk() == std::vector{plan.instance}); // not undone by the refusal
             QVERIFY(stores.instances.removeInstance(plan.instance, std::nullopt));
             QVERIFY(stores.instances.removeInstance(plan.instance, std::nullopt));
             QVERIFY(stores.instances.instancesOnDisk()->empty());
         }},
        {"a kept home is claimed by one at a time",
         [](ImageStores& stores) {
             const auto installed = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             const auto domain = randomId<DomainId>();
             QVERIFY(stores.instances.createHome(domain, 1000, "work", 64 * kMiB));
             const auto first = samplePlan(stores, *installed, domain);
             const auto files = stores.instances.prepareInstance(first);
             QVERIFY2(files, files ? "" : files.error().message.c_str());
             QCOMPARE(files->home.layers.size(), std::size_t{1});
             const auto second = samplePlan(stores, *installed, domain);
             QCOMPARE(stores.instances.prepareInstance(second).error().code, ErrorCode::Busy);
             QVERIFY(*stores.instances.instancesOnDisk() == std::vector{first.instance});
             QVERIFY(stores.instances.removeInstance(first.instance, domain));
             QVERIFY(stores.instances.prepareInstance(second));
             // A leftover whose record was lost: the home comes back all the same.
             QVERIFY(stores.instances.removeInstance(second.instance, std::nullopt));
             QVERIFY(stores.instances.prepareInstance(samplePlan(stores, *installed, domain)));
             QVERIFY(*stores.instances.homesOnDisk() == (std::vector<core::HomeOnDisk>{{domain, 1000, "work"}}));
         }},
        {"an instance without its home leaves nothing",
         [](ImageStores& stores) {
             const auto installed = stores.templates.install(sampleTemplate(), stores.build("one"), {});
             const auto plan = samplePlan(stores, *installed, randomId<DomainId>());
             QCOMPARE(stores.instances.prepareInstance(plan).error().code, ErrorCode::NotFound);
             QVERIFY(stores.instances.instancesOnDisk()->empty());
         }},
        {"space is known",
         [](ImageStores& stores) {
             const auto space = stores.instances.space();
             QVERIFY(space);
             QVERIFY(space->total >= space->available);
             QVERIFY(space->total > 0);
         }},
    };
}

} // namespace bulkhead::tests
