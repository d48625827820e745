// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/snapshot_store.hpp"
#include "support/fakes/fake_image_store.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::tests {

/// core::SnapshotStore in memory, over the same homes and instances as a FakeInstanceStore. A layer is what was written
/// to it, by place; so a test can write to domains and compare what their disks and their snapshots hold. It passes the
/// same contract suite as the store on disk.
class FakeSnapshotStore final : public core::SnapshotStore {
public:
    static constexpr const char* kFolder = "/fake/snapshots"; ///< where the nodes are
    using Content = std::map<std::string, std::string>;

    /// `instances` must outlive this.
    explicit FakeSnapshotStore(FakeInstanceStore& instances)
        : m_instances(instances) {}

    std::optional<Error> failBegin;
    std::optional<Error> failCommit;
    std::optional<Error> failPublish;
    std::optional<Error> failReset;
    std::optional<Error> failImage;
    std::optional<core::DamagedPart> damage;   ///< what findDamage() says of every node
    std::optional<core::DamagedPart> missing;  ///< what findMissing() says of every node
    std::vector<std::filesystem::path> images; ///< whole memories that were made

    /// Writes to a layer; throws when it is frozen, since nobody can.
    void write(const std::filesystem::path& layer, const std::string& place, const std::string& bytes) {
        const auto lock = this->lock();
        if (m_gone.contains(layer)) {
            throw std::logic_error(layer.string() + " was removed");
        }
        Layer& there = layerAt(layer);
        if (there.isFrozen) {
            throw std::logic_error(layer.string() + " is frozen");
        }
        there.writes[place] = bytes;
    }
    /// All that is on a disk.
    Content read(const core::Disk& disk) {
        const auto lock = this->lock();
        Content content;
        for (auto layer = disk.layers.rbegin(); layer != disk.layers.rend(); ++layer) {
            if (m_gone.contains(layer->path)) {
                content["lost"] += layer->path.string() + " ";
                continue;
            }
            for (const auto& [place, bytes] : layerAt(layer->path).writes) {
                content[place] = bytes;
            }
        }
        return content;
    }

    /// Nothing was written to the layer.
    bool isUntouched(const std::filesystem::path& layer) {
        const auto lock = this->lock();
        return layerAt(layer).writes.empty();
    }
    /// Files of layers that are there, though no home, no instance and no node has a name for what is in them.
    std::vector<std::filesystem::path> strayLayers() {
        const auto lock = this->lock();
        std::set<const Layer*> used;
        const auto addAll = [&](const core::Disk& disk) {
            for (const core::DiskLayer& layer : disk.layers) {
                used.insert(&layerAt(layer.path));
            }
        };
        for (const auto& [domain, home] : m_instances.homes) {
            addAll(m_instances.diskOf(domain));
        }
        for (const auto& [id, disks] : m_instances.disks) {
            addAll(disks.system);
            addAll(disks.home);
            std::for_each(disks.inspected.begin(), disks.inspected.end(), addAll);
        }
        for (const auto& [id, node] : m_nodes) {
            addAll(node.files.system);
            addAll(node.files.home);
        }
        // Homes and instances take all names in their folders along when they go.
        std::set<std::filesystem::path> folders;
        for (const auto& [domain, home] : m_instances.homes) {
            folders.insert(homeFolder(domain));
        }
        for (const auto& [instance, home] : m_instances.instances) {
            folders.insert(instanceFolder(instance));
        }
        for (const auto& [id, node] : m_nodes) {
            folders.insert(folderOf(id));
        }
        std::vector<std::filesystem::path> stray;
        for (const auto& [file, layer] : m_layers) {
            if (!used.contains(layer.get()) && !m_gone.contains(file) && folders.contains(file.parent_path())) {
                stray.push_back(file);
            }
        }
        return stray;
    }

