// SPDX-License-Identifier: Apache-2.0
#include "link/link_records.hpp"

#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>

namespace bulkhead::link {
namespace {

constexpr std::array<char, 8> kMagic{'b', 'h', 'l', 'i', 'n', 'k', '0', '1'};
constexpr std::size_t kMostPath = 108; // sun_path

/// In native byte order: it is read on the machine that wrote it, within the same boot.
struct Stored {
    std::array<char, 8> magic = kMagic;
    std::uint32_t isVsock = 0;
    std::uint32_t cid = 0; ///< 0: none
    std::uint32_t channelUid = 0;
    std::uint32_t pathSize = 0;
    core::GuestToken token{};
    std::array<char, kMostPath> path{};
};
static_assert(std::is_trivially_copyable_v<Stored> && sizeof(Stored) == 164);

} // namespace

std::filesystem::path LinkRecords::pathOf(const InstanceId& instance) const {
    return m_folder / (instance.text() + ".link");
}

Status LinkRecords::keep(const core::GuestLinkSpec& spec) {
    const std::string socket = spec.agentSocket.string();
    if (socket.size() > kMostPath) {
        return fail(ErrorCode::HostFailure, "the socket path " + socket + " is too long");
    }
    Stored stored;
    stored.isVsock = spec.transport == core::Transport::Vsock ? 1 : 0;
    stored.cid = spec.cid.value_or(0);
    stored.channelUid = spec.channelUid;
    stored.pathSize = static_cast<std::uint32_t>(socket.size());
    stored.token = spec.token;
    std::copy(socket.begin(), socket.end(), stored.path.begin());
    const auto target = pathOf(spec.instance);
    const std::string temporary = target.string() + ".new";
    const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    const bool isWritten = fd && ::write(fd.get(), &stored, sizeof stored) == static_cast<ssize_t>(sizeof stored) &&
                           ::rename(temporary.c_str(), target.c_str()) == 0;
    const int why = errno;
    ::explicit_bzero(&stored, sizeof stored);
    return isWritten ? Status{} : Status(failErrno("writing " + target.string(), why));
}

Result<core::GuestLinkSpec> LinkRecords::read(const InstanceId& instance) const {
    const auto file = pathOf(instance);
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        return errno == ENOENT ? fail(ErrorCode::NotFound, "nothing is known of a link to instance " + instance.text())
                               : failErrno("reading " + file.string(), errno);
    }
    struct stat status {};
    Stored stored;
    if (::fstat(fd.get(), &status) != 0 || ::read(fd.get(), &stored, sizeof stored) < 0) {
        return failErrno("reading " + file.string(), errno);
    }
    const bool isOurs = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
                        status.st_size == static_cast<off_t>(sizeof stored);
    if (!isOurs || stored.magic != kMagic || stored.pathSize > kMostPath || stored.isVsock > 1) {
        return fail(ErrorCode::HostFailure, file.string() + " is damaged");
    }
    core::GuestLinkSpec spec;
    spec.instance = instance;
    spec.transport = stored.isVsock == 1 ? core::Transport::Vsock : core::Transport::VirtioSerial;
    spec.agentSocket = std::string(stored.path.data(), stored.pathSize);
    spec.cid = stored.cid == 0 ? std::nullopt : std::optional(stored.cid);
    spec.channelUid = stored.channelUid;
    spec.token = stored.token;
    ::explicit_bzero(&stored, sizeof stored);
    return spec;
}

void LinkRecords::forget(const InstanceId& instance) {
    std::error_code ignored; // absence is fine
    std::filesystem::remove(pathOf(instance), ignored);
    std::filesystem::remove(pathOf(instance).string() + ".new", ignored);
}

} // namespace bulkhead::link
