// SPDX-License-Identifier: Apache-2.0
#include "core/services/pause_service.hpp"

#include "base/log.hpp"

namespace bulkhead::core {
namespace {

tl::unexpected<Error> wrongState(const DomainEntry& entry, const std::string& wanted) {
    return fail(ErrorCode::WrongState,
                "domain \"" + entry.record.name + "\" is " + std::string(nameOf(entry.state)) + "; " + wanted);
}

bool isHeld(const DomainEntry& entry) {
    return entry.state == DomainState::Paused && entry.instance && entry.instance->isHeld;
}

} // namespace

Result<DomainEntry> PauseService::find(const Caller& caller, const DomainId& id) const {
    auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return std::move(*entry);
}

Result<JobId> PauseService::pause(const Caller& caller, const DomainId& id) {
    const auto entry = find(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    if (isHeld(*entry)) {
        return m_jobs.finished("pause", caller.uid, id);
    }
    return m_jobs.begin("pause", caller.uid, [this, id](const JobContext& /*job*/) {
        return runPause(id).map([&] { return JobResult(id); });
    });
}

Result<JobId> PauseService::unpause(const Caller& caller, const DomainId& id) {
    const auto entry = find(caller, id);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->state == DomainState::Running) {
        return m_jobs.finished("unpause", caller.uid, id);
    }
    return m_jobs.begin("unpause", caller.uid, [this, id](const JobContext& /*job*/) {
        return runUnpause(id).map([&] { return JobResult(id); });
    });
}

Status PauseService::runPause(const DomainId& id) {
    const auto operation = m_table.beginOperation(id, "pause", m_busy);
    if (!operation) {
        return fail(operation.error());
    }
    const auto entry = m_table.find(id);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return isHeld(*entry) ? Status{} : hold(*entry);
}

Status PauseService::hold(const DomainEntry& entry) {
    const bool isPaused = entry.state == DomainState::Paused;
    if ((entry.state != DomainState::Running && !isPaused) || !entry.instance) {
        return wrongState(entry, "only what runs can be paused");
    }
    // Before the act: a daemon that dies in between pauses it at its next start. The reverse would let it go on.
    if (auto held = setHeld(entry, true); !held || isPaused) {
        return held;
    }
    if (auto paused = m_ports.hypervisor.pause(entry.instance->id); !paused) {
        if (auto back = setHeld(entry, false); !back) {
            log::error("a domain that could not be paused is paused by the next start of the daemon",
                       {{"DOMAIN", entry.record.id.text()}, {"ERROR", back.error().message}});
        }
        return fail(paused.error().in("pausing domain \"" + entry.record.name + "\""));
    }
    return m_table.apply(entry.record.id, DomainEvent::PauseRequested);
}

Status PauseService::setHeld(const DomainEntry& entry, bool isHeld) {
    InstanceRecord instance = *entry.instance;
    instance.isHeld = isHeld;
    auto recorded = m_ports.instances.setHeld(instance.id, isHeld);
    if (recorded) {
        m_table.setInstance(entry.record.id, instance);
    }
    return recorded;
}

Status PauseService::runUnpause(const DomainId& id) {
    const auto operation = m_table.beginOperation(id, "unpause", m_busy);
    if (!operation) {
        return fail(operation.error());
    }
    const auto entry = m_table.find(id);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Running) {
        return {};
    }
    if (entry->state != DomainState::Paused || !entry->instance) {
        return wrongState(*entry, "only what is paused can go on");
    }
    if (!entry->instance->isHeld && !entry->reason.empty()) {
        return wrongState(*entry, entry->reason);
    }
    if (auto released = setHeld(*entry, false); !released) {
        return released;
    }
    if (auto resumed = m_ports.hypervisor.resume(entry->instance->id); !resumed) {
        [[maybe_unused]] const auto held = setHeld(*entry, true);
        return fail(resumed.error().in("unpausing domain \"" + entry->record.name + "\""));
    }
    if (auto applied = m_table.apply(id, DomainEvent::ResumeRequested); !applied) {
        return applied;
    }
    if (m_whenResumed) {
        m_whenResumed(entry->instance->id);
    }
    // Its clock stood still. One that does not answer now goes on all the same.
    if (auto set = m_ports.links.thaw(entry->instance->id); !set) {
        log::warning("the clock of a guest that was paused could not be set",
                     {{"DOMAIN", id.text()}, {"ERROR", set.error().message}});
    }
    return {};
}

} // namespace bulkhead::core