    Result<core::SnapshotFiles> begin(const SnapshotId& id, const core::SnapshotSource& source) override {
        const auto lock = this->lock();
        if (failBegin) {
            return fail(*failBegin);
        }
        if (!source.instance && !source.keptHome) {
            return fail(ErrorCode::InvalidArgument, "a snapshot needs an instance or a home");
        }
        if (source.keptHome && m_instances.isClaimed(*source.keptHome, source.instance)) {
            return fail(ErrorCode::Busy, "the home disk is in use");
        }
        if (m_nodes.contains(id)) {
            return fail(ErrorCode::AlreadyExists, "it is there already");
        }
        const auto active = activeDisks(source);
        if (!active) {
            return fail(active.error());
        }
        core::SnapshotFiles files;
        files.folder = folderOf(id);
        files.home = linked(active->home, files.folder / "home");
        files.newHome =
            newLayer(source.keptHome ? homeFolder(*source.keptHome) : instanceFolder(*source.instance), "home");
        files.devices = files.folder / "devices";
        files.delta = files.folder / "memory.delta";
        if (source.instance) {
            files.system = linked(active->system, files.folder / "system");
            files.newSystem = newLayer(instanceFolder(*source.instance), "system");
        }
        m_nodes[id] = Node{files, *active, std::nullopt};
        return files;
    }
    Status commit(const core::SnapshotFiles& files, const core::SnapshotSource& source) override {
        const auto lock = this->lock();
        if (failCommit) {
            return fail(*failCommit);
        }
        return use(source, source.instance ? above(*files.newSystem, files.system) : core::Disk(),
                   above(files.newHome, files.home));
    }
    Status rollBack(const core::SnapshotFiles& files, const core::SnapshotSource& source) override {
        const auto lock = this->lock();
        for (const auto& [id, node] : m_nodes) {
            if (node.files.folder != files.folder) {
                continue;
            }
            if (m_gone.contains(node.before.home.layers.front().path)) {
                return fail(ErrorCode::WrongState, "the layer from before has no name any more");
            }
            const Status used = use(source, node.before.system, node.before.home);
            if (used) {
                eraseNewLayers(node);
                thaw(node.before.home);
                thaw(node.before.system);
            }
            return used;
        }
        return fail(ErrorCode::WrongState, "there is no such node");
    }
    Result<core::SnapshotRecord> publish(core::SnapshotRecord record, const core::SnapshotFiles& files) override {
        const auto lock = this->lock();
        if (failPublish) {
            return fail(*failPublish);
        }
        record.system = files.system;
        record.home = files.home;
        record.phase = core::SnapshotRecord::Phase::Present;
        record.sizeOnDisk = 1;
        if (record.memory) {
            record.memory->delta = files.delta;
            record.memory->devices = files.devices;
        }
        for (const core::Disk* const disk : {&files.system, &files.home}) {
            for (const core::DiskLayer& layer : disk->layers) {
                layerAt(layer.path).isFrozen = true;
            }
        }
        m_nodes[record.id].record = record;
        // A home's own name for its frozen layer, unless an emulator may still need it.
        for (const auto& [domain, home] : m_instances.homes) {
            if (files.newHome.parent_path() == homeFolder(domain) && !m_instances.isClaimed(domain, std::nullopt)) {
                eraseUnused(domain);
            }
        }
        return record;
    }
    Status update(const core::SnapshotRecord& record) override {
        const auto lock = this->lock();
        const auto node = m_nodes.find(record.id);
        if (node == m_nodes.end() || !node->second.record) {
            return fail(ErrorCode::NotFound, "there is no such snapshot");
        }
        node->second.record->parent = record.parent;
        node->second.record->phase = record.phase;
        node->second.record->reason = record.reason;
        node->second.record->label = record.label;
        node->second.record->isPinned = record.isPinned;
        node->second.record->suspect = record.suspect;
        return {};
    }
    /// Called while files go, without our lock.
    std::function<void()> whileRemoving;
    Status remove(const SnapshotId& id) override {
        if (whileRemoving) {
            const auto act = whileRemoving;
            act();
        }
        const auto lock = this->lock();
        const auto node = m_nodes.find(id);
        if (node == m_nodes.end()) {
            return {};
        }
        const auto isInside = [&](const std::filesystem::path& file) { return file.parent_path() == folderOf(id); };
        std::vector<std::filesystem::path> below = inUse();
        for (const auto& [other, there] : m_nodes) {
            for (const core::Disk* const disk : {&there.files.system, &there.files.home}) {
                for (const core::DiskLayer& layer : disk->layers) {
                    if (other != id) {
                        below.push_back(layer.path);
                    }
                }
            }
        }
        if (std::any_of(below.begin(), below.end(), isInside)) {
            return fail(ErrorCode::Busy, "something lies above snapshot " + id.text());
        }
        if (!node->second.record) {
            eraseNewLayers(node->second);
        }
        for (const auto& [file, layer] : m_layers) {
            if (isInside(file)) {
                m_gone.insert(file);
            }
        }
        m_nodes.erase(node);
        return {};
    }
    /// Nodes whose memory was removed before they were.
    std::set<SnapshotId> withoutMemory;
    Status dropMemory(const SnapshotId& id) override {
        const auto lock = this->lock();
        if (m_nodes.contains(id)) {
            withoutMemory.insert(id);
        }
        return {};
    }
    Result<std::vector<core::SnapshotRecord>> all() override {
        const auto lock = this->lock();
        std::vector<core::SnapshotRecord> records;
        for (const auto& [id, node] : m_nodes) {
            if (node.record) {
                records.push_back(*node.record);
            }
        }
        return records;
    }
    Result<std::vector<SnapshotId>> onDisk() override {
        const auto lock = this->lock();
        std::vector<SnapshotId> ids;
        for (const auto& [id, node] : m_nodes) {
            ids.push_back(id);
        }
        return ids;
    }

