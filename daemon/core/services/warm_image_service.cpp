// SPDX-License-Identifier: Apache-2.0
#include "core/services/warm_image_service.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"

#include <condition_variable>
#include <thread>

namespace bulkhead::core {
namespace {

/// What a guest writes to its system disk while it boots is less.
constexpr Bytes kSystemLayer = 256 * kMiB;

} // namespace

WarmImageService::WarmImageService(Ports ports, InstanceLauncher& launcher, TemplateService& templates,
                                   JobService& jobs, Patience patience)
    : m_ports(ports)
    , m_launcher(launcher)
    , m_templates(templates)
    , m_jobs(jobs)
    , m_patience(patience) {}

Result<JobId> WarmImageService::make(const Caller& caller, const std::string& templateName, const std::string& size,
                                     bool force) {
    if (!caller.isRoot()) {
        return fail(ErrorCode::NotAuthorized,
                    "making warm images needs root: sudo bulkhead template warm " + templateName);
    }
    if (auto info = m_templates.find(templateName); !info) {
        return fail(info.error());
    }
    return m_jobs.begin("warm-image", caller.uid, [this, templateName, size, force](const JobContext& job) {
        return run({templateName, size}, force, job);
    });
}

std::vector<WarmImage> WarmImageService::all(const InstalledTemplate& installed) {
    return m_ports.images.all(installed.name, installed.version);
}

Result<JobResult> WarmImageService::run(const Wanted& wanted, bool force, const JobContext& job) {
    const auto turn = takeTurn(job);
    if (!turn) {
        return fail(turn.error());
    }
    const auto key = m_launcher.imageKey(wanted.templateName, wanted.size, wanted.audio);
    if (!key) {
        return fail(key.error());
    }
    if (!force && m_ports.images.find(*key)) {
        return JobResult(WarmImageResult{key->size, false});
    }
    const std::string what = "warm image of template \"" + wanted.templateName + "\", size \"" + key->size + "\"";
    // Before a whole guest boots for nothing. At most: the copied pages, the image that is made of them, and the disk's
    // layer.
    const auto folder = m_ports.images.begin(*key, 2 * key->memory + kSystemLayer);
    if (!folder) {
        return fail(folder.error().in(what));
    }
    ScopeGuard discard([&] { m_ports.images.discard(*folder); });
    const auto source = m_launcher.bootForImage(wanted.templateName, key->size, wanted.audio, job);
    if (!source) {
        return fail(source.error().in(what));
    }
    const auto image = source->key == *key ? capture(*source, *folder, job)
                                           : fail(ErrorCode::Busy, "the template was changed meanwhile");
    end(source->instance);
    if (!image) {
        return fail(image.error().in(what));
    }
    discard.dismiss();
    log::info("warm image made", {{"TEMPLATE", wanted.templateName},
                                  {"VERSION", image->key.templateVersion},
                                  {"SIZE", image->key.size},
                                  {"BYTES", std::to_string(image->sizeOnDisk)}});
    if (m_whenMade) {
        m_whenMade();
    }
    return JobResult(WarmImageResult{image->key.size, true});
}

void WarmImageService::makeSoon(const std::string& templateName, const std::string& size, Audio audio) {
    constexpr uid_t kRoot = 0;
    const auto version = m_templates.newestVersion(templateName);
    {
        const auto now = std::chrono::steady_clock::now();
        const std::lock_guard lock(m_mutex);
        auto& begun = m_begun[{templateName, version.value_or(std::string()), size, audio}];
        if (begun != std::chrono::steady_clock::time_point() && now - begun < m_patience.again) {
            return;
        }
        begun = now;
    }
    const auto job = m_jobs.begin("warm-image", kRoot, [this, templateName, size, audio](const JobContext& context) {
        return run({templateName, size, audio}, false, context);
    });
    if (!job) {
        log::info("no warm image is made now", {{"TEMPLATE", templateName}, {"REASON", job.error().message}});
    }
}

/// Again, where libvirtd is away for a moment. What is left then stands in a record: the next start of the daemon ends
/// it.
void WarmImageService::end(const InstanceRecord& instance) {
    constexpr int kTries = 5;
    for (int i = 1;; ++i) {
        const auto ended = m_launcher.tearDown(instance, std::nullopt);
        if (ended) {
            return;
        }
        log::error("the guest of a warm image could not be ended",
                   {{"INSTANCE", instance.id.text()}, {"ERROR", ended.error().message}});
        if (i == kTries) {
            return;
        }
        std::this_thread::sleep_for(m_patience.ask); // lint-allow(sleep): nothing tells when libvirtd is back
    }
}

Result<std::unique_lock<std::timed_mutex>> WarmImageService::takeTurn(const JobContext& job) {
    std::unique_lock turn(m_making, std::try_to_lock);
    while (!turn.owns_lock()) {
        job.report("Waiting for another warm image", 0);
        if (job.cancelToken().stop_requested()) {
            return fail(ErrorCode::Cancelled, "cancelled");
        }
        [[maybe_unused]] const bool taken = turn.try_lock_for(std::chrono::milliseconds(200));
    }
    return turn;
}

Status WarmImageService::waitForRest(const InstanceId& instance, const JobContext& job) {
    job.report("Waiting until the guest has come to rest", 0.5);
    const auto until = std::chrono::steady_clock::now() + m_patience.rest;
    std::mutex mutex;
    std::condition_variable_any pause;
    while (true) {
        const auto quiet = m_ports.links.quiesce(instance);
        const bool isBusy =
            !quiet && (quiet.error().code == ErrorCode::Busy || quiet.error().code == ErrorCode::TimedOut);
        if (!isBusy) {
            return quiet;
        }
        if (std::chrono::steady_clock::now() > until) {
            return fail(ErrorCode::TimedOut, "the guest did not come to rest after its start");
        }
        std::unique_lock lock(mutex);
        pause.wait_for(lock, job.cancelToken(), m_patience.ask, [] { return false; });
        if (job.cancelToken().stop_requested()) {
            return fail(ErrorCode::Cancelled, "cancelled");
        }
    }
}

Result<WarmImage> WarmImageService::capture(const InstanceLauncher::ImageSource& source,
                                            const std::filesystem::path& folder, const JobContext& job) {
    const InstanceId& id = source.instance.id;
    if (auto rested = waitForRest(id, job); !rested) {
        return fail(rested.error());
    }
    // The channel is captured closed: its guest's end then has nothing under way that a child would take for its own.
    m_ports.links.close(id);
    job.report("Writing down its memory", 0.7);
    const auto digest = m_ports.machines.pauseAndSave(id, folder / "devices").and_then([&] {
        return m_ports.memory.captureWhole(source.emulator, source.key.memory, folder / "memory");
    });
    if (!digest) {
        return fail(digest.error());
    }
    // With its end the emulator writes what it still has of the disks.
    if (auto ended = m_ports.hypervisor.destroy(id); !ended) {
        return fail(ended.error());
    }
    job.report("Storing", 0.9);
    return m_ports.images.publish(source.key, folder, source.system, *digest, m_ports.filesInUse);
}

} // namespace bulkhead::core
