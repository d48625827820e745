// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"
#include "hypervisor/xml_writer.hpp"

#include <filesystem>
#include <string_view>

/// The parts of a disk's description that say which files it has.
namespace bulkhead::hypervisor {

/// Absolute, and of bytes that XML can carry; InvalidArgument otherwise. `what` is for the message.
Status checkPath(std::string_view what, const std::filesystem::path& path);
/// The same for all layers, of which there is one at least, and none lies below a raw one.
Status checkDisk(std::string_view what, const core::Disk& disk);
/// <driver>, <source> and <backingStore> of a disk that was checked.
void writeDiskFiles(XmlWriter& xml, const core::Disk& disk);

} // namespace bulkhead::hypervisor
