// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/host.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/memory_images.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"
#include "core/services/shell.hpp"

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace bulkhead::core {

class CidLeases;
class EmulatorMonitor;
class TemplateService;
class UidLeases;

/// The sequence from "start it" to "its agent has answered", and back. Every step is undone when a later one fails, and
/// by the reconciler when the daemon dies between two. Thread-safe; the caller holds the domain's operation.
class InstanceLauncher {
public:
    struct Ports {
        Hypervisor& hypervisor;
        InstanceStore& store;
        LateHomes& homes;
        InstanceRepository& instances;
        GuestLinks& links;
        Machines& machines;
        WarmImageStore& images;
        SnapshotStore& snapshots;
        AccelerationProbe& acceleration;
        TransportProbe& transport;
        HostMemory& memory;
        Clock& clock;
        WarmImageStore::FilesInUse filesInUse;
    };
    InstanceLauncher(Ports ports, TemplateService& templates, UidLeases& leases, CidLeases& cids,
                     EmulatorMonitor& monitor, DomainTable& table);

    struct Wish {
        bool mayUseImage = true; ///< a warm image, or the memory of the node
        /// Its disks begin as this node's; what the domain's home has above them is thrown away. Of a full one it goes
        /// on in the memory. None: from the template, with its home as it is.
        std::optional<SnapshotRecord> node;
    };
    /// How it was started.
    struct Launched {
        bool isWarm = false; ///< from a warm image
        /// There was an image, or the memory of a node, but it did not bring the guest to life, and why. The guest has
        /// booted.
        std::optional<Error> imageFailure;
        /// The failure is the image's own, not the host's at that moment.
        bool isImageBroken = false;
    };
    /// Starts the domain, from memory where there is some that fits; on success its entry holds the instance, which is
    /// recorded as running. Errors name the domain, the phase and the resource.
    Result<Launched> launch(const DomainEntry& domain, const Wish& wish, const JobContext& job);

    /// A guest that has booted in order to be captured. It belongs to no domain, so a daemon that starts ends it.
    struct ImageSource {
        InstanceRecord instance;
        WarmImageKey key;
        pid_t emulator = 0;
        std::filesystem::path system; ///< the active layer of its system disk
    };
    /// Boots it; its agent has answered. The caller ends it with tearDown().
    Result<ImageSource> bootForImage(const std::string& templateName, const std::string& size, Audio audio,
                                     const JobContext& job);
    /// What an image of this template and size has to fit, as a start would choose now. `size` may be empty: the
    /// default one; so may `label`: any.
    Result<WarmImageKey> imageKey(const std::string& templateName, const std::string& size, Audio audio = Audio::Off,
                                  const std::string& label = {});

    /// An emulator that waits for the start of a domain that begins from this image (see Shell). Its record belongs to
    /// no domain, so a daemon that starts ends it. WrongState: a start would not use an image of this key now.
    Result<Shell> makeShell(const WarmImageKey& key, Bytes homeSize);
    /// Where such emulators are asked for. To be set before the first start; must outlive it.
    void useShells(WaitingShells& shells) { m_shells = &shells; }

    /// Ends whatever exists of the instance (emulator, channel, files, record, uids). Goes on over errors, gives the
    /// first; what is left then is the reconciler's.
    Status tearDown(const InstanceRecord& instance, const std::optional<DomainId>& keptHome);

    /// The node stands for a version of the template (holdsVersion()) that is there still.
    [[nodiscard]] bool hasVersionOf(const SnapshotRecord& node);
    /// The version of its template that a start of the domain from this node, or from none, uses now. None: it is not
    /// built.
    [[nodiscard]] std::optional<TemplateVersion> versionFor(const DomainEntry& domain,
                                                            const std::optional<SnapshotRecord>& node);

    /// The home that the instance of this domain claims; none: a home that goes with the instance.
    static std::optional<DomainId> keptHomeOf(const DomainEntry& domain);

private:
    struct Plan;
    struct Started;
    Result<Plan> plan(const DomainDefinition& definition);
    Result<Plan> planFor(const DomainEntry& domain, const Wish& wish);
    Status useNode(Plan& plan, const SnapshotRecord& node);
    /// That of its label, where there is one.
    void useWarmImage(Plan& plan);
    /// The same; where there is one of another label only, it is copied.
    void useWarmImage(Plan& plan, const JobContext& job);
    /// False: none waits that fits.
    bool takeShell(Plan& plan);
    Status useMemoryOf(Plan& plan, const SnapshotRecord& node);
    Status ensureHome(const DomainEntry& domain, Bytes size);
    Status chooseMachine(Plan& plan);
    Result<WarmImageKey> keyOf(const Plan& plan);
    /// The memory that there is, and what comes before the first act.
    Status beginBest(Plan& plan, const Wish& wish, bool mayUseImage, bool mayUseShell, Launched& launched,
                     const JobContext& job);
    /// What comes before the first act: an address, uids, and the record of the intent.
    Status begin(Plan& plan);
    /// False: something is left, which is tried again elsewhere.
    bool undo(const Plan& plan);
    /// From a plan to a running instance; a failure is undone.
    Status attempt(Plan& plan, const JobContext& job);
    Result<Started> startEmulator(const Plan& plan, const JobContext& job);
    Status boot(const Plan& plan, const JobContext& job);
    Status loadInto(Plan& plan);
    Status beginFromImage(Plan& plan, const JobContext& job);
    Status openLink(const Plan& plan, const Started& started, std::chrono::milliseconds timeout, const JobContext& job);

    /// Images from which the last guest did not answer.
    class Doubts {
    public:
        /// True: there was one before.
        bool isRaisedAgain(const std::filesystem::path& image) {
            const std::lock_guard lock(m_mutex);
            return !m_images.insert(image).second;
        }
        void forget(const std::filesystem::path& image) {
            const std::lock_guard lock(m_mutex);
            m_images.erase(image);
        }

    private:
        std::mutex m_mutex;
        std::set<std::filesystem::path> m_images;
    };

    Ports m_ports;
    Doubts m_doubts;
    TemplateService& m_templates;
    UidLeases& m_leases;
    CidLeases& m_cids;
    EmulatorMonitor& m_monitor;
    DomainTable& m_table;
    WaitingShells* m_shells = nullptr;
};

} // namespace bulkhead::core
