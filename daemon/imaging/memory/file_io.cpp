// SPDX-License-Identifier: Apache-2.0
#include "memory/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace bulkhead::memory {

Status readFully(int fd, char* target, std::size_t size, Bytes offset, const std::string& what) {
    while (size > 0) {
        const ssize_t got = ::pread(fd, target, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno(what, errno);
        }
        if (got == 0) {
            return fail(ErrorCode::HostFailure, what + ": the file ends too early");
        }
        target += got;
        offset += static_cast<Bytes>(got);
        size -= static_cast<std::size_t>(got);
    }
    return {};
}

tl::unexpected<Error> failWriting(const std::string& what, int errorNumber) {
    Error error = failErrno(what, errorNumber).value();
    if (errorNumber == EFBIG) {
        error.code = ErrorCode::NoSpace;
    }
    return fail(std::move(error));
}

Status writeFully(int fd, std::string_view bytes, Bytes offset, const std::string& what) {
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return failWriting(what, errno);
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
        offset += static_cast<Bytes>(written);
    }
    return {};
}

bool isZero(std::string_view bytes) {
    // The bytes against themselves, moved by one: libc's memcmp is the fastest loop there is.
    return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

Result<Extent> nextExtent(int fd, Bytes offset, Bytes size, const std::string& what) {
    const off_t begin = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (begin < 0 && errno == EINVAL) {
        return Extent{offset, size};
    }
    if ((begin < 0 && errno == ENXIO) || (begin >= 0 && static_cast<Bytes>(begin) >= size)) {
        return Extent{size, size};
    }
    if (begin < 0) {
        return failErrno(what, errno);
    }
    const off_t end = ::lseek(fd, begin, SEEK_HOLE);
    if (end < 0) {
        return failErrno(what, errno);
    }
    return Extent{static_cast<Bytes>(begin), std::min(static_cast<Bytes>(end), size)};
}

} // namespace bulkhead::memory
