// SPDX-License-Identifier: Apache-2.0
#include "inspect/packages.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::inspect {

using namespace diff_stream;

namespace {

constexpr const char* kStatus = "var/lib/dpkg/status";
constexpr std::size_t kLongestLine = 4096; ///< of the fields that matter; of others the rest is passed over
constexpr std::uint64_t kLongestFile = 64 * 1024 * 1024;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
        text.remove_suffix(1);
    }
    return text;
}

UniqueFd openStatus(int top, int& why) {
    UniqueFd at;
    int parent = top;
    for (const char* const name : {"var", "lib", "dpkg"}) {
        UniqueFd next(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!next) {
            why = errno;
            return {};
        }
        at = std::move(next);
        parent = at.get();
    }
    UniqueFd file(::openat(parent, "status", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) {
        why = errno;
        return {};
    }
    if (!S_ISREG(info.st_mode)) {
        why = EINVAL;
        return {};
    }
    return file;
}

/// None: why, in `why`; ENOENT: there is no such file.
std::optional<Packages> readPackages(int top, int& why, Report& report) {
    const UniqueFd file = openStatus(top, why);
    if (!file) {
        return std::nullopt;
    }
    StatusReader reader;
    std::vector<char> buffer(64 * 1024);
    for (std::uint64_t have = 0;;) {
        const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            why = errno;
            return std::nullopt;
        }
        if (count == 0) {
            break;
        }
        have += static_cast<std::uint64_t>(count);
        if (have > kLongestFile) {
            why = EFBIG;
            return std::nullopt;
        }
        report.countBytes(static_cast<std::uint64_t>(count));
        reader.take({buffer.data(), static_cast<std::size_t>(count)});
    }
    auto packages = reader.finish();
    why = reader.isWhole() ? 0 : EMSGSIZE;
    return packages;
}

} // namespace

void StatusReader::take(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        if (m_line.size() + piece.size() > kLongestLine) {
            m_isLineTooLong = true;
        } else if (!m_isLineTooLong) {
            m_line += piece;
        }
        if (end == std::string_view::npos) {
            return;
        }
        bytes.remove_prefix(end + 1);
        if (m_isLineTooLong) {
            m_line.clear(); // a description or a list of files: none of ours is so long
        } else {
            takeLine(m_line);
        }
        m_isLineTooLong = false;
        m_line.clear();
    }
}

void StatusReader::takeLine(std::string_view line) {
    if (trimmed(line).empty()) {
        endParagraph();
        return;
    }
    const std::size_t colon = line.find(':');
    if (line.front() == ' ' || line.front() == '\t' || colon == std::string_view::npos) {
        return; // goes on with a field that does not matter
    }
    const std::string_view field = line.substr(0, colon);
    std::string* const place = field == "Package"        ? &m_name
                               : field == "Architecture" ? &m_architecture
                               : field == "Version"      ? &m_version
                               : field == "Status"       ? &m_status
                                                         : nullptr;
    if (place == nullptr) {
        return;
    }
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (value.size() > kLongestWord || value.find('\0') != std::string_view::npos) {
        m_isWhole = false;
        place->clear();
        return;
    }
    *place = value;
}

void StatusReader::endParagraph() {
    // "install ok installed": what was wanted, whether that went well, and what is there.
    const std::string_view state = std::string_view(m_status).substr(m_status.rfind(' ') + 1);
    const bool isThere = !state.empty() && state != "config-files" && state != "not-installed";
    if (!m_name.empty() && !m_version.empty() && isThere) {
        if (m_packages.size() < kMostPackages) {
            m_packages[{m_name, m_architecture}] = m_version;
        } else {
            m_isWhole = false;
        }
    }
    m_name.clear();
    m_architecture.clear();
    m_version.clear();
    m_status.clear();
}

Packages StatusReader::finish() {
    if (!m_isLineTooLong) {
        takeLine(m_line);
    }
    endParagraph();
    return std::move(m_packages);
}

void comparePackages(int a, int b, Report& report) {
    std::array<std::optional<Packages>, 2> found;
    std::array<int, 2> why{};
    for (std::size_t side = 0; side < 2; ++side) {
        found[side] = readPackages(side == 0 ? a : b, why[side], report);
    }
    if (!found[0] && !found[1] && why[0] == ENOENT && why[1] == ENOENT) {
        return;
    }
    for (std::size_t side = 0; side < 2; ++side) {
        if (why[side] != 0) {
            report.note(NoteKind::PackagesUnreadable, Disk::System, side == 0 ? Side::A : Side::B, why[side], kStatus);
        }
    }
    if (!found[0] || !found[1]) {
        return;
    }
    auto ofA = found[0]->begin();
    auto ofB = found[1]->begin();
    while (ofA != found[0]->end() || ofB != found[1]->end()) {
        const bool inA = ofA != found[0]->end() && (ofB == found[1]->end() || ofA->first <= ofB->first);
        const bool inB = ofB != found[1]->end() && (ofA == found[0]->end() || ofB->first <= ofA->first);
        const auto& key = inA ? ofA->first : ofB->first;
        const std::string before = inA ? ofA->second : std::string();
        const std::string after = inB ? ofB->second : std::string();
        if (before != after) {
            report.package(key.first, key.second, before, after);
        }
        if (inA) {
            ++ofA;
        }
        if (inB) {
            ++ofB;
        }
    }
}

} // namespace bulkhead::inspect
