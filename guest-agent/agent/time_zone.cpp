// SPDX-License-Identifier: Apache-2.0
#include "agent/time_zone.hpp"

#include "agent/small_file.hpp"
#include "protocol/time_zone.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::agent {
namespace {

int replaceLink(const std::string& link, const std::string& target) {
    const std::string temporary = link + ".bulkhead";
    ::unlink(temporary.c_str());
    if (::symlink(target.c_str(), temporary.c_str()) != 0) {
        return errno;
    }
    return ::rename(temporary.c_str(), link.c_str()) == 0 ? 0 : errno;
}

} // namespace

int installTimeZone(const std::string& root, const std::string& name) {
    if (!protocol::isTimeZoneName(name)) {
        return EINVAL;
    }
    const std::string zone = "/usr/share/zoneinfo/" + name;
    struct stat status {};
    if (::stat((root + zone).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return ENOENT;
    }
    if (const int error = replaceLink(root + "/etc/localtime", zone); error != 0) {
        return error;
    }
    return replaceFile(root + "/etc/timezone", name + "\n");
}

} // namespace bulkhead::agent
