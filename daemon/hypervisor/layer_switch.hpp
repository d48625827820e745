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

/// The files under vda and vdb in the answer to "query-block" (its "return", as text). HostFailure for an answer that
/// says something else than files.
Result<core::Machines::NewLayers> activeLayersIn(std::string_view queryBlock);

} // namespace bulkhead::hypervisor
