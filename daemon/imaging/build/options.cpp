// SPDX-License-Identifier: Apache-2.0
#include "build/options.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <string_view>

namespace bulkhead::imaging::build {
namespace {

constexpr Bytes kSmallestSystem = 1 * kGiB;
constexpr Bytes kLargestSystem = 1024 * kGiB;

bool isOneOf(char c, std::string_view set) {
    return set.find(c) != std::string_view::npos;
}

bool isLowerOrDigit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

Status setPath(std::filesystem::path& into, std::string_view option, std::string_view value) {
    if (!value.starts_with('/')) {
        return fail(ErrorCode::InvalidArgument, std::string(option) + ": give an absolute path");
    }
    into = value;
    return {};
}

Status setName(std::string& into, std::string_view value) {
    const bool isGood = !value.empty() && value.size() <= 31 && value.front() >= 'a' && value.front() <= 'z' &&
                        std::all_of(value.begin(), value.end(), [](char c) { return isLowerOrDigit(c) || c == '-'; });
    if (!isGood) {
        return fail(ErrorCode::InvalidArgument,
                    "--name: \"" + escapeUntrusted(value, 64) + "\" is no template's name ([a-z][a-z0-9-]{0,30})");
    }
    into = value;
    return {};
}

Status setPackage(std::string& into, std::string_view option, std::string_view value) {
    if (!isPackageName(value)) {
        return fail(ErrorCode::InvalidArgument, std::string(option) + ": \"" + escapeUntrusted(value, 64) +
                                                    "\" is no Debian package name ([a-z0-9][a-z0-9+.-]+)");
    }
    into = value;
    return {};
}

Status setSize(Bytes& into, std::string_view value) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error != std::errc{} || end != value.data() + value.size() || into < kSmallestSystem || into > kLargestSystem ||
        into % kMiB != 0) {
        return fail(ErrorCode::InvalidArgument, "--system-size: give bytes, a multiple of 1 MiB from 1 GiB to 1 TiB");
    }
    return {};
}

Status setInit(bool& isSystemd, std::string_view value) {
    if (value != "agent" && value != "systemd") {
        return fail(ErrorCode::InvalidArgument, "--init: give agent or systemd");
    }
    isSystemd = value == "systemd";
    return {};
}

} // namespace

bool isPackageName(std::string_view name) {
    return name.size() >= 2 && name.size() <= 128 && isLowerOrDigit(name.front()) &&
           std::all_of(name.begin(), name.end(), [](char c) { return isLowerOrDigit(c) || isOneOf(c, "+.-"); });
}

Result<BuildOptions> parseOptions(std::span<char* const> arguments) {
    BuildOptions options;
    std::string ignored;
    const std::map<std::string_view, std::function<Status(std::string_view)>> setters{
        {"--name", [&](std::string_view v) { return setName(options.name, v); }},
        {"--output", [&](std::string_view v) { return setPath(options.output, "--output", v); }},
        {"--agent", [&](std::string_view v) { return setPath(options.agent, "--agent", v); }},
        {"--suite", [&](std::string_view v) { return setPackage(options.suite, "--suite", v); }},
        {"--kernel", [&](std::string_view v) { return setPackage(options.kernel, "--kernel", v); }},
        {"--system-size", [&](std::string_view v) { return setSize(options.systemSize, v); }},
        {"--mirror-file",
         [&](std::string_view v) { return setPath(options.mirrorFile.emplace(), "--mirror-file", v); }},
        {"--init", [&](std::string_view v) { return setInit(options.isSystemd, v); }},
        {"--files", [&](std::string_view v) { return setPath(options.files.emplace(), "--files", v); }},
        {"--session", [&](std::string_view v) { return setPath(options.session.emplace(), "--session", v); }},
        {"--package", [&](std::string_view v) { return setPackage(options.packages.emplace_back(), "--package", v); }},
    };
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view word = arguments[i];
        const auto setter = setters.find(word);
        if (setter == setters.end()) {
            return fail(ErrorCode::InvalidArgument, "Unknown option \"" + escapeUntrusted(word, 64) + "\"");
        }
        if (++i == arguments.size()) {
            return fail(ErrorCode::InvalidArgument, std::string(word) + " needs a value");
        }
        if (auto done = setter->second(arguments[i]); !done) {
            return fail(done.error());
        }
    }
    if (options.output.empty() || options.agent.empty() || options.suite.empty() || options.kernel.empty() ||
        options.systemSize == 0) {
        return fail(ErrorCode::InvalidArgument, "--output, --agent, --suite, --kernel and --system-size are needed");
    }
    if (!options.kernel.starts_with("linux-image-")) {
        return fail(ErrorCode::InvalidArgument, "--kernel: name a linux-image-… package");
    }
    return options;
}

std::string usageText() {
    return "usage: bulkhead-build --output DIR --agent FILE --suite SUITE --kernel PACKAGE --system-size BYTES\n"
           "                      [--name NAME] [--mirror-file FILE] [--init agent|systemd] [--files DIR] [--session "
           "FILE] --package "
           "NAME…\n"
           "Builds a template's files into the empty folder DIR, as an unprivileged user with subuid and subgid "
           "ranges.\n"
           "Progress goes to descriptor 3 when it is open: PHASE WORD FRACTION TEXT.\n";
}

} // namespace bulkhead::imaging::build
