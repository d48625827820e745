// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

namespace bulkhead::hypervisor {

/// What libvirt's client library needs once per process, before the first connection: an event loop (its keepalive
/// timers live there; without them a libvirtd that hangs would hold our calls for ever) and silence on stderr (each
/// error is in the Result that the call gives). Ignores SIGPIPE for the whole process. The loop is GLib's default main
/// context: nothing else in the process may run that (the daemon has neither GLib nor Qt of its own). Make one in
/// main() and let it outlive every LibvirtConnection.
class LibvirtRuntime {
public:
    /// Starts the loop's thread. Throws std::runtime_error when the library cannot be set up.
    LibvirtRuntime();
    /// Ends the thread.
    ~LibvirtRuntime();
    LibvirtRuntime(const LibvirtRuntime&) = delete;
    LibvirtRuntime& operator=(const LibvirtRuntime&) = delete;

private:
    void loop();

    std::atomic<bool> m_isStopping = false;
    int m_timer = -1;
    std::thread m_thread;
};

} // namespace bulkhead::hypervisor
