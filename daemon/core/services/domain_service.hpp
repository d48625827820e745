// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/definition_change.hpp"
#include "core/model/domain.hpp"
#include "core/model/instance.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"
#include "core/services/lifecycle_service.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::core {

class TemplateService;
class TrashService;
struct TemplateInfo;

/// The user's words for a new domain; checked here.
struct CreateOptions {
    std::string templateName = "minimal";
    std::string size;
    std::string label = "gray";
    std::string egress = "none";
    std::optional<Bytes> homeSize;
    std::vector<std::string> tags;
};

/// What a disposable may be besides of a template and a size.
struct DisposableWish {
    /// It begins where this node stands, of its template and size; none: from the template.
    std::optional<SnapshotRecord> node;
    bool isInMemory = true; ///< of a full node: goes on in its memory, otherwise boots from its disks
    bool isKept = false;    ///< see KeptDisposables
    /// DomainEntry's; it boots then.
    std::vector<InspectedDisk> inspected;
    std::vector<SnapshotId> inspectedNodes;
};

/// Domains as their owners see them: make, find, list, remove, run programs in. Every call checks the caller; what
/// belongs to others is NotFound. Thread-safe, blocking.
class DomainService {
public:
    /// Per user but root.
    static constexpr unsigned kMostDomains = 64;
    static constexpr unsigned kMostDisposables = 16;

    struct Ports {
        DomainRepository& domains;
        DefinitionStore& definitions;
        InstanceStore& store;
        GuestLinks& links;
        SnapshotStore& snapshots;
        SnapshotRepository& heads;
        Clock& clock;
    };
    DomainService(Ports ports, DomainTable& table, TemplateService& templates, LifecycleService& lifecycle,
                  TrashService& trash, JobService& jobs);

    /// Called after a domain and its home are gone, from a job's thread: what its home lay above may be of no use any
    /// more. To be set before the first removal.
    void whenRemoved(std::function<void()> told) { m_whenRemoved = std::move(told); }

    Result<DomainId> create(const Caller& caller, const std::string& name, const CreateOptions& options);
    /// A domain that begins where the node stands: its home lies above the node's. Label and egress are those of
    /// `definition`, whose name and file are not used. Its head is the node; suspended in it when it has memory and
    /// `keepsMemory`.
    Result<DomainId> createFork(const Caller& caller, const std::string& name, const DomainDefinition& definition,
                                const SnapshotRecord& node, bool keepsMemory);
    /// Makes a disposable's entry and record; LifecycleService starts it. With a node `templateName` and `size` are not
    /// used.
    Result<DomainId> createDisposable(const Caller& caller, const std::string& templateName, const std::string& size,
                                      const DisposableWish& wish = {});
    Result<DomainEntry> find(const Caller& caller, const DomainId& id);
    /// WrongState unless it runs and stays; `instance` is set.
    Result<DomainEntry> findRunning(const Caller& caller, const DomainId& id);
    Result<DomainEntry> findByName(const Caller& caller, const std::string& name);
    /// `everybody`: also other people's; for root only.
    Result<std::vector<DomainEntry>> list(const Caller& caller, bool everybody);
    /// Changes the definition and its file, also of a domain that runs (see DomainEntry::isRestartNeeded), but for
    /// home-size, which needs it stopped. What somebody wrote into the file by hand meanwhile is taken over. The entry
    /// as it is then. Errors about one setting begin with its key, see readChange(). NotAuthorized for an admin's one.
    Result<DomainEntry> setDefinition(const Caller& caller, const DomainId& id, const Settings& settings);
    struct RemoveOptions {
        bool force = false;   ///< also while it runs
        bool forGood = false; ///< it cannot be restored
    };
    /// An app domain can be restored for a time, unless the daemon keeps none.
    Result<JobId> remove(const Caller& caller, const DomainId& id, const RemoveOptions& options);
    /// A deleted one, stopped; see TrashService::restore().
    Result<DomainId> restore(const Caller& caller, const std::string& which,
                             const std::optional<std::string>& otherName);

    Result<ExecStreams> exec(const Caller& caller, const DomainId& id, const ExecRequest& request);
    Result<GuestStatus> status(const Caller& caller, const DomainId& id);
    unsigned runningExecs(const DomainEntry& entry);

private:
    /// Record, home (by `makeHome`), file, head and entry: all of them or none.
    Result<DomainId> add(const Caller& caller, DomainDefinition definition, const DomainHead& head,
                         const std::function<Status(const DomainRecord&)>& makeHome);
    Result<TemplateInfo> checkTemplate(const std::string& templateName, const std::string& size);
    Status growHome(const DomainEntry& entry, Bytes size);
    [[nodiscard]] Status checkQuota(const Caller& caller, DomainKind kind) const;

    Ports m_ports;
    DomainTable& m_table;
    TemplateService& m_templates;
    LifecycleService& m_lifecycle;
    TrashService& m_trash;
    JobService& m_jobs;
    std::function<void()> m_whenRemoved;
    std::mutex m_definitions; ///< held while a definition is changed or goes: each change starts from the one before
};

} // namespace bulkhead::core
