// SPDX-License-Identifier: Apache-2.0
#include "core/services/domain_service.hpp"

#include "base/escaping.hpp"
#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/model/exec_check.hpp"
#include "core/services/template_service.hpp"
#include "core/services/trash_service.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

Status checkOptions(const CreateOptions& options) {
    for (auto& checked : {checkLabel(options.label), checkEgress(options.egress), checkTags(options.tags),
                          options.homeSize ? checkHomeSize(*options.homeSize) : Status()}) {
        if (!checked) {
            return checked;
        }
    }
    return {};
}

tl::unexpected<Error> noSuchDomain(const std::string& name = {}) {
    return fail(ErrorCode::NotFound,
                name.empty() ? "no such domain" : "no domain \"" + name + "\"; `bulkhead domain ls` lists yours");
}

} // namespace

DomainService::DomainService(Ports ports, DomainTable& table, TemplateService& templates, LifecycleService& lifecycle,
                             TrashService& trash, JobService& jobs)
    : m_ports(ports)
    , m_table(table)
    , m_templates(templates)
    , m_lifecycle(lifecycle)
    , m_trash(trash)
    , m_jobs(jobs) {}

Result<TemplateInfo> DomainService::checkTemplate(const std::string& templateName, const std::string& size) {
    auto info = m_templates.find(templateName);
    if (!info || size.empty()) {
        return info;
    }
    const auto checked = checkSize(info->definition, size);
    return checked ? std::move(info) : fail(checked.error());
}

Status DomainService::checkQuota(const Caller& caller, DomainKind kind) const {
    const bool isDisposable = kind == DomainKind::Disposable;
    const auto entries = m_table.all();
    const auto count = std::count_if(entries.begin(), entries.end(), [&](const DomainEntry& entry) {
        return entry.record.owner == caller.uid && (entry.record.kind == DomainKind::Disposable) == isDisposable;
    });
    const unsigned most = isDisposable ? kMostDisposables : kMostDomains;
    if (caller.isRoot() || count < most) {
        return {};
    }
    return fail(ErrorCode::LimitExceeded,
                "you have " + std::to_string(most) +
                    (isDisposable ? " disposables already; wait for one to end, or remove a kept one"
                                  : " domains already; remove one first"));
}

Result<DomainId> DomainService::create(const Caller& caller, const std::string& name, const CreateOptions& options) {
    for (auto& checked : {checkDomainName(name), checkOptions(options), checkQuota(caller, DomainKind::App)}) {
        if (!checked) {
            return fail(checked.error());
        }
    }
    const auto chosen = checkTemplate(options.templateName, options.size);
    if (!chosen) {
        return fail(chosen.error());
    }
    DomainDefinition definition;
    definition.name = name;
    definition.templateName = options.templateName;
    definition.size = options.size;
    definition.label = options.label;
    definition.egress = options.egress;
    definition.tags = options.tags;
    const Bytes homeSize = options.homeSize.value_or(chosen->definition.homeSize);
    definition.homeSize = homeSize;
    return add(caller, std::move(definition), {}, [&](const DomainRecord& record) {
        return m_ports.store.createHome(record.id, record.owner, record.name, homeSize);
    });
}

Result<DomainId> DomainService::createFork(const Caller& caller, const std::string& name,
                                           const DomainDefinition& definition, const SnapshotRecord& node,
                                           bool keepsMemory) {
    for (auto& checked : {checkDomainName(name), checkLabel(definition.label), checkEgress(definition.egress),
                          checkQuota(caller, DomainKind::App)}) {
        if (!checked) {
            return fail(checked.error());
        }
    }
    DomainDefinition wanted = definition;
    wanted.name = name;
    wanted.kind = DomainKind::App;
    wanted.isManaged = false;
    wanted.file.clear();
    const DomainHead head{node.id, keepsMemory && node.memory.has_value(), holdsVersion(node)};
    return add(caller, std::move(wanted), head, [&](const DomainRecord& record) {
        return m_ports.snapshots.resetHome(record.id, record.owner, record.name, node.home);
    });
}

