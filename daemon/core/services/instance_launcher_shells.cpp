// SPDX-License-Identifier: Apache-2.0
// Emulators that wait for the start of a domain: how they are made, and how a start takes one.
#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/launch_plan.hpp"

namespace bulkhead::core {

Result<Shell> InstanceLauncher::makeShell(const WarmImageKey& key, Bytes homeSize) {
    auto planned = plan({.templateName = key.templateName,
                         .size = key.size,
                         .label = key.label,
                         .homeSize = homeSize,
                         .audio = key.audio});
    if (!planned) {
        return fail(planned.error());
    }
    Plan& plan = *planned;
    if (auto chosen = chooseMachine(plan); !chosen) {
        return fail(chosen.error());
    }
    const JobContext nobodys({}, [](const std::string&, double) {});
    useWarmImage(plan, nobodys);
    if (!plan.warm || plan.warm->key != key) {
        return fail(ErrorCode::WrongState, "the warm image of template \"" + key.templateName + "\", size \"" +
                                               key.size + "\", is not in use any more");
    }
    if (auto begun = begin(plan); !begun) {
        return fail(begun.error());
    }
    ScopeGuard undoing([&] {
        if (!undo(plan) && m_shells != nullptr) {
            m_shells->endLater(plan.record);
        }
    });
    const auto started = startEmulator(plan, nobodys);
    if (!started) {
        return fail(started.error());
    }
    undoing.dismiss();
    return Shell{plan.record, plan.files, started->files, started->emulator, *plan.warm};
}

bool InstanceLauncher::takeShell(Plan& plan) {
    // One has an empty home disk that goes with it. A kept home takes its place; what lies above a snapshot's does not,
    // since it is not made yet.
    if (m_shells == nullptr || !plan.warm || !plan.files.homeBase.layers.empty()) {
        return false;
    }
    // A home may be larger than its definition says by now.
    const auto homeSize = plan.keptHome ? m_ports.homes.sizeOfHome(*plan.keptHome) : Result<Bytes>(plan.files.homeSize);
    if (!homeSize) {
        return false; // the start says what is wrong with it
    }
    auto shell = m_shells->claim(*plan.warm, *homeSize);
    if (!shell) {
        return false;
    }
    shell->record.domain = plan.record.domain;
    shell->record.startedAt = plan.record.startedAt;
    // The intent, as in begin(): from here on the reconciler ends it as a start that was cut off.
    const auto assigned = m_ports.instances.assign(shell->record.id, shell->record.domain, shell->record.startedAt);
    if (!assigned) {
        log::warning("a waiting emulator cannot be given to a domain",
                     {{"INSTANCE", shell->record.id.text()}, {"ERROR", assigned.error().message}});
        m_shells->endLater(shell->record);
        return false;
    }
    plan.record = shell->record;
    plan.files = std::move(shell->plan);
    plan.files.keptHome = plan.keptHome;
    plan.shell = Started{std::move(shell->files), shell->emulator};
    m_table.setInstance(plan.record.domain, plan.record);
    return true;
}

} // namespace bulkhead::core
