// SPDX-License-Identifier: Apache-2.0
#include "agent/small_file.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::agent {

std::optional<std::string> readSmallFile(const std::string& path, std::size_t limit) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return std::nullopt;
    }
    std::string text(limit + 1, '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const ssize_t count = ::read(fd.get(), text.data() + have, text.size() - have);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return std::nullopt;
        }
        if (count == 0) {
            break;
        }
        have += static_cast<std::size_t>(count);
    }
    if (have > limit) {
        return std::nullopt;
    }
    text.resize(have);
    return text;
}

bool writeKernelFile(const std::string& path, const std::string& value) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    return fd && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

int replaceFile(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".bulkhead";
    ::unlink(temporary.c_str());
    const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!fd) {
        return errno;
    }
    if (const ssize_t count = ::write(fd.get(), text.data(), text.size()); count != static_cast<ssize_t>(text.size())) {
        const int why = count < 0 ? errno : ENOSPC;
        ::unlink(temporary.c_str());
        return why;
    }
    return ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
}

} // namespace bulkhead::agent
