// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::imaging::build {

/// Writes a cpio archive in the "newc" form, as the kernel reads it. Everything belongs to root and has no time, so
/// that equal contents give equal bytes.
class CpioWriter {
public:
    void addDirectory(std::string_view path);
    void addFile(std::string_view path, std::string_view contents, std::uint32_t permissions);
    void addCharacterDevice(std::string_view path, std::uint32_t permissions, std::uint32_t major, std::uint32_t minor);
    /// The whole archive; the writer is empty then.
    [[nodiscard]] std::string finish();

private:
    struct Device {
        std::uint32_t major = 0;
        std::uint32_t minor = 0;
    };
    void add(std::string_view path, std::uint32_t mode, std::string_view contents, Device device);
    void pad();

    std::string m_bytes;
    std::uint32_t m_nextInode = 1;
};

} // namespace bulkhead::imaging::build
