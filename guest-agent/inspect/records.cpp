// SPDX-License-Identifier: Apache-2.0
#include "inspect/records.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace bulkhead::inspect {
namespace {
constexpr std::size_t kBuffer = 64 * 1024;
}

Body& Body::number(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) {
        m_bytes += static_cast<char>((value >> (8U * i)) & 0xFFU);
    }
    return *this;
}

Body& Body::text(std::string_view value, std::size_t most) {
    value = value.substr(0, std::min<std::size_t>(most, 0xFFFF));
    u16(static_cast<std::uint16_t>(value.size()));
    m_bytes += value;
    return *this;
}

RecordWriter::RecordWriter(Sink sink)
    : m_sink(std::move(sink)) {}

void RecordWriter::send(diff_stream::Kind kind, const Body& body) {
    Body header;
    header.u32(static_cast<std::uint32_t>(body.bytes().size())).one(kind);
    m_buffer += header.bytes();
    m_buffer += body.bytes();
    m_size += header.bytes().size() + body.bytes().size();
    ++m_records;
    if (m_buffer.size() >= kBuffer) {
        flush();
    }
}

void RecordWriter::flush() {
    if (!m_buffer.empty() && !m_isBroken) {
        m_isBroken = !m_sink(m_buffer);
    }
    m_buffer.clear();
}

RecordWriter::Sink sinkTo(int fd) {
    return [fd](std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::write(fd, bytes.data(), bytes.size());
            if (count < 0 && errno != EINTR) {
                return false;
            }
            bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
        }
        return true;
    };
}

} // namespace bulkhead::inspect
