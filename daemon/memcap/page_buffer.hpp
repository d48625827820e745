// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <utility>

namespace bulkhead::memcap {

/// Memory for guest pages: addresses for all that may come, of which a part is backed by real memory beforehand, so
/// that copying in the pause does not wait for the kernel to find and clear pages. It is not in core files, and is
/// given back (the kernel clears it for its next user) as soon as it is dropped.
class PageBuffer {
public:
    PageBuffer() = default;
    PageBuffer(PageBuffer&& other) noexcept
        : m_data(std::exchange(other.m_data, nullptr))
        , m_size(std::exchange(other.m_size, 0))
        , m_ready(std::exchange(other.m_ready, 0)) {}
    PageBuffer(const PageBuffer&) = delete;
    PageBuffer& operator=(const PageBuffer&) = delete;
    ~PageBuffer() { drop(); }

    /// Addresses for `most` bytes, memory for the first `ready`. NoSpace when there is not so much memory.
    Status reserve(Bytes most, Bytes ready);
    void drop();

    [[nodiscard]] char* data() const { return m_data; }
    [[nodiscard]] Bytes ready() const { return m_ready; }

private:
    char* m_data = nullptr;
    Bytes m_size = 0;
    Bytes m_ready = 0;
};

} // namespace bulkhead::memcap
