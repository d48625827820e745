// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/ports/host.hpp"

#include <cstdint>
#include <functional>
#include <mutex>

namespace bulkhead::core {

/// Gives each start of a guest with vsock an AF_VSOCK address (CID) that no guest had since the machine booted: a late
/// connection that was meant for one guest never reaches another. The next number is written down before the present
/// one is handed out, so this holds over a crash of the daemon, too. Numbers are never given back. Thread-safe.
class CidLeases {
public:
    /// 0 to 2 mean any, the hypervisor and the host; people and libvirt (`auto='yes'`) take from 3 upward; tools that
    /// make up an address from a hash use all 32 bits, so a collision is possible everywhere, and `isFree` is asked.
    /// Ours lie below 2^31, for tools that read them as signed.
    static constexpr std::uint32_t kFirst = 1'900'000'000;
    static constexpr std::uint32_t kCount = 200'000'000;

    /// `counter` must outlive this. `random` gives where to begin after a boot (or when the counter's file was lost):
    /// another daemon of this host begins elsewhere then.
    CidLeases(BootCounter& counter, std::function<bool(std::uint32_t)> isFree, std::function<std::uint32_t()> random)
        : m_counter(counter)
        , m_isFree(std::move(isFree))
        , m_random(std::move(random)) {}

    /// LimitExceeded when the range is used up, or when kMostTried numbers in a row are in use. Other errors are the
    /// counter's.
    Result<std::uint32_t> lease();

    /// Somebody who takes the addresses before us (whoever may open /dev/vhost-vsock can) can stop starts, and is told
    /// of.
    static constexpr unsigned kMostTried = 64;

private:
    BootCounter& m_counter;
    std::function<bool(std::uint32_t)> m_isFree;
    std::function<std::uint32_t()> m_random;
    std::mutex m_mutex;
};

} // namespace bulkhead::core
