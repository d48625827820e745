// SPDX-License-Identifier: Apache-2.0
#include "core/services/shell_pool.hpp"

#include "base/log.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>

namespace bulkhead::core {

ShellPool::ShellPool(unsigned most, WarmImageStore& images, HostMemory& memory, InstanceLauncher& launcher,
                     EmulatorMonitor& monitor, WorkerPool& workers, Patience patience)
    : m_most(most)
    , m_images(images)
    , m_memory(memory)
    , m_launcher(launcher)
    , m_monitor(monitor)
    , m_workers(workers)
    , m_patience(patience) {}

std::optional<Shell> ShellPool::claim(const WarmImage& image, Bytes homeSize) {
    if (m_most == 0) {
        return std::nullopt;
    }
    std::optional<Shell> claimed;
    {
        const std::lock_guard lock(m_mutex);
        m_wanted = Wanted{image.key, homeSize};
        // Each image has a folder that no other ever has.
        const auto found = std::find_if(m_waiting.begin(), m_waiting.end(), [&](const Shell& shell) {
            return shell.image.memory == image.memory && shell.plan.homeSize == homeSize &&
                   m_monitor.isAlive(shell.record.id);
        });
        if (found != m_waiting.end()) {
            claimed = std::move(*found);
            m_waiting.erase(found);
        }
    }
    fillLater();
    return claimed;
}

std::vector<InstanceId> ShellPool::waiting() const {
    const std::lock_guard lock(m_mutex);
    std::vector<InstanceId> ids;
    for (const Shell& shell : m_waiting) {
        ids.push_back(shell.record.id);
    }
    return ids;
}

// ---- making ---------------------------------------------------------------------------------------------------------

void ShellPool::fillLater() {
    {
        const std::lock_guard lock(m_mutex);
        if (m_isFillPosted || m_isStopping) {
            return;
        }
        m_isFillPosted = true;
    }
    m_workers.postAfter(m_patience.settle, [this] { fill(); });
}

void ShellPool::fill() {
    {
        const std::lock_guard lock(m_mutex);
        m_isFillPosted = false;
    }
    review();
    while (true) {
        std::optional<Wanted> wanted;
        {
            const std::lock_guard lock(m_mutex);
            const bool isTime = std::chrono::steady_clock::now() >= m_notBefore;
            if (m_isStopping || !m_wanted || !isTime || m_waiting.size() >= m_most) {
                return;
            }
            wanted = m_wanted;
        }
        // A domain of that size must find room beside it.
        const WarmImageKey& key = wanted->image;
        auto any = key; // of another label it is copied
        any.label.clear();
        if (!m_images.find(any) || m_memory.memory().available < 2 * key.memory) {
            return;
        }
        auto made = m_launcher.makeShell(key, wanted->homeSize);
        if (!made) {
            afterFailure(made.error(), key);
            return;
        }
        const InstanceRecord record = made->record;
        if (!keep(std::move(*made))) {
            endNow(record); // here: stop() waits for this, and what is posted may come after it
            return;
        }
        log::info("an emulator waits for the next start",
                  {{"INSTANCE", record.id.text()}, {"TEMPLATE", key.templateName}, {"SIZE", key.size}});
    }
}

/// False: it is not wanted any more, or has ended.
bool ShellPool::keep(Shell shell) {
    const std::lock_guard lock(m_mutex);
    // It may have died since; if it dies after this look, onEmulatorGone() finds it.
    if (m_isStopping || !m_monitor.isAlive(shell.record.id)) {
        return false;
    }
    m_waiting.push_back(std::move(shell));
    return true;
}

void ShellPool::afterFailure(const Error& error, const WarmImageKey& key) {
    if (error.code == ErrorCode::WrongState) {
        return; // the image was replaced meanwhile
    }
    log::warning("no emulator can be made to wait for the next start; it is tried again in a while",
                 {{"TEMPLATE", key.templateName}, {"ERROR", error.message}});
    const std::lock_guard lock(m_mutex);
    m_notBefore = std::chrono::steady_clock::now() + m_patience.again;
}

// ---- ending ---------------------------------------------------------------------------------------------------------

std::vector<Shell> ShellPool::take(const std::function<bool(const Shell&)>& isWanted) {
    const std::lock_guard lock(m_mutex);
    const auto rest =
        std::stable_partition(m_waiting.begin(), m_waiting.end(), [&](const Shell& shell) { return !isWanted(shell); });
    std::vector<Shell> taken(std::make_move_iterator(rest), std::make_move_iterator(m_waiting.end()));
    m_waiting.erase(rest, m_waiting.end());
    return taken;
}

void ShellPool::onImagesChanged() {
    if (m_most == 0) {
        return;
    }
    m_workers.post([this] { review(); });
    fillLater();
}

/// Ends those that the next start would not use.
void ShellPool::review() {
    std::optional<Wanted> wanted;
    {
        const std::lock_guard lock(m_mutex);
        wanted = m_wanted;
    }
    if (!wanted) {
        return;
    }
    // Whoever used a template goes on to use it when there is a newer version.
    const auto key =
        m_launcher.imageKey(wanted->image.templateName, wanted->image.size, wanted->image.audio, wanted->image.label);
    if (!key) {
        return; // libvirtd is away, or memory is short: nothing is known of the images
    }
    const auto image = m_images.find(*key);
    {
        const std::lock_guard lock(m_mutex);
        if (m_wanted == wanted) {
            m_wanted->image = *key;
        }
    }
    for (const Shell& shell : take([&](const Shell& shell) {
             return !image || shell.image.memory != image->memory || shell.plan.homeSize != wanted->homeSize;
         })) {
        log::info("an emulator that waited is ended: the next start will not be from its image, or of another home",
                  {{"INSTANCE", shell.record.id.text()}});
        endNow(shell.record);
    }
}

bool ShellPool::giveMemoryBack() {
    const auto ended = take([](const Shell&) { return true; });
    if (ended.empty()) {
        return false;
    }
    {
        const std::lock_guard lock(m_mutex);
        m_notBefore = std::chrono::steady_clock::now() + m_patience.again;
    }
    log::info("emulators that waited are ended: a start needs their memory", {{"COUNT", std::to_string(ended.size())}});
    for (const Shell& shell : ended) {
        endNow(shell.record);
    }
    return true;
}

void ShellPool::onEmulatorGone(const InstanceId& instance) {
    for (const Shell& shell : take([&](const Shell& shell) { return shell.record.id == instance; })) {
        // Another is made after the next start, not now: whatever ended it may do so again.
        log::warning("an emulator that waited for a start ended by itself", {{"INSTANCE", instance.text()}});
        endLater(shell.record);
    }
}

void ShellPool::endLater(const InstanceRecord& shell) {
    m_workers.post([this, shell] { endNow(shell); });
}

void ShellPool::endNow(const InstanceRecord& shell) {
    if (const auto ended = m_launcher.tearDown(shell, std::nullopt); !ended) {
        log::error("an emulator that waited could not be ended; it is tried again",
                   {{"INSTANCE", shell.id.text()}, {"ERROR", ended.error().message}});
        m_workers.postAfter(m_patience.retry, [this, shell] { endNow(shell); });
    }
}

void ShellPool::endAll() {
    for (const Shell& shell : take([](const Shell&) { return true; })) {
        endNow(shell.record);
    }
}

void ShellPool::stop(std::chrono::milliseconds within) {
    {
        const std::lock_guard lock(m_mutex);
        m_isStopping = true;
    }
    if (m_most == 0) {
        return;
    }
    const auto ended = std::make_shared<std::promise<void>>();
    m_workers.post([this, ended] {
        endAll();
        ended->set_value();
    });
    if (ended->get_future().wait_for(within) != std::future_status::ready) {
        log::warning("emulators that waited for a start are still there; the next start of the daemon ends them");
    }
}

} // namespace bulkhead::core
