// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/services/doctor_service.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/job_service.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/template_service.hpp"
#include "core/services/worker_pool.hpp"
#include "dbus/door.hpp"
#include "dbus/loop.hpp"

#include <sdbus-c++/sdbus-c++.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace bulkhead::dbus {

/// What the objects on the bus share. All of it outlives them.
struct BusContext {
    Loop& loop;
    Door& door;
    core::WorkerPool& calls; ///< for the blocking part of method calls
    core::DomainTable& table;
    core::DomainService& domains;
    core::LifecycleService& lifecycle;
    core::TemplateService& templates;
    core::DoctorService& doctor;
    core::JobService& jobs;
    /// Makes the objects on the bus agree with domains and jobs; called before a reply that may name a new one.
    std::function<void()> syncObjects;

    /// Computes a reply on a worker and sends it from the loop's thread. `work` returns Result<T>; `send` puts the
    /// value into the D-Bus reply.
    template <class Reply, class Work, class Send> void answer(Reply&& reply, Work work, Send send) const {
        // Shared: std::function needs copies, a reply has none.
        auto pending = std::make_shared<std::decay_t<Reply>>(std::forward<Reply>(reply));
        calls.post([this, pending, work = std::move(work), send = std::move(send)]() mutable {
            using Value = decltype(work());
            auto value = std::make_shared<Value>(work());
            loop.post([this, pending, value, send = std::move(send)] {
                syncObjects();
                if (*value) {
                    send(*pending, std::move(**value));
                } else {
                    const Error& error = value->error();
                    pending->returnError(sdbus::Error(errorName(error.code), error.message));
                }
            });
        });
    }
};

} // namespace bulkhead::dbus