Result<DomainId> DomainService::add(const Caller& caller, DomainDefinition definition, const DomainHead& head,
                                    const std::function<Status(const DomainRecord&)>& makeHome) {
    DomainRecord record;
    record.id = randomId<DomainId>();
    record.owner = caller.uid;
    record.name = definition.name;
    record.kind = DomainKind::App;
    record.createdAt = m_ports.clock.now();
    definition.owner = caller.uid;

    if (m_table.findByName(caller.uid, record.name)) {
        return fail(ErrorCode::AlreadyExists, "a domain named \"" + record.name + "\" exists already");
    }
    if (auto inserted = m_ports.domains.insert(record); !inserted) {
        return fail(inserted.error());
    }
    ScopeGuard undoRecord([&] { [[maybe_unused]] const auto gone = m_ports.domains.remove(record.id); });

    if (auto made = makeHome(record); !made) {
        return fail(made.error().in("home disk of domain \"" + record.name + "\""));
    }
    ScopeGuard undoHome([&] { [[maybe_unused]] const auto gone = m_ports.store.removeHome(record.id); });
    auto saved = m_ports.definitions.save(definition);
    if (!saved) {
        return fail(saved.error());
    }
    ScopeGuard undoFile([&] { [[maybe_unused]] const auto gone = m_ports.definitions.removeDefinition(*saved); });

    if (head.node) {
        if (auto stands = m_ports.heads.setHead(record.id, head); !stands) {
            return fail(stands.error());
        }
    }
    if (auto present = m_ports.domains.setPhase(record.id, DomainRecord::Phase::Present); !present) {
        return fail(present.error());
    }
    record.phase = DomainRecord::Phase::Present;
    DomainEntry entry;
    entry.record = record;
    entry.definition = *saved;
    entry.head = head;
    entry.state = head.isSuspended ? DomainState::Suspended : DomainState::Stopped;
    if (auto inserted = m_table.insert(std::move(entry)); !inserted) {
        return fail(inserted.error());
    }
    undoFile.dismiss();
    undoHome.dismiss();
    undoRecord.dismiss();
    return record.id;
}

Result<DomainId> DomainService::createDisposable(const Caller& caller, const std::string& templateName,
                                                 const std::string& size, const DisposableWish& wish) {
    DomainEntry entry;
    DomainRecord& record = entry.record;
    record.templateName = wish.node              ? wish.node->templateName
                          : templateName.empty() ? CreateOptions{}.templateName
                                                 : templateName;
    record.size = wish.node ? wish.node->size : size;
    if (auto checked = checkTemplate(record.templateName, record.size); !checked) {
        return fail(checked.error());
    }
    if (auto checked = checkQuota(caller, DomainKind::Disposable); !checked) {
        return fail(checked.error());
    }
    record.id = randomId<DomainId>();
    record.owner = caller.uid;
    record.name = disposableName(record.id);
    record.kind = DomainKind::Disposable;
    record.phase = DomainRecord::Phase::Present;
    record.createdAt = m_ports.clock.now();
    record.isKept = wish.isKept;
    entry.definition = definitionOfDisposable(record);
    entry.waitingClient = caller.busName;
    entry.inspected = wish.inspected;
    entry.inspectedNodes = wish.inspectedNodes;
    if (wish.node) {
        entry.head = {wish.node->id, wish.isInMemory && wish.node->memory};
        entry.state = entry.head.isSuspended ? DomainState::Suspended : DomainState::Stopped;
    }
    const DomainId id = record.id;
    if (auto inserted = m_ports.domains.insert(record); !inserted) {
        return fail(inserted.error());
    }
    ScopeGuard undoRecord([&] { [[maybe_unused]] const auto gone = m_ports.domains.remove(id); });
    if (entry.head.node) {
        if (auto stands = m_ports.heads.setHead(id, entry.head); !stands) {
            return fail(stands.error());
        }
    }
    if (auto inserted = m_table.insert(std::move(entry)); !inserted) {
        return fail(inserted.error());
    }
    undoRecord.dismiss();
    return id;
}

Result<DomainEntry> DomainService::find(const Caller& caller, const DomainId& id) {
    auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return noSuchDomain();
    }
    return std::move(*entry);
}

