// SPDX-License-Identifier: Apache-2.0
#include "build/cpio.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <utility>

namespace bulkhead::imaging::build {

void CpioWriter::pad() {
    m_bytes.append((4 - m_bytes.size() % 4) % 4, '\0');
}

void CpioWriter::add(std::string_view path, std::uint32_t mode, std::string_view contents, Device device) {
    constexpr std::uint32_t kOwner = 0;
    constexpr std::uint32_t kGroup = 0;
    constexpr std::uint32_t kLinks = 1;
    constexpr std::uint32_t kTime = 0;
    constexpr std::uint32_t kCheck = 0;
    m_bytes += "070701";
    for (const std::uint32_t field :
         {m_nextInode, mode, kOwner, kGroup, kLinks, kTime, static_cast<std::uint32_t>(contents.size()), 0U, 0U,
          device.major, device.minor, static_cast<std::uint32_t>(path.size() + 1), kCheck}) {
        m_bytes += fmt::format("{:08X}", field);
    }
    ++m_nextInode;
    m_bytes += path;
    m_bytes += '\0';
    pad();
    m_bytes += contents;
    pad();
}

void CpioWriter::addDirectory(std::string_view path) {
    add(path, S_IFDIR | 0755, {}, {});
}

void CpioWriter::addFile(std::string_view path, std::string_view contents, std::uint32_t permissions) {
    add(path, S_IFREG | permissions, contents, {});
}

void CpioWriter::addCharacterDevice(std::string_view path, std::uint32_t permissions, std::uint32_t major,
                                    std::uint32_t minor) {
    add(path, S_IFCHR | permissions, {}, {major, minor});
}

std::string CpioWriter::finish() {
    add("TRAILER!!!", 0, {}, {});
    m_nextInode = 1;
    return std::exchange(m_bytes, {});
}

} // namespace bulkhead::imaging::build
