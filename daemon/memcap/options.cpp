// SPDX-License-Identifier: Apache-2.0
#include "memcap/options.hpp"

#include "memory/packed_delta.hpp"

#include <charconv>
#include <limits>
#include <string_view>

namespace bulkhead::memcap {

namespace {

tl::unexpected<Error> wrong(std::string_view argument) {
    return fail(ErrorCode::InvalidArgument, "unexpected or bad argument " + std::string(argument));
}

std::optional<std::uint64_t> numberOf(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

} // namespace

Result<Options> parseOptions(std::span<const char* const> arguments) {
    Options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view name = arguments[i];
        if (name == "--mapped-file") {
            options.hasMappedFile = true;
            continue;
        }
        if (i + 1 == arguments.size()) {
            return wrong(name);
        }
        const std::string_view value = arguments[++i];
        const auto number = numberOf(value);
        if (name == "--pid" && number && *number <= std::numeric_limits<pid_t>::max()) {
            options.pid = static_cast<pid_t>(*number);
        } else if (name == "--ram-bytes" && number) {
            options.ram = *number;
        } else if (name == "--max-bytes" && number) {
            options.maxPrivate = *number;
        } else if (name == "--parent" && memory::isDigest(value)) {
            options.parent = value;
        } else {
            return wrong(name);
        }
    }
    if (options.pid <= 0 || options.ram == 0 || options.ram % memory::kPage != 0 || options.ram > memory::kMostRam) {
        return fail(ErrorCode::InvalidArgument, "--pid and --ram-bytes, whole pages, are needed");
    }
    if (options.maxPrivate == 0) {
        options.maxPrivate = options.ram;
    }
    if (options.hasMappedFile && !options.parent) {
        return fail(ErrorCode::InvalidArgument, "--mapped-file needs --parent");
    }
    return options;
}

} // namespace bulkhead::memcap
