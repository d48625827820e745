// SPDX-License-Identifier: Apache-2.0
#include "imaging/sparse_copy.hpp"

#include "imaging/digest.hpp"
#include "memory/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::imaging {

namespace {

/// Whole blocks are read at once: fewer system calls, and the digest's block is a part of it.
constexpr Bytes kBuffer = 16 * kDigestBlock;

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
        const auto data = memory::nextExtent(from, offset, size, what);
        if (!data) {
            return fail(data.error());
        }
        if (data->begin == size) {
            break;
        }
        offset = data->begin - data->begin % kDigestBlock;
        const Bytes length = std::min<Bytes>(kBuffer, size - offset);
        if (auto read = memory::readFully(from, buffer.data(), length, offset, what); !read) {
            return fail(read.error());
        }
        for (Bytes inside = 0; inside < length; inside += kDigestBlock) {
            const std::string_view block(buffer.data() + inside, std::min<Bytes>(kDigestBlock, length - inside));
            if (memory::isZero(block)) {
                continue;
            }
            digest.addNumber(offset + inside);
            digest.add(block);
            if (to >= 0) {
                if (auto written = memory::writeFully(to, block, offset + inside, what); !written) {
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
