// SPDX-License-Identifier: Apache-2.0
#include "memcap/parent_image.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

namespace bulkhead::memcap {

namespace {
constexpr const char* kWhat = "cannot read the parent image";
}

Result<ParentImage> ParentImage::open(UniqueFd fd, Bytes ram) {
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return failErrno(kWhat, errno);
    }
    if (!S_ISREG(status.st_mode) || static_cast<Bytes>(status.st_size) != ram) {
        return fail(ErrorCode::InvalidArgument, "the parent image is not a file of " + std::to_string(ram) + " bytes");
    }
    ParentImage image;
    image.m_fd = std::move(fd);
    image.m_size = ram;
    image.m_written = status.st_mtim;
    return image;
}

Status ParentImage::unchanged() const {
    if (!m_fd) {
        return {};
    }
    struct stat status {};
    if (::fstat(m_fd.get(), &status) != 0) {
        return failErrno(kWhat, errno);
    }
    if (static_cast<Bytes>(status.st_size) != m_size || status.st_mtim.tv_sec != m_written.tv_sec ||
        status.st_mtim.tv_nsec != m_written.tv_nsec) {
        return fail(ErrorCode::HostFailure, "the parent image changed during the capture");
    }
    return {};
}

Result<std::string_view> ParentImage::read(Bytes offset, std::size_t size) {
    m_bytes.assign(size, '\0');
    const Bytes end = offset + size;
    for (Bytes at = offset; m_fd && at < end;) {
        const auto extent = dataAfter(at);
        if (!extent) {
            return fail(extent.error());
        }
        const Bytes begin = std::max(extent->begin, at);
        if (begin >= end) {
            break;
        }
        const Bytes stop = std::min(extent->end, end);
        if (auto got = memory::readFully(m_fd.get(), m_bytes.data() + (begin - offset), stop - begin, begin, kWhat);
            !got) {
            return fail(got.error());
        }
        at = stop;
    }
    return std::string_view(m_bytes.data(), size);
}

Result<memory::Extent> ParentImage::dataAfter(Bytes offset) {
    if (!m_fd) {
        return memory::Extent{m_size, m_size};
    }
    if (offset < m_searchedFrom || offset >= m_extent.end) {
        const auto extent = memory::nextExtent(m_fd.get(), offset, m_size, kWhat);
        if (!extent) {
            return fail(extent.error());
        }
        m_extent = *extent;
        m_searchedFrom = offset;
    }
    return m_extent;
}

} // namespace bulkhead::memcap
