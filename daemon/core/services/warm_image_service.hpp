// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/memory_images.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/job_service.hpp"
#include "core/services/template_service.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace bulkhead::core {

/// Makes the warm images that starts begin from: boots a template, waits until the guest has come to rest, and writes
/// down its memory. Thread-safe; one image at a time, since it takes a whole guest.
class WarmImageService {
public:
    struct Ports {
        Hypervisor& hypervisor;
        Machines& machines;
        MemoryCapturer& memory;
        WarmImageStore& images;
        GuestLinks& links;
        /// Images that must stay for snapshots or running instances.
        WarmImageStore::FilesInUse filesInUse;
    };
    struct Patience {
        /// How long a guest may take from its agent's answer until it has come to rest.
        std::chrono::milliseconds rest{std::chrono::minutes(4)};
        /// Between two questions whether it has.
        std::chrono::milliseconds ask{std::chrono::seconds(1)};
        /// Until an image that nobody asked for is tried again.
        std::chrono::milliseconds again{std::chrono::hours(6)};
    };
    WarmImageService(Ports ports, InstanceLauncher& launcher, TemplateService& templates, JobService& jobs,
                     Patience patience);

    /// Called after each image was made, from a job's thread. To be set before the first one.
    void whenMade(std::function<void()> told) { m_whenMade = std::move(told); }

    /// Begins to make the image that starts of this template and size would use now; root only. An empty `size` is the
    /// default one. `force`: although there is one. The job's result: WarmImageResult.
    Result<JobId> make(const Caller& caller, const std::string& templateName, const std::string& size, bool force);
    /// The same where nobody asked for it: after a template was installed, or a domain had to boot. What becomes of it
    /// is only logged. Of one template version and size it is tried at most once in Patience::again: an image that
    /// cannot be made, or does not work, costs a whole guest each time.
    void makeSoon(const std::string& templateName, const std::string& size, Audio audio = Audio::Off);
    /// What there is of an installed template.
    std::vector<WarmImage> all(const InstalledTemplate& installed);

private:
    struct Wanted {
        std::string templateName;
        std::string size;
        Audio audio = Audio::Off;
    };
    Result<JobResult> run(const Wanted& wanted, bool force, const JobContext& job);
    Result<WarmImage> capture(const InstanceLauncher::ImageSource& source, const std::filesystem::path& folder,
                              const JobContext& job);
    void end(const InstanceRecord& instance);
    Status waitForRest(const InstanceId& instance, const JobContext& job);
    /// Waits until no other is being made. Cancelled.
    Result<std::unique_lock<std::timed_mutex>> takeTurn(const JobContext& job);

    Ports m_ports;
    InstanceLauncher& m_launcher;
    TemplateService& m_templates;
    JobService& m_jobs;
    Patience m_patience;
    std::function<void()> m_whenMade;
    std::timed_mutex m_making;
    std::mutex m_mutex;
    /// When makeSoon() last began one, by template, version, size and sound.
    std::map<std::tuple<std::string, std::string, std::string, Audio>, std::chrono::steady_clock::time_point> m_begun;
};

} // namespace bulkhead::core
