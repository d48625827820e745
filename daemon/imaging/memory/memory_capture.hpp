// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "memory/capture_lines.hpp"
#include "process/spawn.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

namespace bulkhead::memory {

/// The image that a capture is compared with: what is equal there is not stored.
struct CaptureParent {
    std::filesystem::path file;
    std::string digest;
};

/// What to capture. The private pages of the emulator are those that differ from what it maps (`mappedImage`, or
/// nothing but zeros). `parent` is what the delta shall be a delta of: the mapped image itself, or, for a further
/// capture of the same running emulator, the image of its last capture. The latter is right because a page that is not
/// private now was not private then, so it is the same in both; so never name an image of another emulator.
struct CaptureSpec {
    std::filesystem::path helper; ///< bulkhead-memcap
    pid_t emulator = -1;
    int emulatorPidfd = -1; ///< not owned; -1: opened from `emulator`, which is only safe while it surely lives
    Bytes ram = 0;          ///< of the guest
    Bytes maxPrivate = 0;   ///< more private memory than this is refused with LimitExceeded; 0: as much as `ram`
    std::optional<std::filesystem::path> mappedImage; ///< what it was started from; none: booted cold
    std::optional<CaptureParent> parent;              ///< must be there when mappedImage is
    std::filesystem::path output;                     ///< the new file, 0600; removed unless finish() succeeds
};

struct CaptureLimits {
    std::chrono::milliseconds prepare{std::chrono::minutes(1)};
    std::chrono::milliseconds capture{std::chrono::seconds(20)}; ///< the guest stands still for so long at most
    std::chrono::milliseconds finish{std::chrono::minutes(10)};
};

/// One capture of an emulator's private memory by the program bulkhead-memcap, which alone may read it. Call prepare()
/// while the guest runs, capture() while it is paused, finish() when it runs again. Each blocks; after a failure the
/// object is of no use any more. The destructor ends the helper and takes back what is not finished. Not thread-safe
/// but for cancel().
class MemoryCapture {
public:
    /// Makes the output file and starts the helper. AlreadyExists when the file is there; NotFound for an emulator
    /// that has ended or an image that is not there.
    static Result<MemoryCapture> start(const CaptureSpec& spec, const CaptureLimits& limits = {});

    MemoryCapture(MemoryCapture&&) noexcept;
    MemoryCapture& operator=(MemoryCapture&&) = delete;
    ~MemoryCapture();

    /// Finds the guest's memory, makes a buffer for it ready and takes the disk space. NoSpace, LimitExceeded,
    /// NotFound (no such mapping, or the emulator has ended).
    Result<PreparedCapture> prepare();
    /// Copies the private pages into the helper's buffer.
    Result<CapturedPages> capture();
    /// Compares, writes the delta and brings it to the disk. From now on the output file stays.
    Result<FinishedCapture> finish();
    /// From any thread while the object lives: the call that runs, and every later one, fails with Cancelled. The guest
    /// may stand still, so whoever paused it must still let it go on.
    void cancel();

private:
    struct Running {
        process::Child child;
        UniqueFd link;            ///< its standard input and output
        std::string emulatorName; ///< "emulator 1234", for messages
    };

    MemoryCapture(Running running, UniqueFd cancelled, std::filesystem::path output, CaptureLimits limits);
    /// Sends a command and waits for its line.
    Result<std::string> ask(std::string_view command, std::chrono::milliseconds limit);
    /// Kills the helper unless it has ended, and collects it.
    void end();

    std::optional<Running> m_running;
    UniqueFd m_cancelled;           ///< an eventfd that becomes readable, and stays so
    std::filesystem::path m_output; ///< empty once it stays
    CaptureLimits m_limits;
};

} // namespace bulkhead::memory