Result<DomainEntry> DomainService::findByName(const Caller& caller, const std::string& name) {
    auto entry = m_table.findByName(caller.uid, name);
    if (!entry) {
        return noSuchDomain(escapeUntrusted(name, 40));
    }
    return std::move(*entry);
}

Result<std::vector<DomainEntry>> DomainService::list(const Caller& caller, bool everybody) {
    if (everybody && !caller.isRoot()) {
        return fail(ErrorCode::NotAuthorized, "only root may list everybody's domains");
    }
    auto entries = m_table.all();
    std::erase_if(entries, [&](const DomainEntry& entry) { return !everybody && entry.record.owner != caller.uid; });
    return entries;
}

Result<DomainEntry> DomainService::setDefinition(const Caller& caller, const DomainId& id, const Settings& settings) {
    const auto change = readChange(settings);
    if (!change) {
        return fail(change.error());
    }
    const std::lock_guard lock(m_definitions);
    const auto entry = find(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    const std::string name = "domain \"" + entry->record.name + "\"";
    if (entry->record.kind == DomainKind::Disposable) {
        return fail(ErrorCode::WrongState, name + " is disposable: it has no definition that could be changed");
    }
    if (entry->definition.isManaged) {
        return fail(ErrorCode::NotAuthorized,
                    name + " is managed by the administrator, who changes " + entry->definition.file);
    }
    if (entry->record.phase != DomainRecord::Phase::Present) {
        return fail(ErrorCode::WrongState, name + " is being removed");
    }
    if (!entry->definitionProblem.empty()) {
        return fail(ErrorCode::WrongState,
                    name + " cannot be changed before its definition is mended by hand: " + entry->definitionProblem);
    }
    const auto current = m_ports.definitions.reload(entry->definition);
    if (!current) {
        return fail(current.error().in(name + " cannot be changed before its definition is mended by hand"));
    }
    if (change->size) {
        if (auto checked = checkTemplate(current->templateName, *change->size); !checked) {
            return fail(checked.error().in("size"));
        }
    }
    // The disk first: one that is larger than the file says does no harm.
    if (change->homeSize && change->homeSize != current->homeSize) {
        if (auto grown = growHome(*entry, *change->homeSize); !grown) {
            return fail(grown.error().in("home-size"));
        }
    }
    auto saved = m_ports.definitions.save(changedBy(*current, *change));
    if (!saved) {
        return fail(saved.error());
    }
    m_table.setDefinition(id, std::move(*saved));
    return find(caller, id);
}

Status DomainService::growHome(const DomainEntry& entry, Bytes size) {
    const auto operation = m_table.beginOperation(entry.record.id, "growth of its home");
    if (!operation) {
        return fail(operation.error());
    }
    const auto now = m_table.find(entry.record.id);
    if (now && now->head.isSuspended) {
        return fail(ErrorCode::WrongState,
                    "domain \"" + entry.record.name +
                        "\" is suspended, and its memory knows the home as it is; it can grow after: "
                        "bulkhead domain stop " +
                        entry.record.name);
    }
    if (now && now->instance) {
        return fail(ErrorCode::WrongState, "domain \"" + entry.record.name + "\" is " +
                                               std::string(nameOf(now->state)) +
                                               "; its home can grow while it is "
                                               "stopped: bulkhead domain stop " +
                                               entry.record.name);
    }
    return m_ports.store.growHome(entry.record.id, size);
}

Result<JobId> DomainService::remove(const Caller& caller, const DomainId& id, const RemoveOptions& options) {
    const auto entry = find(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->definition.isManaged) {
        return fail(ErrorCode::NotAuthorized, "domain \"" + entry->record.name +
                                                  "\" is managed by the administrator (" + entry->definition.file +
                                                  ")");
    }
    if (entry->instance && !options.force) {
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is " +
                                               std::string(nameOf(entry->state)) +
                                               "; stop it first, or remove it with --force");
    }
    const auto isForGood = [this, options](const DomainEntry& domain) {
        return options.forGood || !m_trash.isKeeping() || domain.record.kind != DomainKind::App ||
               domain.record.phase == DomainRecord::Phase::Removing; // that has begun
    };
    if (auto room = isForGood(*entry) ? Status() : m_trash.checkRoom(caller); !room) {
        return fail(room.error());
    }
    return m_jobs.begin("remove", caller.uid, [this, id, isForGood](const JobContext& job) -> Result<JobResult> {
        job.report("Removing");
        const auto current = m_table.find(id);
        if (current && current->record.kind == DomainKind::Disposable) {
            m_lifecycle.removeDisposable(id, "removed by its owner");
            return JobResult(std::monostate{});
        }
        const auto operation = m_table.beginOperation(id, "removal");
        if (!operation) {
            return fail(operation.error());
        }
        const auto domain = m_table.find(id);
        if (!domain) {
            return noSuchDomain();
        }
        // Until it is ended nothing is taken away: a failure or a crash here means that it was not removed.
        if (auto ended = m_lifecycle.endInstance(*domain, {.force = true, .grace = {}}); !ended) {
            return fail(ended.error().in("removing domain \"" + domain->record.name + "\""));
        }
        if (!isForGood(*domain)) {
            const std::lock_guard lock(m_definitions);
            const auto ended = m_table.find(id); // its head may have moved
            const auto deleted = ended ? m_trash.moveIn(*ended) : Status(noSuchDomain());
            return deleted.map([] { return JobResult(std::monostate{}); });
        }
        // From here on it is finished: by us, by the next try, or by the reconciler.
        DomainRecord going = domain->record;
        going.phase = DomainRecord::Phase::Removing;
        going.deletedAt = 0; // also where an earlier removal was to keep it
        if (auto marked = m_ports.domains.update(going); !marked) {
            return fail(marked.error());
        }
        m_table.markRemoving(id);
        const auto removeFile = [&] {
            const std::lock_guard lock(m_definitions); // a change under way would write the file again
            return m_ports.definitions.removeDefinition(domain->definition).and_then([&] {
                return m_trash.forget(domain->record); // an earlier try to delete it may have got so far
            });
        };
        const auto removed = removeFile().and_then([&] { return m_ports.store.removeHome(id); }).and_then([&] {
            return m_ports.domains.remove(id);
        });
        if (!removed) {
            return fail(removed.error().in("removing domain \"" + domain->record.name + "\""));
        }
        m_table.erase(id);
        if (m_whenRemoved) {
            m_whenRemoved();
        }
        return JobResult(std::monostate{});
    });
}

