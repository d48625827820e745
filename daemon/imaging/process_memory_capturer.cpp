// SPDX-License-Identifier: Apache-2.0
#include "imaging/process_memory_capturer.hpp"

#include "base/scope_guard.hpp"
#include "imaging/file_tree.hpp"
#include "memory/memory_capture.hpp"
#include "memory/memory_image.hpp"
#include "memory/packed_delta.hpp"

namespace bulkhead::imaging {

Status ProcessMemoryCapturer::captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) {
    std::filesystem::path delta = file;
    delta += ".delta";
    memory::CaptureSpec spec;
    spec.helper = m_program;
    spec.emulator = pid;
    spec.ram = size;
    spec.output = delta;
    auto capture = memory::MemoryCapture::start(spec);
    if (!capture) {
        return fail(capture.error());
    }
    const ScopeGuard tidy([&] { [[maybe_unused]] const Status removed = removeTree(delta); });
    if (auto prepared = capture->prepare(); !prepared) {
        return fail(prepared.error());
    }
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
    // The list of its chunks serves those that compose a child of it; nobody does of a warm image.
    const auto chunks = std::filesystem::path(image->file).replace_extension(".chunks");
    return removeTree(chunks).and_then([&] { return renamePath(image->file, file); });
}

} // namespace bulkhead::imaging
