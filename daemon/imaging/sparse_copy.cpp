// SPDX-License-Identifier: Apache-2.0
#include "imaging/sparse_copy.hpp"

#include "imaging/digest.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::imaging {

namespace {

/// Whole blocks are read at once: fewer system calls, and the digest's block is a part of it.
constexpr Bytes kBuffer = 16 * kDigestBlock;

bool isZero(const char* bytes, std::size_t size) {
    // Compares the bytes with themselves, moved by one: libc's memcmp is the fastest loop there is.
    return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

Status readAll(int fd, char* target, std::size_t size, Bytes offset, const std::string& what) {
    while (size > 0) {
        const ssize_t got = ::pread(fd, target, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno(what, errno);
        }
        if (got == 0) {
            return fail(ErrorCode::HostFailure, what + ": the file became shorter meanwhile");
        }
        target += got;
        offset += static_cast<Bytes>(got);
        size -= static_cast<std::size_t>(got);
    }
    return {};
}

Status writeAll(int fd, const char* source, std::size_t size, Bytes offset, const std::string& what) {
    while (size > 0) {
        const ssize_t written = ::pwrite(fd, source, size, static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return failErrno(what, errno);
        }
        source += written;
        offset += static_cast<Bytes>(written);
        size -= static_cast<std::size_t>(written);
    }
    return {};
}

/// The next offset at or after `offset` that has data; `size` when there is none.
Result<Bytes> nextData(int fd, Bytes offset, Bytes size, const std::string& what) {
    const off_t found = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (found >= 0) {
        return std::min(static_cast<Bytes>(found), size);
    }
    if (errno == ENXIO) {
        return size;
    }
    if (errno == EINVAL) {
        return offset; // a file system without holes
    }
    return failErrno(what, errno);
}

/// `to` is -1 when only the digest is wanted.
Result<CopiedFile> walk(int from, int to, const std::string& name, Bytes most) {
    const std::string what = "cannot copy " + name;
    struct stat status {};
    if (::fstat(from, &status) != 0) {
        return failErrno(what, errno);
    }
    const auto size = static_cast<Bytes>(status.st_size);
    if (size > most) {
        return fail(ErrorCode::LimitExceeded,
                    name + " is " + formatBytes(size) + "; at most " + formatBytes(most) + " are accepted");
    }
    Digest digest;
    digest.addNumber(size);
    std::vector<char> buffer(kBuffer);
    Bytes offset = 0;
    while (offset < size) {
        const auto data = nextData(from, offset, size, what);
        if (!data) {
            return fail(data.error());
        }
        offset = *data - *data % kDigestBlock;
        const Bytes length = std::min<Bytes>(kBuffer, size - offset);
        if (*data == size) {
            break;
        }
        if (auto read = readAll(from, buffer.data(), length, offset, what); !read) {
            return fail(read.error());
        }
        for (Bytes inside = 0; inside < length; inside += kDigestBlock) {
            const char* const block = buffer.data() + inside;
            const std::size_t blockSize = std::min<Bytes>(kDigestBlock, length - inside);
            if (isZero(block, blockSize)) {
                continue;
            }
            digest.addNumber(offset + inside);
            digest.add({block, blockSize});
            if (to >= 0) {
                if (auto written = writeAll(to, block, blockSize, offset + inside, what); !written) {
                    return fail(written.error());
                }
            }
        }
        offset += length;
    }
    if (to >= 0 && ::ftruncate(to, static_cast<off_t>(size)) != 0) {
        return failErrno(what, errno);
    }
    return CopiedFile{size, digest.finish()};
}

} // namespace

Result<CopiedFile> copySparse(int from, int to, const std::string& name, Bytes most) {
    return walk(from, to, name, most);
}

Result<CopiedFile> contentDigest(int from, const std::string& name, Bytes most) {
    return walk(from, -1, name, most);
}

} // namespace bulkhead::imaging
