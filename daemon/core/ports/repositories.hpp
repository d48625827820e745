// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/domain.hpp"
#include "core/model/instance.hpp"
#include "core/model/snapshot.hpp"
#include "core/model/template.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::core {

/// A version of a template.
struct TemplateVersion {
    std::string name;
    std::string version;
    bool operator==(const TemplateVersion&) const = default;
};

/// What the database holds of a domain; what the user wants of it stands in its TOML file (DefinitionStore).
struct DomainRecord {
    enum class Phase {
        Creating, ///< intent: undone by the reconciler
        Present,
        Removing,  ///< intent: finished by the reconciler
        Deleting,  ///< intent to make it Deleted: finished by the reconciler
        Deleted,   ///< it can be restored; its name is free for another one
        Restoring, ///< intent to make it Present again under its name: finished by the reconciler
    };
    DomainId id;
    uid_t owner = 0;
    std::string name;
    DomainKind kind = DomainKind::App;
    Phase phase = Phase::Creating;
    std::int64_t createdAt = 0; ///< seconds since the epoch
    std::string lastFailure;    ///< why the last start or run failed; empty: it did not
    /// Disposables have no file: what they were made with.
    std::string templateName;
    std::string size;
    /// A disposable that is suspended, not removed, when what ran in it has ended; see KeptDisposables.
    bool isKept = false;
    std::int64_t deletedAt = 0; ///< seconds since the epoch, from Deleting on; 0: it is not deleted
    /// What its home was last run with; empty: nothing yet, or it is not known. Of disposables only those that are kept
    /// have it, from the first program on.
    TemplateVersion ranWith;

    /// It is deleted and holds its name no longer, also while it is removed for good.
    [[nodiscard]] bool isInTrash() const {
        return deletedAt != 0 && (phase == Phase::Deleted || phase == Phase::Removing);
    }
    bool operator==(const DomainRecord&) const = default;
};

/// Each call is one transaction that is on disk (synchronous=FULL) when it returns. Blocking, thread-safe.
class DomainRepository {
public:
    virtual ~DomainRepository() = default;
    /// AlreadyExists when (owner, name) is taken by another id. Records in the trash take no name.
    virtual Status insert(const DomainRecord& record) = 0;
    /// Changes name, phase and deletedAt. AlreadyExists as insert().
    virtual Status update(const DomainRecord& record) = 0;
    virtual Status setPhase(const DomainId& id, DomainRecord::Phase phase) = 0;
    virtual Status setLastFailure(const DomainId& id, const std::string& reason) = 0;
    virtual Status setRanWith(const DomainId& id, const TemplateVersion& version) = 0;
    virtual Status remove(const DomainId& id) = 0;
    virtual Result<std::vector<DomainRecord>> all() = 0;
};

/// Instances that exist or are about to. The same promises as DomainRepository.
class InstanceRepository {
public:
    virtual ~InstanceRepository() = default;
    virtual Status insert(const InstanceRecord& record) = 0;
    virtual Status setPhase(const InstanceId& id, InstancePhase phase) = 0;
    virtual Status setHeld(const InstanceId& id, bool isHeld) = 0;
    /// Gives one that belongs to no domain to this one, which starts now. NotFound: there is no such instance, or it
    /// has a domain already; WrongState: there is no such domain.
    virtual Status assign(const InstanceId& id, const DomainId& domain, std::int64_t startedAt) = 0;
    virtual Status remove(const InstanceId& id) = 0;
    virtual Result<std::vector<InstanceRecord>> all() = 0;
};

/// The nodes of all lineages, and where each domain stands. The same promises as DomainRepository. What it holds can be
/// made again from the manifests beside the nodes' files (SnapshotStore::all()).
class SnapshotRepository {
public:
    virtual ~SnapshotRepository() = default;
    /// Makes it, or replaces what is there of this id.
    virtual Status save(const SnapshotRecord& record) = 0;
    virtual Status remove(const SnapshotId& id) = 0;
    virtual Result<std::vector<SnapshotRecord>> all() = 0;
    /// A domain without a node has no head. Gone with its domain.
    virtual Status setHead(const DomainId& domain, const DomainHead& head) = 0;
    virtual Result<std::map<DomainId, DomainHead>> heads() = 0;
};

/// Why a definition cannot be used, and whose it is: texts of one user's files must never be shown to another.
struct DefinitionProblem {
    Error error;                ///< file:line:column, what, and what to do
    std::filesystem::path file; ///< or the folder that cannot be read
    /// The domain's owner: by the folder of users' files, by what an admin's file says when that much can be read.
    /// None: nobody's, so for root only. Always none for templates.
    std::optional<uid_t> owner;
    std::string name; ///< of the domain or the template; empty when a folder is the problem
};

/// Definitions as files. Blocking, thread-safe.
class DefinitionStore {
public:
    virtual ~DefinitionStore() = default;
    struct Loaded {
        std::vector<DomainDefinition> domains;
        std::vector<DefinitionProblem> problems; ///< at least one per bad file
    };
    /// Reads /etc/bulkhead/domains.d/NAME.toml and the state folder's domains/UID/NAME.toml.
    virtual Loaded loadDomains() = 0;
    /// The user's definition as its file says it now: somebody may have edited it since it was read. NotFound when
    /// there is no file; InvalidArgument with file:line:column when it cannot be used.
    virtual Result<DomainDefinition> reload(const DomainDefinition& definition) = 0;
    /// Writes (temporary file, fsync, rename, fsync of the folder) the user's definition; sets `file`. What people
    /// wrote around the values of an existing file (comments, order, blank lines) stays.
    virtual Result<DomainDefinition> save(DomainDefinition definition) = 0;
    virtual Status removeDefinition(const DomainDefinition& definition) = 0;
    struct LoadedTemplates {
        std::vector<TemplateDefinition> templates;
        std::vector<DefinitionProblem> problems;
    };
    virtual LoadedTemplates loadTemplates() = 0;
    /// Makes TemplateDefinition::addedPackages of the template exactly these, on disk when it returns; none: nothing is
    /// left of them.
    virtual Status saveAddedPackages(const std::string& templateName, const std::vector<std::string>& packages) = 0;
};

} // namespace bulkhead::core
