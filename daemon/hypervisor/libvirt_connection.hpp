// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "hypervisor/libvirt_runtime.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

struct _virConnect;

namespace bulkhead::hypervisor {

/// The daemon's connection to libvirtd: opened at the first use, kept, and replaced when libvirtd was restarted or
/// killed meanwhile. Thread-safe: the library sends calls of several threads over one connection.
class LibvirtConnection {
public:
    struct Closer {
        void operator()(_virConnect* connection) const;
    };
    /// A counted reference: stays valid for the caller when another thread replaces the connection.
    using Handle = std::unique_ptr<_virConnect, Closer>;

    /// `runtime` must outlive this.
    explicit LibvirtConnection(LibvirtRuntime& runtime, std::string uri = "qemu:///system");
    ~LibvirtConnection();
    LibvirtConnection(const LibvirtConnection&) = delete;
    LibvirtConnection& operator=(const LibvirtConnection&) = delete;

    /// A connection that has just answered (one round trip of 0.1 ms); a new one if the old did not.
    /// Unavailable: none can be opened, or libvirtd took the call and says nothing.
    Result<Handle> acquire();

    /// Runs `call(connection)`, which gives a Result, and once more if the connection broke in the middle. For calls
    /// that may be done twice.
    template <class Call> auto repeatable(Call&& call) -> decltype(call(std::declval<_virConnect*>())) {
        for (int attempt = 0;; ++attempt) {
            auto connection = acquire();
            if (!connection) {
                return fail(connection.error());
            }
            auto result = call(connection->get());
            if (result || result.error().code != ErrorCode::Unavailable || attempt > 0) {
                return result;
            }
        }
    }

    [[nodiscard]] const std::string& uri() const { return m_uri; }

private:
    struct Opening;

    std::string m_uri;
    std::mutex m_mutex;
    Handle m_current;
    std::shared_ptr<Opening> m_opening; ///< under way; one at a time, however many threads wait for it
};

} // namespace bulkhead::hypervisor
