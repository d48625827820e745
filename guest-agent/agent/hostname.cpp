// SPDX-License-Identifier: Apache-2.0
#include "agent/hostname.hpp"

#include "agent/small_file.hpp"
#include "protocol/hostname.hpp"

#include <cerrno>
#include <cstddef>
#include <sstream>

namespace bulkhead::agent {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

int replaceWhereChanged(const std::string& path, const std::string& old, const std::string& text) {
    return old == text ? 0 : replaceFile(path, text);
}

} // namespace

std::string hostsWithName(const std::string& text, const std::string& name) {
    const std::string line = "127.0.1.1\t" + name + "\n";
    std::string changed;
    bool isThere = false;
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) {
        std::string address;
        std::istringstream(each) >> address;
        if (address != "127.0.1.1") {
            changed += each + "\n";
        } else if (!isThere) {
            changed += line;
            isThere = true;
        }
    }
    return isThere ? changed : changed + line;
}

int installHostname(const std::string& root, const std::string& name) {
    if (!protocol::isHostname(name)) {
        return EINVAL;
    }
    const std::string hostname = root + "/etc/hostname";
    if (const auto old = readSmallFile(hostname, kMostBytes)) {
        if (const int why = replaceWhereChanged(hostname, *old, name + "\n"); why != 0) {
            return why;
        }
    }
    const std::string hosts = root + "/etc/hosts";
    if (const auto old = readSmallFile(hosts, kMostBytes)) {
        return replaceWhereChanged(hosts, *old, hostsWithName(*old, name));
    }
    return 0;
}

} // namespace bulkhead::agent