Result<DomainId> DomainService::restore(const Caller& caller, const std::string& which,
                                        const std::optional<std::string>& otherName) {
    if (auto checked = checkQuota(caller, DomainKind::App); !checked) {
        return fail(checked.error());
    }
    const std::lock_guard lock(m_definitions);
    return m_trash.restore(caller, which, otherName);
}

Result<DomainEntry> DomainService::findRunning(const Caller& caller, const DomainId& id) {
    auto entry = find(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->record.phase != DomainRecord::Phase::Present) {
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is being removed");
    }
    if (entry->state != DomainState::Running || !entry->instance) {
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is " +
                                               std::string(nameOf(entry->state)) + "; start it first");
    }
    return entry;
}

Result<ExecStreams> DomainService::exec(const Caller& caller, const DomainId& id, const ExecRequest& request) {
    if (auto checked = checkExecRequest(request); !checked) {
        return fail(checked.error());
    }
    auto entry = findRunning(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    const auto beginning = m_table.beginProgram(id);
    if (!beginning) {
        return fail(beginning.error());
    }
    entry = findRunning(caller, id); // it may have been suspended in between
    if (!entry) {
        return fail(entry.error());
    }
    m_lifecycle.noteUse(*entry);
    auto streams = m_ports.links.exec(entry->instance->id, request);
    if (streams) {
        m_table.setWaitingClient(id, {});
    }
    return streams;
}

Result<GuestStatus> DomainService::status(const Caller& caller, const DomainId& id) {
    const auto entry = findRunning(caller, id);
    return entry ? m_ports.links.status(entry->instance->id) : fail(entry.error());
}

unsigned DomainService::runningExecs(const DomainEntry& entry) {
    return entry.instance ? m_ports.links.runningExecs(entry.instance->id) : 0;
}

} // namespace bulkhead::core
