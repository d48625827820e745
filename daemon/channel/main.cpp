// SPDX-License-Identifier: Apache-2.0
// bulkhead-channel: see records.hpp for its command line and descriptors.
#include "base/log.hpp"
#include "channel/channel.hpp"
#include "channel/hardening.hpp"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <sodium/utils.h>
#include <unistd.h>

namespace {

using namespace bulkhead;

/// Reads the token to the end of the descriptor; anything but exactly 32 bytes is a mistake of the caller.
Result<protocol::Token> readToken(UniqueFd fd) {
    std::array<std::byte, protocol::kTokenSize + 1> bytes{};
    std::size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t count = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return failErrno("read the token", errno);
        }
        if (count == 0) {
            break;
        }
        have += static_cast<std::size_t>(count);
    }
    if (have != protocol::kTokenSize) {
        return fail(ErrorCode::InvalidArgument, "the token must have 32 bytes");
    }
    protocol::Token token{};
    std::copy_n(bytes.begin(), token.size(), token.begin());
    ::sodium_memzero(bytes.data(), bytes.size());
    return token;
}

int runChannel(std::string instance) {
    if (auto status = channel::closeInherited(channel::kTokenFd); !status) {
        log::error(status.error().message);
        return 1;
    }
    auto token = readToken(UniqueFd(channel::kTokenFd));
    if (!token) {
        log::error(token.error().message, {{"INSTANCE", instance}});
        return 1;
    }
    channel::Channel program(std::move(instance), {UniqueFd(channel::kGuestFd), UniqueFd(channel::kControlListenFd)},
                             *token);
    ::sodium_memzero(token->data(), token->size());
    if (auto status = channel::giveUpPrivileges(); !status) {
        log::error(status.error().message);
        return 1;
    }
    program.run();
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    for (const int fd : {channel::kGuestFd, channel::kControlListenFd, channel::kTokenFd}) {
        if (argc != 2 || ::fcntl(fd, F_GETFD) < 0) {
            std::fputs("usage: bulkhead-channel INSTANCE 3<>GUEST 4<>LISTENER 5<TOKEN (bulkheadd starts it)\n", stderr);
            return 2;
        }
    }
    // A guest must not write into the log through the parser's own messages.
    google::protobuf::SetLogHandler(nullptr);
    try {
        return runChannel(argv[1]);
    } catch (const std::exception& error) {
        log::error(error.what());
        return 1;
    }
}
