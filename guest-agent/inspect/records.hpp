// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dbus/interfaces/diff_stream.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace bulkhead::inspect {

/// The fields of one record's body, in order.
class Body {
public:
    Body& u8(std::uint8_t value) { return number(value, 1); }
    Body& u16(std::uint16_t value) { return number(value, 2); }
    Body& u32(std::uint32_t value) { return number(value, 4); }
    Body& u64(std::uint64_t value) { return number(value, 8); }
    Body& i32(std::int32_t value) { return u32(static_cast<std::uint32_t>(value)); }
    Body& i64(std::int64_t value) { return u64(static_cast<std::uint64_t>(value)); }
    /// Cut to `most` bytes.
    Body& text(std::string_view value, std::size_t most);
    template <class Enum> Body& one(Enum value) { return number(static_cast<std::uint64_t>(value), sizeof value); }

    [[nodiscard]] const std::string& bytes() const { return m_bytes; }

private:
    Body& number(std::uint64_t value, unsigned size);

    std::string m_bytes;
};

/// Writes records (dbus/interfaces/diff_stream.hpp) through a buffer of 64 KiB.
class RecordWriter {
public:
    /// Takes all bytes; false: nobody reads them any more.
    using Sink = std::function<bool(std::string_view)>;
    explicit RecordWriter(Sink sink);

    void send(diff_stream::Kind kind, const Body& body);
    void flush();
    /// Nobody reads any more: there is no sense in going on.
    [[nodiscard]] bool isBroken() const { return m_isBroken; }
    [[nodiscard]] std::uint64_t records() const { return m_records; }
    /// Bytes so far.
    [[nodiscard]] std::uint64_t size() const { return m_size; }

private:
    Sink m_sink;
    std::string m_buffer;
    std::uint64_t m_records = 0;
    std::uint64_t m_size = 0;
    bool m_isBroken = false;
};

/// A sink that writes to a descriptor, which stays the caller's.
RecordWriter::Sink sinkTo(int fd);

} // namespace bulkhead::inspect