    Result<core::Disk> home(const DomainId& domain) override {
        const auto lock = this->lock();
        return homeOf(domain);
    }
    Status resetHome(const DomainId& domain, uid_t owner, const std::string& name, const core::Disk& below) override {
        const auto lock = this->lock();
        if (failReset) {
            return fail(*failReset);
        }
        if (below.layers.empty()) {
            return fail(ErrorCode::InvalidArgument, "a home needs something to lie above");
        }
        if (m_instances.isClaimed(domain, std::nullopt)) {
            return fail(ErrorCode::Busy, "the home disk is in use");
        }
        FakeInstanceStore::Home& home = m_instances.homes[domain];
        home.domainOwner = owner;
        home.domainName = name;
        home.disk = above(newLayer(homeFolder(domain), "home"), below);
        eraseUnused(domain);
        return {};
    }
    Result<std::vector<std::filesystem::path>> filesInUse() override {
        const auto lock = this->lock();
        return inUse();
    }
    Result<core::Disk> systemOf(const core::SnapshotRecord& record) override {
        return record.system.layers.empty()
                   ? core::Disk{{{"/fake/templates/" + record.templateName + "/" + record.templateVersion + "/root.img",
                                  core::DiskFormat::Raw}}}
                   : record.system;
    }
    Result<InstanceDisks> disksOf(const InstanceId& instance) override {
        const auto lock = this->lock();
        return notedOf(instance);
    }
    Status settle(const InstanceId& instance, const std::optional<DomainId>& keptHome,
                  const core::Machines::NewLayers& active) override {
        const auto lock = this->lock();
        auto disks = notedOf(instance);
        if (!disks) {
            return {};
        }
        for (const auto& [disk, file] : {std::pair(&disks->system, active.system), {&disks->home, active.home}}) {
            if (!file || disk->layers.front().path == *file) {
                continue;
            }
            if (disk->layers.size() < 2 || &layerAt(*file) != &layerAt(disk->layers[1].path)) {
                return fail(ErrorCode::HostFailure, "the emulator writes to " + file->string());
            }
            if (const auto node = m_nodes.find(idOf(disk->layers[1].path)); node != m_nodes.end()) {
                const auto& record = node->second.record;
                if (record && record->phase != core::SnapshotRecord::Phase::Removed) {
                    return fail(ErrorCode::WrongState, "the layers are of a snapshot by now");
                }
            }
            disk->layers.erase(disk->layers.begin());
            disk->layers.front().path = *file;
            layerAt(*file).isFrozen = false;
        }
        return use({instance, keptHome, 1, 0}, disks->system, disks->home);
    }

    Result<core::MemoryImageRef> memoryImage(const core::SnapshotRecord& record) override {
        const auto lock = this->lock();
        if (failImage || !record.memory) {
            return fail(failImage.value_or(Error{ErrorCode::InvalidArgument, "it has no memory"}));
        }
        const std::filesystem::path file = "/fake/memory/" + record.id.text() + ".ram";
        if (std::find(images.begin(), images.end(), file) == images.end()) {
            images.push_back(file);
        }
        return core::MemoryImageRef{file, record.id.compact() + record.id.compact()};
    }
    Status keepImages(const std::vector<std::filesystem::path>& needed) override {
        const auto lock = this->lock();
        std::erase_if(images, [&](const std::filesystem::path& image) {
            return std::find(needed.begin(), needed.end(), image) == needed.end();
        });
        return {};
    }
    std::optional<core::DamagedPart> findDamage(const core::SnapshotRecord& record) override {
        return damage ? damage : findMissing(record);
    }
    std::optional<core::DamagedPart> findMissing(const core::SnapshotRecord& record) override {
        const auto lock = this->lock();
        const auto node = m_nodes.find(record.id);
        if (node == m_nodes.end() || !node->second.record) {
            return core::DamagedPart{folderOf(record.id), "it is not there"};
        }
        return missing;
    }

private:
    struct Layer {
        Content writes;
        bool isFrozen = false;
    };
    struct Node {
        core::SnapshotFiles files;
        InstanceDisks before;
        std::optional<core::SnapshotRecord> record;
    };

