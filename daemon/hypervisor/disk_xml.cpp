// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/disk_xml.hpp"

#include "base/escaping.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace bulkhead::hypervisor {
namespace {

std::string_view formatName(core::DiskFormat format) {
    return format == core::DiskFormat::Qcow2 ? "qcow2" : "raw";
}

/// The layers below the active one, each inside the one above. The empty element at the end tells libvirt that the
/// chain ends here: it opens no image to look for a backing file name.
void writeBackingChain(XmlWriter& xml, const core::Disk& disk, std::size_t layer) {
    if (layer == disk.layers.size()) {
        xml.empty("backingStore");
        return;
    }
    xml.open("backingStore", {{"type", "file"}});
    xml.empty("format", {{"type", formatName(disk.layers[layer].format)}});
    xml.empty("source", {{"file", disk.layers[layer].path.native()}});
    writeBackingChain(xml, disk, layer + 1);
    xml.close();
}

} // namespace

Status checkPath(std::string_view what, const std::filesystem::path& path) {
    if (path.empty() || !path.is_absolute()) {
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("the path of the {} is not absolute: \"{}\"", what, escapeUntrusted(path.native())));
    }
    if (!isXmlText(path.native())) {
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("the path of the {} has bytes that a machine description cannot carry: \"{}\"", what,
                                escapeUntrusted(path.native())));
    }
    return {};
}

Status checkDisk(std::string_view what, const core::Disk& disk) {
    if (disk.layers.empty()) {
        return fail(ErrorCode::InvalidArgument, fmt::format("the {} has no file", what));
    }
    for (std::size_t i = 0; i < disk.layers.size(); ++i) {
        if (auto checked = checkPath(what, disk.layers[i].path); !checked) {
            return checked;
        }
        // Only qcow2 can lie above something.
        if (i + 1 < disk.layers.size() && disk.layers[i].format != core::DiskFormat::Qcow2) {
            return fail(ErrorCode::InvalidArgument, fmt::format("the {} has a backing file below a raw file: {}", what,
                                                                escapeUntrusted(disk.layers[i].path.native())));
        }
    }
    return {};
}

void writeDiskFiles(XmlWriter& xml, const core::Disk& disk) {
    // writeback: the guest's flushes are honoured, and guests of one template share its pages in the host's cache.
    // A full host disk pauses the guest, so that it loses nothing; QEMU never lets it go on by itself, so somebody must
    // resume it when there is space (ObservedInstance::isPausedByFullDisk). Any other error is the guest's to handle.
    // What the guest trims or writes as zeroes takes no space on the host.
    xml.empty("driver", {{"name", "qemu"},
                         {"type", formatName(disk.layers.front().format)},
                         {"cache", "writeback"},
                         {"error_policy", "enospace"},
                         {"rerror_policy", "report"},
                         {"discard", "unmap"},
                         {"detect_zeroes", "unmap"}});
    xml.empty("source", {{"file", disk.layers.front().path.native()}});
    writeBackingChain(xml, disk, 1);
}

} // namespace bulkhead::hypervisor
