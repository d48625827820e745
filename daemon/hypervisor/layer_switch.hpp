// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/ports/memory_images.hpp"

#include <string>
#include <string_view>

/// How an emulator is told to write to new layers, and how it says which it writes to.
namespace bulkhead::hypervisor {

/// What virDomainSnapshotCreateXML() wants for files that are there already. InvalidArgument for a path that XML cannot
/// carry or that is not absolute, and for no layer at all.
Result<std::string> layerSwitchXml(const core::Machines::NewLayers& layers);

/// What the guest has its home on.
constexpr std::string_view kHomeDisk = "vdb";

/// What virDomainBlockCopy() wants of a disk that is there already; all its layers are written out, so that nobody
/// follows a name that stands in one. InvalidArgument as for a machine's description.
Result<std::string> homeCopyXml(const core::Disk& home);

/// The files under vda and vdb, from the answers to "query-block" and "query-named-block-nodes" (their "return", as
/// text). The name of a disk's image in the first is of no use: for a chain that is not as its headers say it is a
/// description of all of it, cut off where it gets long. HostFailure for answers that say something else than files.
Result<core::Machines::NewLayers> activeLayersIn(std::string_view queryBlock, std::string_view queryNodes);

} // namespace bulkhead::hypervisor
