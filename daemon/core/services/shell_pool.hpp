// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "core/ports/host.hpp"
#include "core/ports/memory_images.hpp"
#include "core/services/shell.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace bulkhead::core {

class EmulatorMonitor;
class InstanceLauncher;
class WorkerPool;

/// Keeps a few shells for the warm image that was used last, so that the next start from it does not wait until libvirt
/// has created an emulator. A daemon from which nobody starts anything keeps none. Shells are made and ended on a
/// worker; no start waits for that. One whose making fails is not tried again for a while. Thread-safe.
class ShellPool final : public WaitingShells {
public:
    struct Patience {
        /// From a start until the next shell is made, so that they do not compete.
        std::chrono::milliseconds settle{3000};
        /// Until one is made again after that has failed, or memory was short.
        std::chrono::milliseconds again{std::chrono::minutes(10)};
        /// Until it is tried again to end one.
        std::chrono::milliseconds retry{3000};
    };
    /// `most`: how many wait; 0: none ever. `workers`: one thread, which runs nothing else that blocks for long.
    ShellPool(unsigned most, WarmImageStore& images, HostMemory& memory, InstanceLauncher& launcher,
              EmulatorMonitor& monitor, WorkerPool& workers, Patience patience);

    std::optional<Shell> claim(const WarmImage& image, Bytes homeSize) override;
    void endLater(const InstanceRecord& shell) override;
    bool giveMemoryBack() override;
    void onImagesChanged() override;
    /// An emulator ended; from the watch's thread.
    void onEmulatorGone(const InstanceId& instance);
    /// Ends those that wait; none is made any more. Waits for that for so long at most: the next start of the daemon
    /// ends what is left.
    void stop(std::chrono::milliseconds within);
    /// Those that wait now.
    [[nodiscard]] std::vector<InstanceId> waiting() const;

private:
    /// What those that wait are for.
    struct Wanted {
        WarmImageKey image;
        Bytes homeSize = 0;
        bool operator==(const Wanted&) const = default;
    };
    void fillLater();
    void fill();
    bool keep(Shell shell);
    void afterFailure(const Error& error, const WarmImageKey& key);
    void review();
    std::vector<Shell> take(const std::function<bool(const Shell&)>& isWanted);
    void endNow(const InstanceRecord& shell);
    void endAll();

    const unsigned m_most;
    WarmImageStore& m_images;
    HostMemory& m_memory;
    InstanceLauncher& m_launcher;
    EmulatorMonitor& m_monitor;
    WorkerPool& m_workers;
    const Patience m_patience;

    mutable std::mutex m_mutex; ///< guards what follows; with it only the monitor and the workers are asked
    std::vector<Shell> m_waiting;
    std::optional<Wanted> m_wanted; ///< used last; none: nothing was started yet
    std::chrono::steady_clock::time_point m_notBefore{};
    bool m_isFillPosted = false;
    bool m_isStopping = false;
};

} // namespace bulkhead::core
