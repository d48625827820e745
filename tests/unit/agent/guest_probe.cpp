// SPDX-License-Identifier: Apache-2.0
// Talks to the agent of a real guest by hand: guest-probe SOCKET TOKEN_FILE [--ready | USER -- COMMAND…]. Waits for
// the agent (and with --ready does no more), runs the command, asks for the status, shuts down, and prints how long
// each took.
#include "host_client.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

using namespace bulkhead;

namespace {

UniqueFd connectTo(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(static_cast<char*>(address.sun_path), path.c_str(), sizeof address.sun_path - 1);
    for (int i = 0; i < 2000; ++i) {
        UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
            return fd;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // lint-allow(sleep): a tool for people
    }
    return {};
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::cerr << "usage: guest-probe SOCKET TOKEN_FILE [USER -- COMMAND…]\n";
        return 2;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto since = [&start] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    };
    protocol::Token token{};
    std::ifstream(argv[2], std::ios::binary).read(reinterpret_cast<char*>(token.data()), token.size());
    tests::HostClient host(connectTo(argv[1]), token);
    if (!host.begin(60'000)) {
        std::cerr << "no session after " << since() << " ms\n";
        return 1;
    }
    std::cerr << "ready after " << since() << " ms\n";
    if (!host.hello()) {
        return 1;
    }
    if (argc == 4 && std::string_view(argv[3]) == "--ready") {
        return 0;
    }
    agent::ExecRequest request;
    if (argc > 5) {
        request.set_user(argv[3]);
        for (int i = 5; i < argc; ++i) {
            request.add_argv(argv[i]);
        }
    } else {
        for (const char* const word : {"sh", "-c", "uname -a; id; pwd; env; cat /proc/uptime"}) {
            request.add_argv(word);
        }
    }
    const auto before = since();
    const auto ended = host.run(request, {}, 120'000);
    if (!ended) {
        std::cerr << "no end of the command\n";
        return 1;
    }
    std::cout << ended->output;
    std::cerr << ended->errors << "status " << ended->status << " signal " << ended->signal << " failed "
              << ended->failed << "/" << ended->reason << ", took " << since() - before << " ms\n";
    agent::Request status;
    status.set_id(1);
    status.mutable_status();
    const auto reply = host.ask(status);
    if (!reply) {
        return 1;
    }
    std::cerr << "uptime " << reply->status().uptime_ms() << " ms, memory available "
              << reply->status().memory_available() / 1048576 << " of " << reply->status().memory_total() / 1048576
              << " MiB, processes " << reply->status().processes() << "\n";
    agent::Request shutdown;
    shutdown.mutable_shutdown()->set_grace_ms(2000);
    const auto asked = since();
    host.ask(shutdown);
    host.waitUntil([] { return false; }, 10'000);
    std::cerr << (host.transportEnded() ? "powered off" : "still on") << " after " << since() - asked << " ms\n";
    return 0;
}
