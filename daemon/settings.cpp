// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace bulkhead {
namespace {

struct Option {
    std::string_view name;
    std::string_view what;
    std::function<void(Settings&, std::string)> set;
};

constexpr unsigned kMostWaitingShells = 16;

/// More than kMostWaitingShells when it is no number, or too large a one.
unsigned shellsFrom(const std::string& text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : kMostWaitingShells + 1;
}

/// "7d", "12h", "30m", "90s", or 0. None: it is no such thing, or longer than ten years.
std::optional<std::chrono::seconds> readDuration(std::string_view text) {
    constexpr std::int64_t kMost = std::int64_t{3650} * 24 * 3600;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const std::int64_t factor = unit == "d" ? 24 * 3600 : unit == "h" ? 3600 : unit == "m" ? 60 : unit == "s" ? 1 : 0;
    const bool isZero = number == 0 && unit.empty();
    if (error != std::errc{} || number < 0 || number > kMost || (factor == 0 && !isZero) || number * factor > kMost) {
        return std::nullopt;
    }
    return std::chrono::seconds(number * factor);
}

const std::array<Option, 14>& options() {
    static const std::array<Option, 14> kOptions{{
        {"--state-dir", "database, definitions and disks", [](Settings& s, std::string v) { s.stateDirectory = v; }},
        {"--runtime-dir", "sockets of what runs", [](Settings& s, std::string v) { s.runtimeDirectory = v; }},
        {"--cache-dir", "template builds", [](Settings& s, std::string v) { s.cacheDirectory = v; }},
        {"--config-dir", "the administrator's files", [](Settings& s, std::string v) { s.configDirectory = v; }},
        {"--data-dir", "files of the package", [](Settings& s, std::string v) { s.dataDirectory = v; }},
        {"--libexec-dir", "helper programs", [](Settings& s, std::string v) { s.libexecDirectory = v; }},
        {"--library-dir", "libraries that emulators load", [](Settings& s, std::string v) { s.libraryDirectory = v; }},
        {"--libvirt-uri", "the hypervisor", [](Settings& s, std::string v) { s.libvirtUri = v; }},
        {"--transport", "of the channel to guests: auto, vsock or virtio-serial",
         [](Settings& s, std::string v) { s.transport = v; }},
        {"--warm-images", "when to make them: auto or on-request",
         [](Settings& s, std::string v) { s.warmImages = v; }},
        {"--waiting-shells", "emulators that wait for the next start (1; 0: none)",
         [](Settings& s, std::string v) { s.waitingShells = shellsFrom(v); }},
        {"--keep-deleted", "how long removed domains can be restored, as 7d, 12h or 0",
         [](Settings& s, std::string v) { s.keepDeleted = readDuration(v).value_or(std::chrono::seconds(-1)); }},
        {"--image-group", "group of template images", [](Settings& s, std::string v) { s.imageGroup = v; }},
        {"--build-user", "who builds templates", [](Settings& s, std::string v) { s.buildUser = v; }},
    }};
    return kOptions;
}

} // namespace

Result<Settings> readCommandLine(int argc, char** argv) {
    Settings settings;
    settings.dataDirectory = BULKHEAD_DATA_DIR;
    settings.libexecDirectory = BULKHEAD_LIBEXEC_DIR;
    settings.libraryDirectory = BULKHEAD_LIBRARY_DIR;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--help" || word == "-h") {
            settings.showHelp = true;
            return settings;
        }
        if (word == "--version") {
            settings.showVersion = true;
            return settings;
        }
        const auto equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const Option* found = nullptr;
        for (const auto& option : options()) {
            found = option.name == name ? &option : found;
        }
        if (found == nullptr) {
            return fail(ErrorCode::InvalidArgument, "unknown option " + name + "; see bulkheadd --help");
        }
        if (equals != std::string::npos) {
            found->set(settings, word.substr(equals + 1));
        } else if (i + 1 < argc) {
            found->set(settings, argv[++i]);
        } else {
            return fail(ErrorCode::InvalidArgument, name + " needs a value");
        }
    }
    if (settings.warmImages != "auto" && settings.warmImages != "on-request") {
        return fail(ErrorCode::InvalidArgument, "--warm-images is auto or on-request, not " + settings.warmImages);
    }
    if (settings.waitingShells > kMostWaitingShells) {
        return fail(ErrorCode::InvalidArgument,
                    "--waiting-shells is a number from 0 to " + std::to_string(kMostWaitingShells));
    }
    if (settings.keepDeleted < std::chrono::seconds(0)) {
        return fail(ErrorCode::InvalidArgument,
                    "--keep-deleted is a time such as 7d, 12h, 30m or 90s, or 0 to keep none");
    }
    return settings;
}

std::string usageText() {
    std::string text = "Usage: bulkheadd [OPTION…]\n\nBoots each app in a microVM of its own; see bulkhead(1).\n\n";
    for (const auto& option : options()) {
        text += "  " + std::string(option.name) + " VALUE";
        text += std::string(option.name.size() < 16 ? 16 - option.name.size() : 1, ' ');
        text += std::string(option.what) + "\n";
    }
    return text + "  --help, --version\n";
}

} // namespace bulkhead
