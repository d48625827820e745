// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/deleted_domains.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/memory_images.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "support/fakes/call_gate.hpp"

#include <memory>
#include <utility>

/// The ports of a daemon behind a CallGate. Calls that only ask (all(), find(), list(), …) are counted as well: a
/// daemon can die at any of them.
namespace bulkhead::tests {

class GatedHypervisor final : public core::Hypervisor {
public:
    GatedHypervisor(core::Hypervisor& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Result<pid_t> start(const core::InstanceSpec& spec) override {
        return m_gate.pass("Hypervisor::start", [&] { return m_inner.start(spec); });
    }
    Status destroy(const InstanceId& id) override {
        return m_gate.pass("Hypervisor::destroy", [&] { return m_inner.destroy(id); });
    }
    Result<std::vector<core::ObservedInstance>> list() override {
        return m_gate.pass("Hypervisor::list", [&] { return m_inner.list(); });
    }
    Status pause(const InstanceId& id) override {
        return m_gate.pass("Hypervisor::pause", [&] { return m_inner.pause(id); });
    }
    Status resume(const InstanceId& id) override {
        return m_gate.pass("Hypervisor::resume", [&] { return m_inner.resume(id); });
    }

private:
    core::Hypervisor& m_inner;
    CallGate& m_gate;
};

class GatedMachines final : public core::Machines {
public:
    GatedMachines(core::Machines& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status load(const InstanceId& id, const std::filesystem::path& devices,
                const std::optional<core::Disk>& home) override {
        return m_gate.pass("Machines::load", [&] { return m_inner.load(id, devices, home); });
    }
    Status pauseAndSave(const InstanceId& id, const std::filesystem::path& file) override {
        return m_gate.pass("Machines::pauseAndSave", [&] { return m_inner.pauseAndSave(id, file); });
    }
    Status switchLayers(const InstanceId& id, const NewLayers& layers) override {
        return m_gate.pass("Machines::switchLayers", [&] { return m_inner.switchLayers(id, layers); });
    }
    Result<NewLayers> activeLayers(const InstanceId& id) override {
        return m_gate.pass("Machines::activeLayers", [&] { return m_inner.activeLayers(id); });
    }
    Result<std::string> version(core::Acceleration acceleration) override {
        return m_gate.pass("Machines::version", [&] { return m_inner.version(acceleration); });
    }

private:
    core::Machines& m_inner;
    CallGate& m_gate;
};

class GatedMemoryCapturer final : public core::MemoryCapturer {
public:
    GatedMemoryCapturer(core::MemoryCapturer& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Result<std::string> captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) override {
        return m_gate.pass("MemoryCapturer::captureWhole", [&] { return m_inner.captureWhole(pid, size, file); });
    }
    Result<std::unique_ptr<core::RunningCapture>> prepare(const CaptureRequest& request) override {
        auto prepared = m_gate.pass("MemoryCapturer::prepare", [&] { return m_inner.prepare(request); });
        if (!prepared) {
            return prepared;
        }
        return std::make_unique<Running>(std::move(*prepared), m_gate);
    }
    Result<Bytes> privateMemory(pid_t emulator) override {
        return m_gate.pass("MemoryCapturer::privateMemory", [&] { return m_inner.privateMemory(emulator); });
    }

private:
    class Running final : public core::RunningCapture {
    public:
        Running(std::unique_ptr<core::RunningCapture> inner, CallGate& gate)
            : m_inner(std::move(inner))
            , m_gate(gate) {}
        Status copy() override {
            return m_gate.pass("RunningCapture::copy", [&] { return m_inner->copy(); });
        }
        Status finish() override {
            return m_gate.pass("RunningCapture::finish", [&] { return m_inner->finish(); });
        }