    std::unique_lock<std::mutex> lock() { return std::unique_lock(m_instances.m_mutex); }
    static SnapshotId idOf(const std::filesystem::path& layer) {
        return SnapshotId::parse(layer.parent_path().filename().native()).value_or(SnapshotId());
    }
    static std::filesystem::path folderOf(const SnapshotId& id) { return std::filesystem::path(kFolder) / id.text(); }
    static std::filesystem::path homeFolder(const DomainId& domain) { return "/fake/homes/" + domain.text(); }
    static std::filesystem::path instanceFolder(const InstanceId& id) { return "/fake/instances/" + id.text(); }
    std::filesystem::path newLayer(const std::filesystem::path& folder, const std::string& disk) {
        const auto file = folder / (disk + "-" + std::to_string(++m_made));
        layerAt(file);
        return file;
    }
    Layer& layerAt(const std::filesystem::path& file) {
        auto& layer = m_layers[file];
        if (!layer) {
            layer = std::make_shared<Layer>();
        }
        return *layer;
    }
    void eraseNewLayers(const Node& node) {
        m_gone.insert(node.files.newHome);
        if (node.files.newSystem) {
            m_gone.insert(*node.files.newSystem);
        }
    }
    /// All names in the home's folder but the active one.
    void eraseUnused(const DomainId& domain) {
        const auto active = m_instances.diskOf(domain).layers.front().path;
        for (const auto& [file, layer] : m_layers) {
            if (file.parent_path() == homeFolder(domain) && file != active) {
                m_gone.insert(file);
            }
        }
    }
    void thaw(const core::Disk& disk) {
        if (!disk.layers.empty()) {
            layerAt(disk.layers.front().path).isFrozen = false;
        }
    }
    static core::Disk above(const std::filesystem::path& top, core::Disk below) {
        below.layers.insert(below.layers.begin(), {top, core::DiskFormat::Qcow2});
        return below;
    }
    /// The disk with its active layer under a second name.
    core::Disk linked(core::Disk disk, const std::filesystem::path& name) {
        layerAt(disk.layers.front().path);
        m_layers[name] = m_layers[disk.layers.front().path];
        disk.layers.front().path = name;
        return disk;
    }
    Result<core::Disk> homeOf(const DomainId& domain) {
        if (!m_instances.homes.contains(domain)) {
            return fail(ErrorCode::NotFound, "domain " + domain.text() + " has no home disk");
        }
        return m_instances.diskOf(domain);
    }
    Result<InstanceDisks> notedOf(const InstanceId& instance) {
        const auto found = m_instances.disks.find(instance);
        const auto claimed = m_instances.instances.find(instance);
        if (found == m_instances.disks.end() || claimed == m_instances.instances.end()) {
            return fail(ErrorCode::NotFound, "instance " + instance.text() + " is not there");
        }
        InstanceDisks disks = found->second;
        if (claimed->second) {
            disks.home = m_instances.diskOf(*claimed->second);
        }
        return disks;
    }
    Result<InstanceDisks> activeDisks(const core::SnapshotSource& source) {
        if (source.instance) {
            return notedOf(*source.instance);
        }
        return homeOf(*source.keptHome).map([](core::Disk&& home) {
            return InstanceDisks{{}, std::move(home), std::nullopt};
        });
    }
    Status use(const core::SnapshotSource& source, const core::Disk& system, const core::Disk& home) {
        if (source.instance && !m_instances.disks.contains(*source.instance)) {
            return fail(ErrorCode::NotFound, "the instance has ended");
        }
        if (source.keptHome) {
            m_instances.homes.at(*source.keptHome).disk = home;
        }
        if (source.instance) {
            m_instances.disks[*source.instance].system = system;
            m_instances.disks[*source.instance].home = home;
        }
        return {};
    }
    std::vector<std::filesystem::path> inUse() {
        std::set<std::filesystem::path> files;
        const auto addBelow = [&](const core::Disk& disk) {
            for (std::size_t i = 1; i < disk.layers.size(); ++i) {
                files.insert(disk.layers[i].path);
            }
        };
        for (const auto& [domain, home] : m_instances.homes) {
            addBelow(home.disk);
        }
        for (const auto& [id, disks] : m_instances.disks) {
            addBelow(disks.system);
            addBelow(disks.home);
            std::for_each(disks.inspected.begin(), disks.inspected.end(), addBelow);
            if (disks.memory) {
                files.insert(disks.memory->file);
            }
        }
        return {files.begin(), files.end()};
    }

    FakeInstanceStore& m_instances;
    unsigned m_made = 0;
    std::map<std::filesystem::path, std::shared_ptr<Layer>> m_layers;
    std::set<std::filesystem::path> m_gone; ///< names that were taken away
    std::map<SnapshotId, Node> m_nodes;
};

} // namespace bulkhead::tests
