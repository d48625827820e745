// SPDX-License-Identifier: Apache-2.0
#include "memcap/page_buffer.hpp"

#include "memory/packed_delta.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace bulkhead::memcap {

Status PageBuffer::reserve(Bytes most, Bytes ready) {
    drop();
    void* const memory =
        ::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) { // NOLINT: a macro with a C cast
        return fail(ErrorCode::LimitExceeded, "no addresses for a buffer of " + formatBytes(most));
    }
    m_data = static_cast<char*>(memory);
    m_size = most;
    // Huge pages make it quicker; where there are none, it works all the same.
    ::madvise(memory, most, MADV_HUGEPAGE);
    if (::madvise(memory, most, MADV_DONTDUMP) != 0) {
        return failErrno("cannot keep the buffer out of core files", errno);
    }
    ready = std::min(ready, most);
    if (ready > 0 && ::madvise(memory, ready, MADV_POPULATE_WRITE) != 0) {
        if (errno == ENOMEM || errno == EFAULT) {
            return fail(ErrorCode::LimitExceeded, "not enough memory for a buffer of " + formatBytes(ready));
        }
        if (errno != EINVAL) {
            return failErrno("cannot make a buffer of " + formatBytes(ready) + " ready", errno);
        }
        for (Bytes offset = 0; offset < ready; offset += memory::kPage) { // before Linux 5.14
            volatile char* const page = m_data + offset;
            *page = 0;
        }
    }
    m_ready = ready;
    return {};
}

void PageBuffer::drop() {
    if (m_data != nullptr) {
        ::munmap(m_data, m_size);
    }
    m_data = nullptr;
    m_size = 0;
    m_ready = 0;
}

} // namespace bulkhead::memcap
