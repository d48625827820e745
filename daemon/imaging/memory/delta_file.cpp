// SPDX-License-Identifier: Apache-2.0
#include "memory/delta_file.hpp"

#include "memory/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::memory {

namespace {

constexpr Bytes kPiece = kMiB;

} // namespace

DeltaWriter::DeltaWriter(int fd, std::string name)
    : m_fd(fd)
    , m_what("cannot write " + std::move(name)) {}

Status DeltaWriter::write(std::string_view bytes) {
    if (auto written = writeFully(m_fd, bytes, m_offset, m_what); !written) {
        return written;
    }
    m_offset += bytes.size();
    return {};
}

Status DeltaWriter::begin(const DeltaIndex& index) {
    m_written = {index.fileSize(), index.pages(RunKind::Data), index.pages(RunKind::Zero), {}};
    const std::string head = encodeIndex(index);
    m_digest.add(head);
    return write(head);
}

Status DeltaWriter::add(std::string_view pages) {
    m_digest.add(pages);
    return write(pages);
}

Result<WrittenDelta> DeltaWriter::finish() {
    if (m_offset + kDeltaTrailerSize != m_written.size) {
        return fail(ErrorCode::InvalidArgument, m_what + ": other pages came than the index says");
    }
    m_written.digest = m_digest.finish();
    if (auto trailer = write(bytesOfDigest(m_written.digest)); !trailer) {
        return fail(trailer.error());
    }
    if (::ftruncate(m_fd, static_cast<off_t>(m_written.size)) != 0 || ::fsync(m_fd) != 0) {
        return failErrno(m_what, errno);
    }
    return m_written;
}

Result<DeltaReader> DeltaReader::open(const std::filesystem::path& file) {
    UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) {
        return fail(ErrorCode::NotFound, "no memory delta " + file.string());
    }
    if (!fd) {
        return failErrno("cannot open " + file.string(), errno);
    }
    return open(std::move(fd), file.string());
}

Result<DeltaReader> DeltaReader::open(UniqueFd fd, std::string name) {
    const std::string what = "cannot read " + name;
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return failErrno(what, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, what + ": not a regular file");
    }
    const auto size = static_cast<Bytes>(status.st_size);
    std::string bytes(std::min<Bytes>(kDeltaHeaderSize, size), '\0');
    if (auto read = readFully(fd.get(), bytes.data(), bytes.size(), 0, what); !read) {
        return fail(read.error());
    }
    const auto header = decodeHeader(bytes, size);
    if (!header) {
        return fail(header.error().in(name));
    }
    // The header was checked against the size of the file, so this is no more than the file has.
    bytes.resize(header->runCount * kDeltaRunSize);
    if (auto read = readFully(fd.get(), bytes.data(), bytes.size(), kDeltaHeaderSize, what); !read) {
        return fail(read.error());
    }
    auto index = decodeRuns(*header, bytes);
    if (!index) {
        return fail(index.error().in(name));
    }
    return DeltaReader(std::move(fd), std::move(name), std::move(*index));
}

Result<std::string> DeltaReader::read(const PageSink& sink) {
    const std::string what = "cannot read " + m_name;
    imaging::Digest digest;
    // What was parsed is what is hashed: the encoding is unique, so this equals the bytes of the file.
    const std::string head = encodeIndex(m_index);
    digest.add(head);
    Bytes offset = head.size();
    std::vector<char> piece(kPiece);
    for (const Run& run : m_index.runs) {
        const Bytes begin = run.first * kPage;
        const Bytes length = run.count * kPage;
        if (run.kind == RunKind::Zero) {
            if (auto taken = sink.zero(begin, length); !taken) {
                return fail(taken.error());
            }
            continue;
        }
        for (Bytes inside = 0; inside < length; inside += kPiece) {
            const Bytes size = std::min(kPiece, length - inside);
            if (auto read = readFully(m_fd.get(), piece.data(), size, offset, what); !read) {
                return fail(read.error());
            }
            const std::string_view pages(piece.data(), size);
            digest.add(pages);
            if (auto taken = sink.data(begin + inside, pages); !taken) {
                return fail(taken.error());
            }
            offset += size;
        }
    }
    std::string trailer(kDeltaTrailerSize, '\0');
    if (auto read = readFully(m_fd.get(), trailer.data(), trailer.size(), offset, what); !read) {
        return fail(read.error());
    }
    std::string found = digest.finish();
    if (found != digestOfBytes(trailer)) {
        return fail(ErrorCode::HostFailure,
                    m_name + " is damaged: its digest is " + found + ", it says " + digestOfBytes(trailer));
    }
    return found;
}

} // namespace bulkhead::memory
