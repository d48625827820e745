// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/deleted_domains.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/snapshot_store.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

/// Image stores in memory. They pass the same contract suite as those on disk (tests/support/contract).
namespace bulkhead::tests {

class FakeTemplateStore final : public core::TemplateStore {
public:
    /// When set, install() fails with it.
    std::optional<Error> failInstall;
    unsigned leftoversRemoved = 0;

    /// Puts a template in place without a build.
    core::InstalledTemplate add(const std::string& name, const std::string& definitionHash = "hash",
                                Bytes systemSize = 1024 * kMiB, Bytes homeSize = 1024 * kMiB) {
        const std::lock_guard lock(m_mutex);
        core::InstalledTemplate made;
        made.name = name;
        made.definitionHash = definitionHash;
        made.builtAt = ++m_counter;
        made.checkedAt = made.builtAt;
        made.version = std::string(31, '0') + "0123456789abcdef"[m_counter % 16];
        made.systemSize = systemSize;
        made.homeSize = homeSize;
        made.sizeOnDisk = 100 * kMiB;
        for (const char* file : {"root.img", "vmlinuz", "initrd.img", "packages.txt"}) {
            made.artefacts[file] = std::string(64, 'a');
        }
        made.directory = "/fake/templates/" + name + "/" + made.version;
        m_versions[name].push_back(made);
        return made;
    }
    bool has(const std::string& name, const std::string& version) override {
        const std::lock_guard lock(m_mutex);
        const auto& versions = m_versions[name];
        return std::any_of(versions.begin(), versions.end(), [&](const auto& one) { return one.version == version; });
    }
    Result<std::vector<core::InstalledTemplate>> installed() override {
        const std::lock_guard lock(m_mutex);
        std::vector<core::InstalledTemplate> newest;
        for (const auto& [name, versions] : m_versions) {
            newest.push_back(versions.back());
        }
        return newest;
    }
    Result<core::InstalledTemplate> find(const std::string& name) override {
        const std::lock_guard lock(m_mutex);
        const auto found = m_versions.find(name);
        if (found == m_versions.end()) {
            return fail(ErrorCode::NotFound,
                        "template \"" + name + "\" is not built; run: sudo bulkhead template build " + name);
        }
        return found->second.back();
    }
    Result<core::InstalledTemplate> install(const core::TemplateDefinition& definition,
                                            const core::BuiltTemplate& built,
                                            const VersionsInUse& versionsInUse) override {
        if (failInstall) {
            return fail(*failInstall);
        }
        auto made = add(definition.name, built.definitionHash, definition.systemSize, definition.homeSize);
        const std::lock_guard lock(m_mutex);
        auto& versions = m_versions[definition.name];
        const std::size_t old = versions.size() > 2 ? versions.size() - 2 : 0;
        for (std::size_t i = old; i-- > 0;) {
            const auto used = versionsInUse();
            if (used && std::find(used->begin(), used->end(), versions[i].version) == used->end()) {
                versions.erase(versions.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        return made;
    }
    /// What confirm() says of a build of the same definition.
    bool samePackages = true;
    Result<bool> confirm(const std::string& name, const core::BuiltTemplate& built) override {
        const std::lock_guard lock(m_mutex);
        const auto found = m_versions.find(name);
        return samePackages && found != m_versions.end() && found->second.back().definitionHash == built.definitionHash;
    }
    Status removeLeftovers() override {
        ++leftoversRemoved;
        return {};
    }
    [[nodiscard]] std::size_t versionCount(const std::string& name) {
        const std::lock_guard lock(m_mutex);
        return m_versions[name].size();
    }

private:
    std::mutex m_mutex;
    unsigned m_counter = 0;
    std::map<std::string, std::vector<core::InstalledTemplate>> m_versions;
};

class FakeInstanceStore final : public core::InstanceStore, public core::LateHomes {
public:
    struct Home {
        Bytes size = 0;
        uid_t owner = 0; ///< 0: nobody has claimed it
        /// Whose domain it is; none: the note is lost.
        std::optional<uid_t> domainOwner;
        std::string domainName;
        core::Disk disk; ///< empty: home.img
    };
    std::map<DomainId, Home> homes;
    std::map<InstanceId, std::optional<DomainId>> instances; ///< with the home that each has claimed
    /// What each instance's disks were made of, as a snapshot changed it.
    std::map<InstanceId, core::SnapshotStore::InstanceDisks> disks;
    std::optional<Error> failCreateHome;
    std::optional<Error> failPrepare;
    std::optional<Error> failRemove;
    Space spaceNow{100 * kGiB, 50 * kGiB};

    Status createHome(const DomainId& domain, uid_t owner, const std::string& name, Bytes size) override {
        const std::lock_guard lock(m_mutex);
        if (failCreateHome) {
            return fail(*failCreateHome);
        }
        if (!homes.emplace(domain, Home{size, 0, owner, name, {}}).second) {
            return fail(ErrorCode::AlreadyExists, "domain " + domain.text() + " has a home disk already");
        }
        return {};
    }
    Status growHome(const DomainId& domain, Bytes size) override {
        const std::lock_guard lock(m_mutex);
        const auto home = homes.find(domain);
        if (home == homes.end()) {
            return {};
        }
        if (home->second.owner != 0) {
            return fail(ErrorCode::Busy, "the home disk is in use");
        }
        if (size < home->second.size) {
            return fail(ErrorCode::InvalidArgument, "it can only grow");
        }
        home->second.size = size;
        return {};
    }
    /// Called while a home goes, without our lock.
    std::function<void(const DomainId&)> whileRemovingHome;
    Status removeHome(const DomainId& domain) override {
        if (whileRemovingHome) {
            whileRemovingHome(domain);
        }
        const std::lock_guard lock(m_mutex);
        if (failRemove) {
            return fail(*failRemove);
        }
        homes.erase(domain);
        return {};
    }
    Result<core::InstanceFiles> prepareInstance(const core::InstancePlan& plan) override {
        const std::lock_guard lock(m_mutex);
        if (failPrepare) {
            return fail(*failPrepare);
        }
        if (instances.contains(plan.instance)) {
            return fail(ErrorCode::AlreadyExists, "instance " + plan.instance.text() + " has files already");
        }
        const std::filesystem::path folder = "/fake/instances/" + plan.instance.text();
        const std::filesystem::path templateFolder =
            "/fake/templates/" + plan.templateName + "/" + plan.templateVersion;
        core::InstanceFiles files;
        files.system = above(folder / "system.qcow2", plan.systemBase, templateFolder / "root.img");
        if (plan.keptHome) {
            const auto home = homes.find(*plan.keptHome);
            if (home == homes.end()) {
                return fail(ErrorCode::NotFound, "domain " + plan.keptHome->text() + " has no home disk");
            }
            if (isClaimed(*plan.keptHome, std::nullopt)) {
                return fail(ErrorCode::Busy, "the home disk of domain " + plan.keptHome->text() + " is in use");
            }
            home->second.owner = plan.emulatorUid;
            files.home = diskOf(*plan.keptHome);
        } else {
            files.home = above(folder / "home.qcow2", plan.homeBase, "/fake/bases/home.img");
        }
        std::vector<core::Disk> inspected;
        for (const core::InspectedDisk& wanted : plan.inspected) {
            inspected.push_back(above(folder / (wanted.serial + ".qcow2"), wanted.disk, {}));
            files.inspected.push_back({wanted.serial, inspected.back()});
        }
        files.kernel = templateFolder / "vmlinuz";
        files.initrd = templateFolder / "initrd.img";
        files.tokenFile = folder / "token";
        files.agentSocket = "/fake/run/" + plan.instance.text() + "/agent.sock";
        files.emulatorGid = 107;
        instances.emplace(plan.instance, plan.keptHome);
        disks[plan.instance] = {files.system, files.home, plan.memory, inspected};
        return files;
    }
    Result<Bytes> sizeOfHome(const DomainId& domain) override {
        const std::lock_guard lock(m_mutex);
        const auto home = homes.find(domain);
        return home != homes.end() ? Result<Bytes>(home->second.size)
                                   : fail(ErrorCode::NotFound, "domain " + domain.text() + " has no home disk");
    }
    Result<core::Disk> giveHome(const core::InstancePlan& plan) override {
        const std::lock_guard lock(m_mutex);
        if (!plan.keptHome || !instances.contains(plan.instance)) {
            return fail(plan.keptHome ? ErrorCode::NotFound : ErrorCode::InvalidArgument, "no home to give");
        }
        const auto home = homes.find(*plan.keptHome);
        if (home == homes.end()) {
            return fail(ErrorCode::NotFound, "domain " + plan.keptHome->text() + " has no home disk");
        }
        if (isClaimed(*plan.keptHome, plan.instance)) {
            return fail(ErrorCode::Busy, "the home disk of domain " + plan.keptHome->text() + " is in use");
        }
        instances[plan.instance] = plan.keptHome;
        home->second.owner = plan.emulatorUid;
        return disks[plan.instance].home = diskOf(*plan.keptHome);
    }
    Status removeInstance(const InstanceId& instance, const std::optional<DomainId>& keptHome) override {
        const std::lock_guard lock(m_mutex);
        if (failRemove) {
            return fail(*failRemove);
        }
        std::optional<DomainId> claimed = keptHome;
        if (const auto found = instances.find(instance); found != instances.end()) {
            claimed = found->second ? found->second : keptHome;
            instances.erase(found);
            disks.erase(instance);
        }
        if (claimed && homes.contains(*claimed)) {
            homes[*claimed].owner = 0;
        }
        return {};
    }
    Result<std::vector<InstanceId>> instancesOnDisk() override {
        const std::lock_guard lock(m_mutex);
        std::vector<InstanceId> ids;
        for (const auto& [id, home] : instances) {
            ids.push_back(id);
        }
        return ids;
    }
    Result<std::vector<core::HomeOnDisk>> homesOnDisk() override {
        const std::lock_guard lock(m_mutex);
        std::vector<core::HomeOnDisk> onDisk;
        for (const auto& [id, home] : homes) {
            onDisk.push_back({id, home.domainOwner, home.domainName});
        }
        return onDisk;
    }
    Result<Space> space() override { return spaceNow; }

private:
    friend class FakeSnapshotStore; // which changes the same disks
    friend class FakeKeptHomes;

    static core::Disk above(const std::filesystem::path& top, core::Disk base, const std::filesystem::path& plain) {
        if (base.layers.empty()) {
            base.layers = {{plain, core::DiskFormat::Raw}};
        }
        base.layers.insert(base.layers.begin(), {top, core::DiskFormat::Qcow2});
        return base;
    }
    /// The home must be there.
    core::Disk diskOf(const DomainId& domain) {
        const core::Disk& disk = homes.at(domain).disk;
        return disk.layers.empty() ? core::Disk{{{"/fake/homes/" + domain.text() + "/home.img", core::DiskFormat::Raw}}}
                                   : disk;
    }
    [[nodiscard]] bool isClaimed(const DomainId& domain, const std::optional<InstanceId>& exceptBy) const {
        return std::any_of(instances.begin(), instances.end(), [&](const auto& instance) {
            return instance.first != exceptBy && instance.second == domain;
        });
    }

    std::mutex m_mutex;
};

class FakeKeptHomes final : public core::KeptHomes {
public:
    explicit FakeKeptHomes(FakeInstanceStore& store)
        : m_store(store) {}
    Bytes size = 3 * kMiB; ///< of each
    std::optional<Error> failRename;

    Status rename(const DomainId& id, uid_t owner, const std::string& name) override {
        const std::lock_guard lock(m_store.m_mutex);
        if (failRename) {
            return fail(*failRename);
        }
        if (const auto home = m_store.homes.find(id); home != m_store.homes.end()) {
            home->second.domainOwner = owner;
            home->second.domainName = name;
        }
        return {};
    }
    Result<Bytes> sizeOnDisk(const DomainId& id) override {
        const std::lock_guard lock(m_store.m_mutex);
        return m_store.homes.contains(id) ? size : Bytes{0};
    }

private:
    FakeInstanceStore& m_store;
};

} // namespace bulkhead::tests
