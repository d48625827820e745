// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log.hpp"
#include "base/result.hpp"
#include "core/services/contain_service.hpp"
#include "core/services/display_service.hpp"
#include "core/services/doctor_service.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/job_service.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/pause_service.hpp"
#include "core/services/snapshot_service.hpp"
#include "core/services/template_service.hpp"
#include "core/services/trash_service.hpp"
#include "core/services/warm_image_service.hpp"
#include "core/services/worker_pool.hpp"
#include "dbus/door.hpp"
#include "dbus/loop.hpp"

#include <sdbus-c++/sdbus-c++.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace bulkhead::dbus {

/// Bounds what one user may have under way, so that nobody can keep the others waiting. Loop thread only.
class CallLimiter {
public:
    static constexpr unsigned kMostCalls = 16;

    /// LimitExceeded names the number. Root is not bounded.
    Status enter(const core::Caller& caller) {
        unsigned& calls = m_calls[caller.uid];
        if (calls >= kMostCalls && !caller.isRoot()) {
            return fail(ErrorCode::LimitExceeded,
                        "you have " + std::to_string(kMostCalls) + " calls under way already; wait for their answers");
        }
        ++calls;
        return {};
    }
    void leave(const core::Caller& caller) {
        if (--m_calls[caller.uid] == 0) {
            m_calls.erase(caller.uid);
        }
    }

private:
    std::map<uid_t, unsigned> m_calls;
};

/// What the objects on the bus share. All of it outlives them.
struct BusContext {
    Loop& loop;
    Door& door;
    core::WorkerPool& calls; ///< for the blocking part of method calls
    core::DomainTable& table;
    core::DomainService& domains;
    core::TrashService& trash;
    core::DisplayService& displays;
    core::LifecycleService& lifecycle;
    core::PauseService& pauses;
    core::ContainService& containment;
    core::TemplateService& templates;
    core::WarmImageService& warmImages;
    core::SnapshotService& snapshots;
    core::DoctorService& doctor;
    core::JobService& jobs;
    /// Makes the objects on the bus agree with domains and jobs; called before a reply that may name a new one.
    std::function<void()> syncObjects;

    CallLimiter& limiter;

    /// Computes a reply on a worker and sends it from the loop's thread. `work` returns Result<T>; `send` puts the
    /// value into the D-Bus reply. Refuses at once when the caller has too many calls under way.
    template <class Reply, class Work, class Send>
    void answer(const core::Caller& caller, Reply&& reply, Work work, Send send) const {
        if (auto admitted = limiter.enter(caller); !admitted) {
            throwError(admitted.error());
        }
        // Shared: std::function needs copies, a reply has none.
        auto pending = std::make_shared<std::decay_t<Reply>>(std::forward<Reply>(reply));
        calls.post([this, caller, pending, work = std::move(work), send = std::move(send)]() mutable {
            using Value = decltype(work());
            auto value = std::make_shared<Value>(work());
            loop.post([this, caller, pending, value, send = std::move(send)] {
                limiter.leave(caller);
                // What cannot be sent must not end the daemon: this runs below sd-event's frames.
                try {
                    syncObjects();
                    if (*value) {
                        send(*pending, std::move(**value));
                    } else {
                        pending->returnError(busError(value->error()));
                    }
                } catch (const sdbus::Error& error) {
                    log::error("a reply could not be sent", {{"ERROR", error.getMessage()}});
                }
            });
        });
    }
};

} // namespace bulkhead::dbus
