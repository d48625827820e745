// SPDX-License-Identifier: Apache-2.0
#include "core/services/job_service.hpp"

#include "base/log.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

constexpr std::chrono::seconds kKeepEnded{60};
constexpr std::chrono::milliseconds kProgressInterval{100};

} // namespace

std::string_view nameOf(JobState state) {
    switch (state) {
    case JobState::Running:
        return "running";
    case JobState::Succeeded:
        return "succeeded";
    case JobState::Failed:
        return "failed";
    case JobState::Cancelled:
        return "cancelled";
    }
    return "unknown";
}

JobService::JobService(WorkerPool& workers, EventSink& events)
    : m_workers(workers)
    , m_events(events) {}

std::shared_ptr<JobService::Job> JobService::add(std::string kind, uid_t owner) {
    // Shared: the map forgets an old job while its worker may still hold it.
    auto job = std::make_shared<Job>();
    job->info.id = randomId<JobId>();
    job->info.kind = std::move(kind);
    job->info.owner = owner;
    const std::lock_guard lock(m_mutex);
    forgetOld();
    m_jobs.emplace(job->info.id, job);
    return job;
}

Status JobService::checkLimit(uid_t owner) {
    const std::lock_guard lock(m_mutex);
    const auto running = std::count_if(m_jobs.begin(), m_jobs.end(), [owner](const auto& entry) {
        return entry.second->info.owner == owner && entry.second->info.state == JobState::Running;
    });
    if (owner != 0 && running >= kMostRunning) {
        return fail(ErrorCode::LimitExceeded,
                    "you have " + std::to_string(kMostRunning) + " jobs running already; wait for one to end");
    }
    return {};
}

Result<JobId> JobService::begin(std::string kind, uid_t owner, JobBody body) {
    if (auto checked = checkLimit(owner); !checked) {
        return fail(checked.error());
    }
    auto job = add(std::move(kind), owner);
    m_workers.post([this, job, body = std::move(body)] {
        const JobContext context(job->stop.get_token(), [this, job](const std::string& phase, double fraction) {
            progress(job, phase, fraction);
        });
        end(job, body(context));
    });
    return job->info.id;
}

JobId JobService::finished(std::string kind, uid_t owner, JobResult result) {
    auto job = add(std::move(kind), owner);
    end(job, std::move(result));
    return job->info.id;
}

void JobService::end(const std::shared_ptr<Job>& job, Result<JobResult> result) {
    if (!result && result.error().code == ErrorCode::NoSpace && m_explainFullDisk) {
        if (const std::string hint = m_explainFullDisk(job->info.owner); !hint.empty()) {
            result = fail(ErrorCode::NoSpace, result.error().message + "; " + hint);
        }
    }
    {
        const std::lock_guard lock(m_mutex);
        job->endedAt = std::chrono::steady_clock::now();
        job->info.fraction = 1;
        if (result) {
            job->info.state = JobState::Succeeded;
            job->info.result = std::move(*result);
        } else {
            job->info.state = result.error().code == ErrorCode::Cancelled ? JobState::Cancelled : JobState::Failed;
            job->info.error = result.error();
        }
    }
    if (job->info.error) {
        log::notice("job ended without success", {{"JOB", job->info.id.text()},
                                                  {"KIND", job->info.kind},
                                                  {"PHASE", job->info.phase},
                                                  {"ERROR", job->info.error->message}});
    }
    m_events.jobFinished(job->info.id);
}

void JobService::progress(const std::shared_ptr<Job>& job, const std::string& phase, double fraction) {
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(m_mutex);
        const bool isNewPhase = job->info.phase != phase;
        job->info.phase = phase;
        job->info.fraction = fraction;
        if (!isNewPhase && now - job->lastProgress < kProgressInterval) {
            return;
        }
        job->lastProgress = now;
    }
    m_events.jobProgress(job->info.id, fraction);
}

Result<JobInfo> JobService::describe(const Caller& caller, const JobId& id) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_jobs.find(id);
    if (found == m_jobs.end() || !caller.mayUse(found->second->info.owner)) {
        return fail(ErrorCode::NotFound, "no such job");
    }
    return found->second->info;
}

Status JobService::cancel(const Caller& caller, const JobId& id) {
    std::stop_source stop;
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_jobs.find(id);
        if (found == m_jobs.end() || !caller.mayUse(found->second->info.owner)) {
            return fail(ErrorCode::NotFound, "no such job");
        }
        stop = found->second->stop;
    }
    // Outside the lock: stop callbacks run here, in this thread.
    stop.request_stop();
    return {};
}

std::vector<JobId> JobService::known() {
    const std::lock_guard lock(m_mutex);
    forgetOld();
    std::vector<JobId> ids;
    for (const auto& [id, job] : m_jobs) {
        ids.push_back(id);
    }
    return ids;
}

void JobService::forgetOld() {
    // Not the wall clock: a step of it must not forget what has just ended.
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(m_jobs, [now](const auto& entry) {
        return entry.second->info.state != JobState::Running && now - entry.second->endedAt > kKeepEnded;
    });
    std::map<uid_t, std::vector<std::shared_ptr<Job>>> endedOf;
    for (const auto& [id, job] : m_jobs) {
        if (job->info.state != JobState::Running && job->info.owner != 0) {
            endedOf[job->info.owner].push_back(job);
        }
    }
    for (auto& [owner, ended] : endedOf) {
        std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a->endedAt > b->endedAt; });
        for (std::size_t i = kMostRemembered; i < ended.size(); ++i) {
            m_jobs.erase(ended[i]->info.id);
        }
    }
}

} // namespace bulkhead::core
