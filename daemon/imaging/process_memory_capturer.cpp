// SPDX-License-Identifier: Apache-2.0
#include "imaging/process_memory_capturer.hpp"

#include "base/scope_guard.hpp"
#include "imaging/file_tree.hpp"
#include "memory/memory_capture.hpp"
#include "memory/memory_image.hpp"
#include "memory/packed_delta.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace bulkhead::imaging {

namespace {

class PreparedRunningCapture final : public core::RunningCapture {
public:
    explicit PreparedRunningCapture(memory::MemoryCapture capture)
        : m_capture(std::move(capture)) {}

    Status copy() override {
        const auto copied = m_capture.capture();
        return copied ? Status{} : fail(copied.error());
    }
    Status finish() override {
        const auto written = m_capture.finish();
        return written ? Status{} : fail(written.error());
    }

private:
    memory::MemoryCapture m_capture;
};

Result<memory::MemoryCapture> startCapture(const memory::CaptureSpec& spec) {
    auto capture = memory::MemoryCapture::start(spec);
    if (!capture) {
        return capture;
    }
    if (auto prepared = capture->prepare(); !prepared) {
        return fail(prepared.error());
    }
    return capture;
}

/// "Name:   123 kB"
std::optional<Bytes> kilobytesIn(std::string_view status, std::string_view name) {
    for (std::size_t at = 0; at < status.size(); at = status.find('\n', at) + 1) {
        const std::string_view line = status.substr(at, status.find('\n', at) - at);
        if (line.starts_with(name)) {
            const std::size_t digits = line.find_first_of("0123456789", name.size());
            std::uint64_t number = 0;
            if (digits == std::string_view::npos ||
                std::from_chars(line.data() + digits, line.data() + line.size(), number).ec != std::errc()) {
                return std::nullopt;
            }
            return number * kKiB;
        }
        if (status.find('\n', at) == std::string_view::npos) {
            break;
        }
    }
    return std::nullopt;
}

} // namespace

Result<std::unique_ptr<core::RunningCapture>> ProcessMemoryCapturer::prepare(const CaptureRequest& request) {
    memory::CaptureSpec spec;
    spec.helper = m_program;
    spec.emulator = request.emulator;
    spec.ram = request.memory;
    spec.output = request.delta;
    if (request.begunFrom) {
        spec.mappedImage = request.begunFrom->file;
        spec.parent = memory::CaptureParent{request.begunFrom->file, request.begunFrom->digest};
    }
    auto capture = startCapture(spec);
    if (!capture) {
        return fail(capture.error());
    }
    return std::make_unique<PreparedRunningCapture>(std::move(*capture));
}

Result<Bytes> ProcessMemoryCapturer::privateMemory(pid_t emulator) {
    constexpr std::size_t kMostStatus = std::size_t{64} * 1024;
    const auto status = readSmallFile("/proc/" + std::to_string(emulator) + "/status", kMostStatus);
    if (!status) {
        return status.error().code == ErrorCode::NotFound
                   ? fail(ErrorCode::NotFound, "emulator " + std::to_string(emulator) + " has ended")
                   : fail(status.error());
    }
    const auto resident = kilobytesIn(*status, "RssAnon:");
    if (!resident) { // a process that has ended, but was not collected yet, has no memory
        return fail(ErrorCode::NotFound, "emulator " + std::to_string(emulator) + " has ended");
    }
    return *resident + kilobytesIn(*status, "VmSwap:").value_or(0);
}

Result<std::string> ProcessMemoryCapturer::captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) {
    std::filesystem::path delta = file;
    delta += ".delta";
    memory::CaptureSpec spec;
    spec.helper = m_program;
    spec.emulator = pid;
    spec.ram = size;
    spec.output = delta;
    auto capture = startCapture(spec);
    if (!capture) {
        return fail(capture.error());
    }
    const ScopeGuard tidy([&] { [[maybe_unused]] const Status removed = removeTree(delta); });
    if (auto copied = capture->capture(); !copied) {
        return fail(copied.error());
    }
    if (auto written = capture->finish(); !written) {
        return fail(written.error());
    }
    memory::ComposeSpec whole;
    whole.ram = size;
    whole.deltas.push_back({delta, std::string(memory::zeroParent())});
    whole.folder = file.parent_path();
    const auto image = memory::composeImage(whole);
    if (!image) {
        return fail(image.error());
    }
    const Status named = renamePath(memory::chunksPath(image->file), memory::chunksPath(file))
                             .and_then([&] { return renamePath(image->file, file); })
                             .and_then([&] { return syncPath(file.parent_path()); });
    return named ? Result<std::string>(image->digest) : fail(named.error());
}

} // namespace bulkhead::imaging
