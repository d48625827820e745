// SPDX-License-Identifier: Apache-2.0
#include "core/services/cid_leases.hpp"

#include <string>

namespace bulkhead::core {

Result<std::uint32_t> CidLeases::lease() {
    const std::lock_guard lock(m_mutex);
    const auto remembered = m_counter.read();
    if (!remembered) {
        return fail(remembered.error());
    }
    // What is written are two numbers in one: how many were handed out or skipped, and where that began.
    std::uint64_t begin = 0;
    std::uint64_t used = 0;
    if (*remembered) {
        begin = **remembered >> 32;
        used = **remembered & 0xffff'ffffU;
    } else {
        begin = m_random() % kCount;
    }
    if (begin >= kCount || used > kCount) {
        return fail(ErrorCode::HostFailure, "the counter of AF_VSOCK addresses holds nonsense");
    }
    for (unsigned tried = 0; tried < kMostTried && used < kCount; ++tried) {
        const auto cid = static_cast<std::uint32_t>(kFirst + (begin + used) % kCount);
        ++used;
        if (!m_isFree(cid)) {
            continue;
        }
        if (auto written = m_counter.write(begin << 32 | used); !written) {
            return fail(written.error());
        }
        return cid;
    }
    if (used >= kCount) {
        return fail(ErrorCode::LimitExceeded, "all " + std::to_string(kCount) +
                                                  " AF_VSOCK addresses of this boot are used up; boot the host again, "
                                                  "or start bulkheadd with --transport=virtio-serial");
    }
    if (auto written = m_counter.write(begin << 32 | used); !written) {
        return fail(written.error());
    }
    return fail(ErrorCode::LimitExceeded, std::to_string(kMostTried) +
                                              " AF_VSOCK addresses in a row are in use by somebody else; find out who "
                                              "has /dev/vhost-vsock open, or start bulkheadd with "
                                              "--transport=virtio-serial");
}

} // namespace bulkhead::core