    private:
        std::unique_ptr<core::RunningCapture> m_inner;
        CallGate& m_gate;
    };
    core::MemoryCapturer& m_inner;
    CallGate& m_gate;
};

class GatedGuestLinks final : public core::GuestLinks {
public:
    GatedGuestLinks(core::GuestLinks& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status open(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) override {
        return m_gate.pass("GuestLinks::open", [&] { return m_inner.open(spec, timeout, cancel); });
    }
    Result<core::AdoptedGuest> adopt(const InstanceId& instance) override {
        return m_gate.pass("GuestLinks::adopt", [&] { return m_inner.adopt(instance); });
    }
    Status reopen(const InstanceId& instance, std::chrono::milliseconds timeout) override {
        return m_gate.pass("GuestLinks::reopen", [&] { return m_inner.reopen(instance, timeout); });
    }
    Result<core::ExecStreams> exec(const InstanceId& instance, const core::ExecRequest& request) override {
        return m_gate.pass("GuestLinks::exec", [&] { return m_inner.exec(instance, request); });
    }
    Result<core::GuestStatus> status(const InstanceId& instance) override {
        return m_gate.pass("GuestLinks::status", [&] { return m_inner.status(instance); });
    }
    Status shutdown(const InstanceId& instance, std::chrono::milliseconds grace) override {
        return m_gate.pass("GuestLinks::shutdown", [&] { return m_inner.shutdown(instance, grace); });
    }
    Status quiesce(const InstanceId& instance) override {
        return m_gate.pass("GuestLinks::quiesce", [&] { return m_inner.quiesce(instance); });
    }
    Status rejuvenate(const InstanceId& instance, const core::Rejuvenation& how) override {
        return m_gate.pass("GuestLinks::rejuvenate", [&] { return m_inner.rejuvenate(instance, how); });
    }
    Status freeze(const InstanceId& instance, const core::Picture& picture) override {
        return m_gate.pass("GuestLinks::freeze", [&] { return m_inner.freeze(instance, picture); });
    }
    Status thaw(const InstanceId& instance) override {
        return m_gate.pass("GuestLinks::thaw", [&] { return m_inner.thaw(instance); });
    }
    void close(const InstanceId& instance) override {
        m_gate.pass("GuestLinks::close", [&] { m_inner.close(instance); });
    }
    unsigned runningExecs(const InstanceId& instance) override { return m_inner.runningExecs(instance); }

private:
    core::GuestLinks& m_inner;
    CallGate& m_gate;
};

class GatedInstanceStore final : public core::InstanceStore {
public:
    GatedInstanceStore(core::InstanceStore& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status createHome(const DomainId& domain, uid_t owner, const std::string& name, Bytes size) override {
        return m_gate.pass("InstanceStore::createHome", [&] { return m_inner.createHome(domain, owner, name, size); });
    }
    Status growHome(const DomainId& domain, Bytes size) override {
        return m_gate.pass("InstanceStore::growHome", [&] { return m_inner.growHome(domain, size); });
    }
    Status removeHome(const DomainId& domain) override {
        return m_gate.pass("InstanceStore::removeHome", [&] { return m_inner.removeHome(domain); });
    }
    Result<core::InstanceFiles> prepareInstance(const core::InstancePlan& plan) override {
        return m_gate.pass("InstanceStore::prepareInstance", [&] { return m_inner.prepareInstance(plan); });
    }
    Status removeInstance(const InstanceId& instance, const std::optional<DomainId>& keptHome) override {
        return m_gate.pass("InstanceStore::removeInstance", [&] { return m_inner.removeInstance(instance, keptHome); });
    }
    Result<std::vector<InstanceId>> instancesOnDisk() override {
        return m_gate.pass("InstanceStore::instancesOnDisk", [&] { return m_inner.instancesOnDisk(); });
    }
    Result<std::vector<core::HomeOnDisk>> homesOnDisk() override {
        return m_gate.pass("InstanceStore::homesOnDisk", [&] { return m_inner.homesOnDisk(); });
    }
    Result<Space> space() override {
        return m_gate.pass("InstanceStore::space", [&] { return m_inner.space(); });
    }

private:
    core::InstanceStore& m_inner;
    CallGate& m_gate;
};

class GatedLateHomes final : public core::LateHomes {
public:
    GatedLateHomes(core::LateHomes& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Result<Bytes> sizeOfHome(const DomainId& domain) override {
        return m_gate.pass("LateHomes::sizeOfHome", [&] { return m_inner.sizeOfHome(domain); });
    }
    Result<core::Disk> giveHome(const core::InstancePlan& plan) override {
        return m_gate.pass("LateHomes::giveHome", [&] { return m_inner.giveHome(plan); });
    }

private:
    core::LateHomes& m_inner;
    CallGate& m_gate;
};

class GatedDomainRepository final : public core::DomainRepository {
public:
    GatedDomainRepository(core::DomainRepository& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status insert(const core::DomainRecord& record) override {
        return m_gate.pass("DomainRepository::insert", [&] { return m_inner.insert(record); });
    }
    Status update(const core::DomainRecord& record) override {
        return m_gate.pass("DomainRepository::update", [&] { return m_inner.update(record); });
    }
    Status setPhase(const DomainId& id, core::DomainRecord::Phase phase) override {
        return m_gate.pass("DomainRepository::setPhase", [&] { return m_inner.setPhase(id, phase); });
    }
    Status setLastFailure(const DomainId& id, const std::string& reason) override {
        return m_gate.pass("DomainRepository::setLastFailure", [&] { return m_inner.setLastFailure(id, reason); });
    }
    Status setRanWith(const DomainId& id, const core::TemplateVersion& version) override {
        return m_gate.pass("DomainRepository::setRanWith", [&] { return m_inner.setRanWith(id, version); });
    }
    Status remove(const DomainId& id) override {
        return m_gate.pass("DomainRepository::remove", [&] { return m_inner.remove(id); });
    }
    Result<std::vector<core::DomainRecord>> all() override {
        return m_gate.pass("DomainRepository::all", [&] { return m_inner.all(); });
    }

private:
    core::DomainRepository& m_inner;
    CallGate& m_gate;
};

class GatedInstanceRepository final : public core::InstanceRepository {
public:
    GatedInstanceRepository(core::InstanceRepository& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status insert(const core::InstanceRecord& record) override {
        return m_gate.pass("InstanceRepository::insert", [&] { return m_inner.insert(record); });
    }
    Status setPhase(const InstanceId& id, core::InstancePhase phase) override {
        return m_gate.pass("InstanceRepository::setPhase", [&] { return m_inner.setPhase(id, phase); });
    }
    Status setHeld(const InstanceId& id, bool isHeld) override {
        return m_gate.pass("InstanceRepository::setHeld", [&] { return m_inner.setHeld(id, isHeld); });
    }
    Status assign(const InstanceId& id, const DomainId& domain, std::int64_t startedAt) override {
        return m_gate.pass("InstanceRepository::assign", [&] { return m_inner.assign(id, domain, startedAt); });
    }
    Status remove(const InstanceId& id) override {
        return m_gate.pass("InstanceRepository::remove", [&] { return m_inner.remove(id); });
    }
    Result<std::vector<core::InstanceRecord>> all() override {
        return m_gate.pass("InstanceRepository::all", [&] { return m_inner.all(); });
    }

private:
    core::InstanceRepository& m_inner;
    CallGate& m_gate;
};

class GatedSnapshotRepository final : public core::SnapshotRepository {
public:
    GatedSnapshotRepository(core::SnapshotRepository& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status save(const core::SnapshotRecord& record) override {
        return m_gate.pass("SnapshotRepository::save", [&] { return m_inner.save(record); });
    }
    Status remove(const SnapshotId& id) override {
        return m_gate.pass("SnapshotRepository::remove", [&] { return m_inner.remove(id); });
    }
    Result<std::vector<core::SnapshotRecord>> all() override {
        return m_gate.pass("SnapshotRepository::all", [&] { return m_inner.all(); });
    }
    Status setHead(const DomainId& domain, const core::DomainHead& head) override {
        return m_gate.pass("SnapshotRepository::setHead", [&] { return m_inner.setHead(domain, head); });
    }
    Result<std::map<DomainId, core::DomainHead>> heads() override {
        return m_gate.pass("SnapshotRepository::heads", [&] { return m_inner.heads(); });
    }

private:
    core::SnapshotRepository& m_inner;
    CallGate& m_gate;
};

class GatedSnapshotStore final : public core::SnapshotStore {
public:
    GatedSnapshotStore(core::SnapshotStore& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Result<core::SnapshotFiles> begin(const SnapshotId& id, const core::SnapshotSource& source) override {
        return m_gate.pass("SnapshotStore::begin", [&] { return m_inner.begin(id, source); });
    }
    Status commit(const core::SnapshotFiles& files, const core::SnapshotSource& source) override {
        return m_gate.pass("SnapshotStore::commit", [&] { return m_inner.commit(files, source); });
    }
    Status rollBack(const core::SnapshotFiles& files, const core::SnapshotSource& source) override {
        return m_gate.pass("SnapshotStore::rollBack", [&] { return m_inner.rollBack(files, source); });
    }
    Result<core::SnapshotRecord> publish(core::SnapshotRecord record, const core::SnapshotFiles& files) override {
        return m_gate.pass("SnapshotStore::publish", [&] { return m_inner.publish(std::move(record), files); });
    }
    Status update(const core::SnapshotRecord& record) override {
        return m_gate.pass("SnapshotStore::update", [&] { return m_inner.update(record); });
    }
    Status remove(const SnapshotId& id) override {
        return m_gate.pass("SnapshotStore::remove", [&] { return m_inner.remove(id); });
    }
    Status dropMemory(const SnapshotId& id) override {
        return m_gate.pass("SnapshotStore::dropMemory", [&] { return m_inner.dropMemory(id); });
    }
    Result<std::vector<core::SnapshotRecord>> all() override {
        return m_gate.pass("SnapshotStore::all", [&] { return m_inner.all(); });
    }
    Result<std::vector<SnapshotId>> onDisk() override {
        return m_gate.pass("SnapshotStore::onDisk", [&] { return m_inner.onDisk(); });
    }
    Result<core::Disk> home(const DomainId& domain) override {
        return m_gate.pass("SnapshotStore::home", [&] { return m_inner.home(domain); });
    }
    Status resetHome(const DomainId& domain, uid_t owner, const std::string& name, const core::Disk& below) override {
        return m_gate.pass("SnapshotStore::resetHome", [&] { return m_inner.resetHome(domain, owner, name, below); });
    }
    Result<std::vector<std::filesystem::path>> filesInUse() override {
        return m_gate.pass("SnapshotStore::filesInUse", [&] { return m_inner.filesInUse(); });
    }
    Result<core::Disk> systemOf(const core::SnapshotRecord& record) override {
        return m_gate.pass("SnapshotStore::systemOf", [&] { return m_inner.systemOf(record); });
    }
    Result<InstanceDisks> disksOf(const InstanceId& instance) override {
        return m_gate.pass("SnapshotStore::disksOf", [&] { return m_inner.disksOf(instance); });
    }
    Status settle(const InstanceId& instance, const std::optional<DomainId>& keptHome,
                  const core::Machines::NewLayers& active) override {
        return m_gate.pass("SnapshotStore::settle", [&] { return m_inner.settle(instance, keptHome, active); });
    }
    Result<core::MemoryImageRef> memoryImage(const core::SnapshotRecord& record) override {
        return m_gate.pass("SnapshotStore::memoryImage", [&] { return m_inner.memoryImage(record); });
    }
    Status keepImages(const std::vector<std::filesystem::path>& needed) override {
        return m_gate.pass("SnapshotStore::keepImages", [&] { return m_inner.keepImages(needed); });
    }
    // These two give no errors: what cannot be read is damaged, which a dead daemon tells nobody.
    std::optional<core::DamagedPart> findDamage(const core::SnapshotRecord& record) override {
        return m_inner.findDamage(record);
    }
    std::optional<core::DamagedPart> findMissing(const core::SnapshotRecord& record) override {
        return m_inner.findMissing(record);
    }

private:
    core::SnapshotStore& m_inner;
    CallGate& m_gate;
};

class GatedDefinitionStore final : public core::DefinitionStore {
public:
    GatedDefinitionStore(core::DefinitionStore& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    // Broken files are no errors either.
    Loaded loadDomains() override { return m_inner.loadDomains(); }
    LoadedTemplates loadTemplates() override { return m_inner.loadTemplates(); }
    Result<core::DomainDefinition> reload(const core::DomainDefinition& definition) override {
        return m_gate.pass("DefinitionStore::reload", [&] { return m_inner.reload(definition); });
    }
    Result<core::DomainDefinition> save(core::DomainDefinition definition) override {
        return m_gate.pass("DefinitionStore::save", [&] { return m_inner.save(std::move(definition)); });
    }
    Status removeDefinition(const core::DomainDefinition& definition) override {
        return m_gate.pass("DefinitionStore::removeDefinition", [&] { return m_inner.removeDefinition(definition); });
    }
    Status saveAddedPackages(const std::string& templateName, const std::vector<std::string>& packages) override {
        return m_gate.pass("DefinitionStore::saveAddedPackages",
                           [&] { return m_inner.saveAddedPackages(templateName, packages); });
    }

private:
    core::DefinitionStore& m_inner;
    CallGate& m_gate;
};

class GatedDeletedDefinitions final : public core::DeletedDefinitions {
public:
    GatedDeletedDefinitions(core::DeletedDefinitions& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status setAside(const core::SetAsideDefinition& what) override {
        return m_gate.pass("DeletedDefinitions::setAside", [&] { return m_inner.setAside(what); });
    }
    Status bringBack(const DomainId& id, uid_t owner, const std::string& name) override {
        return m_gate.pass("DeletedDefinitions::bringBack", [&] { return m_inner.bringBack(id, owner, name); });
    }
    Status remove(const DomainId& id, uid_t owner) override {
        return m_gate.pass("DeletedDefinitions::remove", [&] { return m_inner.remove(id, owner); });
    }
    Result<std::vector<core::SetAsideDefinition>> all() override {
        return m_gate.pass("DeletedDefinitions::all", [&] { return m_inner.all(); });
    }

private:
    core::DeletedDefinitions& m_inner;
    CallGate& m_gate;
};

class GatedKeptHomes final : public core::KeptHomes {
public:
    GatedKeptHomes(core::KeptHomes& inner, CallGate& gate)
        : m_inner(inner)
        , m_gate(gate) {}
    Status rename(const DomainId& id, uid_t owner, const std::string& name) override {
        return m_gate.pass("KeptHomes::rename", [&] { return m_inner.rename(id, owner, name); });
    }
    Result<Bytes> sizeOnDisk(const DomainId& id) override {
        return m_gate.pass("KeptHomes::sizeOnDisk", [&] { return m_inner.sizeOnDisk(id); });
    }

private:
    core::KeptHomes& m_inner;
    CallGate& m_gate;
};

} // namespace bulkhead::tests
