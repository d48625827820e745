// SPDX-License-Identifier: Apache-2.0
#include "cli/output/report.hpp"

#include "cli/exit_code.hpp"
#include "cli/output/json.hpp"
#include "client/terminal_text.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace bulkhead::cli {
namespace {

void printError(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
}

std::string errorText(const std::string& line, const std::string& hint) {
    std::string out = "bulkhead: " + client::terminalSafe(line) + "\n";
    if (!hint.empty()) {
        out += "  " + client::terminalSafe(hint) + "\n";
    }
    return out;
}

} // namespace

int printOut(const std::string& text) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (written) {
        return exit_code::kDone;
    }
    if (errno != EPIPE) {
        printError(errorText("cannot write the result: " + std::generic_category().message(errno), {}));
    }
    return exit_code::kFailed;
}

std::string hintFor(const client::Failure& failure, std::string_view what) {
    namespace code = client::code;
    if (failure.code == code::kDaemonNotRunning) {
        return "start it: sudo systemctl start bulkheadd (without systemd: sudo bulkheadd &); then: bulkhead doctor";
    }
    if (failure.code == code::kBusUnavailable) {
        return "start the system message bus (sudo systemctl start dbus; without systemd: sudo dbus-daemon --system)";
    }
    if (failure.code == code::kDaemonLost) {
        return "see its log (journalctl -u bulkheadd), and bulkhead domain ls for what runs";
    }
    if (failure.code == code::kVersionMismatch) {
        return "restart it after an update: sudo systemctl restart bulkheadd";
    }
    if (failure.code == code::kNotFound && what.starts_with("domain")) {
        return "see: bulkhead domain ls";
    }
    if (failure.code == code::kNotFound && what.starts_with("snapshot")) {
        return "see: bulkhead snapshot ls";
    }
    if (failure.code == code::kNotFound && what.starts_with("template")) {
        return "see: bulkhead template ls";
    }
    if (failure.code == code::kNotAuthorized) {
        return "try it with sudo if it is yours to do";
    }
    return {};
}

void printFailure(const std::string& what, const client::Failure& failure, bool json) {
    const std::string hint = hintFor(failure, what);
    if (json) {
        printError(jsonLine(Json{{"error", jsonOf(failure, hint)}}));
        return;
    }
    printError(errorText(what.empty() ? failure.message : what + ": " + failure.message, hint));
}

void printMistake(const std::string& what, const std::string& hint) {
    printError(errorText(what, hint));
}

} // namespace bulkhead::cli
