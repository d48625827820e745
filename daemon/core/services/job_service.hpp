// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/finding.hpp"
#include "core/ports/host.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace bulkhead::core {

class WorkerPool;

enum class JobState { Running, Succeeded, Failed, Cancelled };
std::string_view nameOf(JobState state);

struct TemplateBuildResult {
    std::string version;
    bool built = false; ///< false: it was up to date
};
struct WarmImageResult {
    std::string size;
    bool made = false; ///< false: there was one
};
struct StartResult {
    DomainId domain;
    bool isWarm = false; ///< began from a warm image; false: it booted, or ran already
    std::string note;    ///< for people, when something is to be said of it
};
struct StopResult {
    DomainId domain;
    std::optional<SnapshotId> snapshot; ///< what the stop left, if the domain's definition asks for one
    std::string note;                   ///< for people, when something is to be said of it
};
struct SnapshotResult {
    SnapshotId snapshot;
    std::uint64_t pauseMs = 0; ///< for so long the guest stood still
    std::string note;          ///< for people, when something is to be said of it
};
struct RevertResult {
    DomainId domain;
    std::optional<SnapshotId> kept; ///< the snapshot of what was there before
    bool isRunning = false;
    std::string note; ///< for people, when something is to be said of it
};
struct ContainResult {
    DomainId domain;
    SnapshotId evidence;                ///< what it was then
    std::optional<SnapshotId> lastGood; ///< the snapshot before that, where it could go back to
    std::string note;                   ///< for people, when something is to be said of it
};
/// What a job gives back.
using JobResult = std::variant<std::monostate, DomainId, StartResult, StopResult, TemplateBuildResult, WarmImageResult,
                               SnapshotResult, RevertResult, ContainResult, std::vector<Finding>>;

/// A copy of what a job is at one moment; `error` only when it failed or was cancelled.
struct JobInfo {
    JobId id;
    std::string kind;
    uid_t owner = 0;
    JobState state = JobState::Running;
    std::string phase;
    double fraction = -1;
    std::optional<Error> error;
    JobResult result;
};

/// What a job's body sees of its job.
class JobContext {
public:
    JobContext(std::stop_token stop, ProgressSink progress)
        : m_cancel(std::move(stop))
        , m_progress(std::move(progress)) {}

    /// Says what is being done now, for people ("Booting the kernel"); `fraction` 0 to 1, or -1 when not known.
    void report(const std::string& phase, double fraction = -1) const { m_progress(phase, fraction); }
    [[nodiscard]] std::stop_token cancelToken() const { return m_cancel; }
    [[nodiscard]] const ProgressSink& progress() const { return m_progress; }

private:
    std::stop_token m_cancel;
    ProgressSink m_progress;
};

using JobBody = std::function<Result<JobResult>(const JobContext&)>;

/// Long operations with progress and cancel. Thread-safe. An ended job can be described for a minute.
class JobService {
public:
    JobService(WorkerPool& workers, EventSink& events);

    /// What else is to be said to the owner of a job that failed for want of disk space; may be empty. To be set before
    /// the first job.
    void explainFullDisk(std::function<std::string(uid_t)> hint) { m_explainFullDisk = std::move(hint); }

    /// Per user but root: jobs that run at once, and ended ones that are remembered.
    static constexpr unsigned kMostRunning = 16;
    static constexpr unsigned kMostRemembered = 64;

    /// Runs `body` on a worker. LimitExceeded when the owner has kMostRunning.
    Result<JobId> begin(std::string kind, uid_t owner, JobBody body);
    /// A job that has ended before it began, so that callers have one way to get an answer.
    JobId finished(std::string kind, uid_t owner, JobResult result);
    /// NotFound also for jobs of others.
    Result<JobInfo> describe(const Caller& caller, const JobId& id);
    Status cancel(const Caller& caller, const JobId& id);
    /// All jobs that can be described now.
    std::vector<JobId> known();

private:
    struct Job {
        JobInfo info;
        std::stop_source stop;
        std::chrono::steady_clock::time_point endedAt{};
        std::chrono::steady_clock::time_point lastProgress{};
    };

    std::shared_ptr<Job> add(std::string kind, uid_t owner);
    [[nodiscard]] Status checkLimit(uid_t owner);
    void end(const std::shared_ptr<Job>& job, Result<JobResult> result);
    void progress(const std::shared_ptr<Job>& job, const std::string& phase, double fraction);
    void forgetOld();

    WorkerPool& m_workers;
    EventSink& m_events;
    std::function<std::string(uid_t)> m_explainFullDisk;
    std::mutex m_mutex; ///< guards m_jobs and every Job in it
    std::map<JobId, std::shared_ptr<Job>> m_jobs;
};

} // namespace bulkhead::core
