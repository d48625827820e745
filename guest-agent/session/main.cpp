// SPDX-License-Identifier: Apache-2.0
// bulkhead-session: manages the windows of a domain's X server, each on a head of its own, and tells the host of them.
#include "protocol/session_limits.hpp"
#include "session/launcher.hpp"
#include "session/session.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bulkhead::session {
namespace {

constexpr const char* kSocket = "/run/bulkhead/session.sock";

void say(const std::string& text) {
    static_cast<void>(std::fprintf(stderr, "bulkhead-session: %s\n", text.c_str()));
}

std::optional<Session::Options> parse(std::span<char*> arguments) {
    Session::Options options{.display = {}, .socket = kSocket, .heads = protocol::kMostHeads};
    for (std::size_t i = 1; i < arguments.size(); i += 2) {
        const std::string_view option = arguments[i];
        if (i + 1 == arguments.size()) {
            return std::nullopt;
        }
        const std::string_view value = arguments[i + 1];
        if (option == "--display") {
            options.display = value;
        } else if (option == "--socket") {
            options.socket = value;
        } else if (option == "--heads") {
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.heads);
            if (error != std::errc{} || end != value.data() + value.size() || options.heads < 1 ||
                options.heads > protocol::kMostHeads) {
                return std::nullopt;
            }
        } else {
            return std::nullopt;
        }
    }
    return options;
}

int run(std::span<char*> arguments) {
    const auto options = parse(arguments);
    if (!options) {
        say("usage: bulkhead-session [--display DISPLAY] [--socket PATH] [--heads 1-16]");
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    forgetChildren();
    if (!options->display.empty()) {
        ::setenv("DISPLAY", options->display.c_str(), 1); // for what is started from here
    }
    const auto session = Session::create(*options);
    if (!session) {
        say(session.error().message);
        return 1;
    }
    say((*session)->run().message);
    return 1;
}

} // namespace
} // namespace bulkhead::session

int main(int argc, char** argv) {
    try {
        return bulkhead::session::run(std::span(argv, static_cast<std::size_t>(argc)));
    } catch (const std::exception& fault) {
        bulkhead::session::say(std::string("fault: ") + fault.what());
        return 1;
    }
}
