// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/hypervisor.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::tests {

/// What every core::Hypervisor keeps to, the fake as well as the real one. Each case gets a hypervisor and a maker of
/// specs (of files that exist, where the hypervisor is real) and leaves nothing running. It gives what was wrong, or
/// an empty text.
struct HypervisorCase {
    const char* name;
    std::function<std::string(core::Hypervisor&, const std::function<core::InstanceSpec()>& makeSpec)> run;
};

namespace contract {

inline std::optional<core::ObservedInstance> find(core::Hypervisor& hypervisor, const InstanceId& id) {
    const auto all = hypervisor.list();
    if (!all) {
        return std::nullopt;
    }
    const auto found = std::find_if(all->begin(), all->end(), [&](const auto& seen) { return seen.id == id; });
    return found == all->end() ? std::nullopt : std::optional(*found);
}

using MakeSpec = std::function<core::InstanceSpec()>;

inline std::string startedIsListed(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto spec = makeSpec();
    const auto pid = hypervisor.start(spec);
    if (!pid) {
        return "start: " + pid.error().message;
    }
    const auto seen = find(hypervisor, spec.id);
    std::string wrong;
    if (!seen) {
        wrong = "a started instance is not listed";
    } else if (seen->pid != *pid || *pid <= 1) {
        wrong = "list and start give different processes";
    } else if (seen->isPaused) {
        wrong = "a started instance is paused";
    }
    const auto destroyed = hypervisor.destroy(spec.id);
    return wrong.empty() && !destroyed ? "destroy: " + destroyed.error().message : wrong;
}

inline std::string destroyedIsGone(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto spec = makeSpec();
    if (const auto pid = hypervisor.start(spec); !pid) {
        return "start: " + pid.error().message;
    }
    if (const auto destroyed = hypervisor.destroy(spec.id); !destroyed) {
        return "destroy: " + destroyed.error().message;
    }
    if (find(hypervisor, spec.id)) {
        return "a destroyed instance is still listed";
    }
    if (const auto again = hypervisor.destroy(spec.id); !again) {
        return "a second destroy is no success: " + again.error().message;
    }
    return "";
}

inline std::string destroyOfUnknownSucceeds(core::Hypervisor& hypervisor, const MakeSpec&) {
    const auto destroyed = hypervisor.destroy(randomId<InstanceId>());
    return destroyed ? "" : "destroy: " + destroyed.error().message;
}

inline std::string resumeOfUnknownFails(core::Hypervisor& hypervisor, const MakeSpec&) {
    const auto resumed = hypervisor.resume(randomId<InstanceId>());
    return !resumed && resumed.error().code == ErrorCode::NotFound ? "" : "resume of no instance is not NotFound";
}

inline std::string pausedStandsStillUntilResumed(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto isPaused = [&](const InstanceId& id) {
        const auto all = hypervisor.list();
        return all && std::any_of(all->begin(), all->end(), [&](const auto& one) {
                   return one.id == id && one.isPaused && !one.isPausedByFullDisk;
               });
    };
    const auto spec = makeSpec();
    if (auto started = hypervisor.start(spec); !started) {
        return "start: " + started.error().message;
    }
    std::string wrong;
    for (const char* const again : {"pause", "pause again"}) {
        if (auto paused = hypervisor.pause(spec.id); !paused) {
            wrong = again + (": " + paused.error().message);
        }
    }
    wrong = wrong.empty() && !isPaused(spec.id) ? "a paused instance is not listed as paused" : wrong;
    if (auto resumed = hypervisor.resume(spec.id); wrong.empty() && !resumed) {
        wrong = "resume: " + resumed.error().message;
    }
    wrong = wrong.empty() && isPaused(spec.id) ? "a resumed instance is listed as paused" : wrong;
    if (auto ended = hypervisor.destroy(spec.id); wrong.empty() && !ended) {
        wrong = "destroy: " + ended.error().message;
    }
    const auto unknown = hypervisor.pause(randomId<InstanceId>());
    return !wrong.empty()                                            ? wrong
           : !unknown && unknown.error().code == ErrorCode::NotFound ? ""
                                                                     : "pause of no instance is not NotFound";
}

inline std::string resumeOfRunningSucceeds(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto spec = makeSpec();
    if (const auto pid = hypervisor.start(spec); !pid) {
        return "start: " + pid.error().message;
    }
    const auto resumed = hypervisor.resume(spec.id);
    const auto destroyed = hypervisor.destroy(spec.id);
    if (!resumed) {
        return "resume: " + resumed.error().message;
    }
    return destroyed ? "" : "destroy: " + destroyed.error().message;
}

inline std::string secondStartFails(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto spec = makeSpec();
    const auto pid = hypervisor.start(spec);
    if (!pid) {
        return "start: " + pid.error().message;
    }
    const auto again = hypervisor.start(spec);
    const auto seen = find(hypervisor, spec.id);
    const auto destroyed = hypervisor.destroy(spec.id);
    if (again || again.error().code != ErrorCode::AlreadyExists) {
        return "a second start of the same instance is not AlreadyExists";
    }
    if (!seen || seen->pid != *pid) {
        return "a refused second start disturbed the first";
    }
    return destroyed ? "" : "destroy: " + destroyed.error().message;
}

inline std::string impossibleSpecIsRefused(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    auto asRoot = makeSpec();
    asRoot.emulatorUid = 0;
    auto withoutDisk = makeSpec();
    withoutDisk.system.layers.clear();
    auto withoutMemory = makeSpec();
    withoutMemory.memory = 0;
    for (const auto& spec : {asRoot, withoutDisk, withoutMemory}) {
        const auto pid = hypervisor.start(spec);
        if (pid || pid.error().code != ErrorCode::InvalidArgument) {
            return "a spec that is no guest is not InvalidArgument";
        }
        if (find(hypervisor, spec.id)) {
            return "a refused start left something";
        }
    }
    return "";
}

inline std::string twoAreIndependent(core::Hypervisor& hypervisor, const MakeSpec& makeSpec) {
    const auto first = makeSpec();
    const auto second = makeSpec();
    const auto firstPid = hypervisor.start(first);
    const auto secondPid = hypervisor.start(second);
    std::string wrong;
    if (!firstPid || !secondPid || *firstPid == *secondPid) {
        wrong = "two instances do not run side by side";
    } else if (!hypervisor.destroy(first.id) || !find(hypervisor, second.id)) {
        wrong = "the end of one instance took the other";
    }
    for (const auto& id : {first.id, second.id}) {
        if (const auto destroyed = hypervisor.destroy(id); !destroyed && wrong.empty()) {
            wrong = "destroy: " + destroyed.error().message;
        }
    }
    return wrong;
}

} // namespace contract

inline std::vector<HypervisorCase> hypervisorContract() {
    return {
        {"a started instance is listed with its process", contract::startedIsListed},
        {"a destroyed instance is gone, twice", contract::destroyedIsGone},
        {"destroy of an unknown instance succeeds", contract::destroyOfUnknownSucceeds},
        {"resume of an unknown instance is NotFound", contract::resumeOfUnknownFails},
        {"a paused instance stands still until it is resumed", contract::pausedStandsStillUntilResumed},
        {"resume of a running instance succeeds", contract::resumeOfRunningSucceeds},
        {"a second start of one instance is refused", contract::secondStartFails},
        {"an impossible spec is refused", contract::impossibleSpecIsRefused},
        {"two instances are independent", contract::twoAreIndependent},
    };
}

} // namespace bulkhead::tests
