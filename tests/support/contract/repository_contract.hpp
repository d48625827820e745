// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/repositories.hpp"

#include <QTest>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// What every pair of repositories must do, the real ones and the fakes. Each clause gets an empty pair.
namespace bulkhead::tests {

inline core::DomainRecord sampleDomain(const std::string& name = "work", uid_t owner = 1000) {
    core::DomainRecord record;
    record.id = randomId<DomainId>();
    record.owner = owner;
    record.name = name;
    record.kind = core::DomainKind::Disposable;
    record.phase = core::DomainRecord::Phase::Creating;
    record.createdAt = 1'700'000'000;
    record.templateName = "minimal";
    record.size = "small";
    return record;
}

inline core::InstanceRecord sampleInstance(const DomainId& domain, unsigned slot) {
    core::InstanceRecord record;
    record.id = randomId<InstanceId>();
    record.domain = domain;
    record.phase = core::InstancePhase::Starting;
    record.uidSlot = slot;
    record.templateVersion = "0123abcd";
    record.size = "small";
    record.acceleration = core::Acceleration::Kvm;
    record.transport = core::Transport::Vsock;
    record.cid = 1'900'000'000U + slot;
    record.heads = 16;
    record.audio = core::Audio::Out;
    record.memory = 512 * kMiB;
    record.vcpus = 3;
    record.startedAt = 1'700'000'001;
    return record;
}

inline core::SnapshotRecord sampleSnapshot(const DomainId& domain) {
    core::SnapshotRecord record;
    record.id = randomId<SnapshotId>();
    record.parent = randomId<SnapshotId>();
    record.domain = domain;
    record.owner = 4294967295U;
    record.domainName = "work";
    record.kind = core::SnapshotKind::Full;
    record.phase = core::SnapshotRecord::Phase::Present;
    record.createdAt = 1'700'000'002;
    record.reason = "before the 'big' change";
    record.label = "gut – ünicode";
    record.isPinned = true;
    record.suspect = "devices: it is gone";
    record.templateName = "minimal";
    record.templateVersion = "0123abcd";
    record.size = "small";
    record.system.layers = {{"/state/a b.qcow2", core::DiskFormat::Qcow2}, {"/state/root.img", core::DiskFormat::Raw}};
    record.home.layers = {{"/state/home.img", core::DiskFormat::Raw}};
    record.memory = core::SnapshotMemory{.machine = {.memory = 512 * kMiB,
                                                     .vcpus = 2,
                                                     .heads = 8,
                                                     .audio = core::Audio::Out,
                                                     .acceleration = core::Acceleration::Kvm,
                                                     .transport = core::Transport::Vsock,
                                                     .version = "q35 qemu 7002000"},
                                         .delta = "/state/delta",
                                         .devices = "/state/devices",
                                         .parent = core::MemoryImageRef{"/state/x.ram", "abcd"}};
    record.sizeOnDisk = 123 * kMiB;
    return record;
}

using SnapshotClause = std::function<void(core::DomainRepository&, core::SnapshotRepository&)>;

/// What every repository of snapshots must do.
inline std::vector<std::pair<std::string, SnapshotClause>> snapshotRepositoryContract() {
    using Domains = core::DomainRepository;
    using Snapshots = core::SnapshotRepository;
    return {
        {"a new one is empty",
         [](Domains&, Snapshots& snapshots) {
             QVERIFY(snapshots.all()->empty());
             QVERIFY(snapshots.heads()->empty());
         }},
        {"a node comes back as it went in, and as it was changed",
         [](Domains&, Snapshots& snapshots) {
             auto record = sampleSnapshot(randomId<DomainId>());
             QVERIFY(snapshots.save(record));
             QVERIFY(snapshots.all().value() == std::vector{record});
             record.parent.reset();
             record.memory.reset();
             record.system.layers.clear();
             record.kind = core::SnapshotKind::Disk;
             record.phase = core::SnapshotRecord::Phase::Removed;
             QVERIFY(snapshots.save(record));
             QVERIFY(snapshots.all().value() == std::vector{record});
         }},
        {"memory without a parent",
         [](Domains&, Snapshots& snapshots) {
             auto record = sampleSnapshot(randomId<DomainId>());
             record.memory->parent.reset();
             QVERIFY(snapshots.save(record));
             QVERIFY(snapshots.all().value() == std::vector{record});
         }},
        {"a node goes alone; one that is not there goes, too",
         [](Domains&, Snapshots& snapshots) {
             const auto one = sampleSnapshot(randomId<DomainId>());
             const auto other = sampleSnapshot(randomId<DomainId>());
             QVERIFY(snapshots.save(one) && snapshots.save(other));
             QVERIFY(snapshots.remove(one.id));
             QVERIFY(snapshots.remove(one.id));
             QVERIFY(snapshots.all().value() == std::vector{other});
         }},
        {"a domain stands somewhere, then elsewhere, until it is gone",
         [](Domains& domains, Snapshots& snapshots) {
             const auto domain = sampleDomain();
             QVERIFY(domains.insert(domain));
             const core::DomainHead first{randomId<SnapshotId>(), true};
             QVERIFY(snapshots.setHead(domain.id, first));
             QVERIFY(snapshots.heads()->at(domain.id) == first);
             const core::DomainHead second{std::nullopt, false};
             QVERIFY(snapshots.setHead(domain.id, second));
             QVERIFY(snapshots.heads()->at(domain.id) == second);
             const core::DomainHead third{first.node, false, true};
             QVERIFY(snapshots.setHead(domain.id, third));
             QVERIFY(snapshots.heads()->at(domain.id) == third);
             QVERIFY(!snapshots.setHead(randomId<DomainId>(), first));
             QVERIFY(domains.remove(domain.id));
             QVERIFY(snapshots.heads()->empty());
         }},
    };
}

using RepositoryClause = std::function<void(core::DomainRepository&, core::InstanceRepository&)>;

inline std::vector<std::pair<std::string, RepositoryClause>> repositoryContract() {
    using Domains = core::DomainRepository;
    using Instances = core::InstanceRepository;
    return {
        {"a new one is empty",
         [](Domains& domains, Instances& instances) {
             QVERIFY(domains.all()->empty());
             QVERIFY(instances.all()->empty());
         }},
        {"a domain comes back as it went in",
         [](Domains& domains, Instances&) {
             auto record = sampleDomain("name with 'quotes' and ünicode", 4294967295U);
             record.lastFailure = "why\nnot";
             QVERIFY(domains.insert(record));
             QCOMPARE(domains.all()->size(), std::size_t{1});
             QVERIFY(domains.all()->front() == record);
         }},
        {"every kind and phase of a domain comes back",
         [](Domains& domains, Instances&) {
             using Phase = core::DomainRecord::Phase;
             std::int64_t time = 1;
             std::vector<core::DomainRecord> records;
             for (const auto kind :
                  {core::DomainKind::App, core::DomainKind::Disposable, core::DomainKind::Standalone}) {
                 for (const auto phase : {Phase::Creating, Phase::Present, Phase::Removing, Phase::Deleting,
                                          Phase::Deleted, Phase::Restoring}) {
                     auto record = sampleDomain("d" + std::to_string(time));
                     record.kind = kind;
                     record.phase = phase;
                     record.isKept = time % 2 == 0;
                     record.createdAt = time++;
                     QVERIFY(domains.insert(record));
                     records.push_back(record);
                 }
             }
             QVERIFY(*domains.all() == records); // in the order in which they were made
         }},
        {"a name is taken once per owner",
         [](Domains& domains, Instances&) {
             QVERIFY(domains.insert(sampleDomain("work", 1000)));
             QCOMPARE(domains.insert(sampleDomain("work", 1000)).error().code, ErrorCode::AlreadyExists);
             QVERIFY(domains.insert(sampleDomain("work", 1001)));
             QCOMPARE(domains.all()->size(), std::size_t{2});
         }},
        {"a deleted domain has no name to others, and gets it back when it is free",
         [](Domains& domains, Instances&) {
             using Phase = core::DomainRecord::Phase;
             auto old = sampleDomain("work", 1000);
             QVERIFY(domains.insert(old));
             old.phase = Phase::Deleting;
             old.deletedAt = 77;
             QVERIFY(domains.update(old));
             QCOMPARE(domains.insert(sampleDomain("work", 1000)).error().code, ErrorCode::AlreadyExists);
             old.phase = Phase::Deleted;
             QVERIFY(domains.update(old));
             QVERIFY(domains.all()->front() == old);
             auto lost = sampleDomain("work", 1000);
             lost.phase = Phase::Deleted;
             lost.deletedAt = 78;
             QVERIFY(domains.insert(lost));
             const auto young = sampleDomain("work", 1000);
             QVERIFY(domains.insert(young));
             lost.phase = Phase::Removing;
             QVERIFY(domains.update(lost));
             auto back = old;
             back.phase = Phase::Restoring;
             QCOMPARE(domains.update(back).error().code, ErrorCode::AlreadyExists);
             back.name = "other";
             QVERIFY(domains.update(back));
             QCOMPARE(domains.insert(sampleDomain("other", 1000)).error().code, ErrorCode::AlreadyExists);
             back.phase = Phase::Present;
             back.deletedAt = 0;
             QVERIFY(domains.update(back));
             const auto all = domains.all().value();
             QVERIFY(std::find(all.begin(), all.end(), back) != all.end());
             QVERIFY(std::find(all.begin(), all.end(), lost) != all.end());
             QCOMPARE(domains.update(sampleDomain("nobody")).error().code, ErrorCode::NotFound);
         }},
        {"an id is taken once",
         [](Domains& domains, Instances&) {
             auto record = sampleDomain("one");
             QVERIFY(domains.insert(record));
             record.name = "two";
             QCOMPARE(domains.insert(record).error().code, ErrorCode::AlreadyExists);
         }},
        {"phase and failure of a domain change",
         [](Domains& domains, Instances&) {
             auto record = sampleDomain();
             QVERIFY(domains.insert(record));
             QVERIFY(domains.setPhase(record.id, core::DomainRecord::Phase::Present));
             QVERIFY(domains.setLastFailure(record.id, "boot: the guest did not answer"));
             record.phase = core::DomainRecord::Phase::Present;
             record.lastFailure = "boot: the guest did not answer";
             QVERIFY(domains.all()->front() == record);
             QVERIFY(domains.setLastFailure(record.id, ""));
             QCOMPARE(domains.all()->front().lastFailure, std::string());
         }},
        {"what a domain ran with comes back, also of one that is new, and stays when it is deleted",
         [](Domains& domains, Instances&) {
             auto record = sampleDomain();
             record.ranWith = {"minimal", "1234"};
             QVERIFY(domains.insert(record));
             QVERIFY(domains.all()->front() == record);
             record.ranWith = {"desktop", "abcd"};
             QVERIFY(domains.setRanWith(record.id, record.ranWith));
             record.phase = core::DomainRecord::Phase::Deleted;
             record.deletedAt = 5;
             QVERIFY(domains.update(record));
             QVERIFY(domains.all()->front() == record);
             QCOMPARE(domains.setRanWith(randomId<DomainId>(), {}).error().code, ErrorCode::NotFound);
         }},
        {"what is not there is not found, but removed",
         [](Domains& domains, Instances& instances) {
             const auto domain = randomId<DomainId>();
             QCOMPARE(domains.setPhase(domain, core::DomainRecord::Phase::Present).error().code, ErrorCode::NotFound);
             QCOMPARE(domains.setLastFailure(domain, "x").error().code, ErrorCode::NotFound);
             QVERIFY(domains.remove(domain));
             const auto instance = randomId<InstanceId>();
             QCOMPARE(instances.setPhase(instance, core::InstancePhase::Running).error().code, ErrorCode::NotFound);
             QCOMPARE(instances.setHeld(instance, true).error().code, ErrorCode::NotFound);
             QVERIFY(instances.remove(instance));
         }},
        {"a removed name is free again",
         [](Domains& domains, Instances&) {
             const auto record = sampleDomain();
             QVERIFY(domains.insert(record));
             QVERIFY(domains.remove(record.id));
             QVERIFY(domains.all()->empty());
             QVERIFY(domains.insert(sampleDomain()));
         }},
        {"an instance comes back as it went in",
         [](Domains& domains, Instances& instances) {
             const auto domain = sampleDomain();
             QVERIFY(domains.insert(domain));
             auto record = sampleInstance(domain.id, 3);
             QVERIFY(instances.insert(record));
             QVERIFY(instances.all()->front() == record);
             for (const auto phase :
                  {core::InstancePhase::Running, core::InstancePhase::Stopping, core::InstancePhase::Starting}) {
                 QVERIFY(instances.setPhase(record.id, phase));
                 record.phase = phase;
                 QVERIFY(instances.all()->front() == record);
             }
             for (const bool isHeld : {true, false}) {
                 QVERIFY(instances.setHeld(record.id, isHeld));
                 record.isHeld = isHeld;
                 QVERIFY(instances.all()->front() == record);
             }
             QVERIFY(instances.remove(record.id));
             QVERIFY(instances.all()->empty());
         }},
        {"a uid slot is used once",
         [](Domains& domains, Instances& instances) {
             const auto domain = sampleDomain();
             QVERIFY(domains.insert(domain));
             const auto first = sampleInstance(domain.id, 3);
             QVERIFY(instances.insert(first));
             QCOMPARE(instances.insert(sampleInstance(domain.id, 3)).error().code, ErrorCode::AlreadyExists);
             QVERIFY(instances.remove(first.id));
             QVERIFY(instances.insert(sampleInstance(domain.id, 3)));
         }},
        {"an instance without a domain is given to one, once",
         [](Domains& domains, Instances& instances) {
             const auto domain = sampleDomain("one");
             const auto other = sampleDomain("other");
             QVERIFY(domains.insert(domain) && domains.insert(other));
             auto record = sampleInstance({}, 3);
             const auto bystander = sampleInstance({}, 4);
             QVERIFY(instances.insert(record) && instances.insert(bystander));
             QCOMPARE(instances.assign(record.id, randomId<DomainId>(), 7).error().code, ErrorCode::WrongState);
             QVERIFY(instances.assign(record.id, domain.id, 1'700'000'009));
             record.domain = domain.id;
             record.startedAt = 1'700'000'009;
             const auto all = instances.all().value();
             QCOMPARE(all.size(), std::size_t{2});
             QVERIFY(std::find(all.begin(), all.end(), record) != all.end());
             QVERIFY(std::find(all.begin(), all.end(), bystander) != all.end());
             QCOMPARE(instances.assign(record.id, other.id, 8).error().code, ErrorCode::NotFound);
             QCOMPARE(instances.assign(randomId<InstanceId>(), other.id, 8).error().code, ErrorCode::NotFound);
             QVERIFY(instances.remove(record.id) && instances.remove(bystander.id));
         }},
        {"an instance needs its domain",
         [](Domains& domains, Instances& instances) {
             QCOMPARE(instances.insert(sampleInstance(randomId<DomainId>(), 1)).error().code, ErrorCode::WrongState);
             const auto domain = sampleDomain();
             QVERIFY(domains.insert(domain));
             const auto instance = sampleInstance(domain.id, 1);
             QVERIFY(instances.insert(instance));
             QCOMPARE(domains.remove(domain.id).error().code, ErrorCode::WrongState);
             QCOMPARE(domains.all()->size(), std::size_t{1});
             QVERIFY(instances.remove(instance.id));
             QVERIFY(domains.remove(domain.id));
         }},
    };
}

} // namespace bulkhead::tests
