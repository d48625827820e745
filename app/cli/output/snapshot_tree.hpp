// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/snapshots.hpp"

#include <string>

/// The lineage of one domain as a tree for a terminal. Pure.
namespace bulkhead::cli {

/// The domain's snapshots, those that it came from when it was forked, and where it stands. The way to where it stands
/// goes straight down, the oldest on top; what branches off it is moved to the right. Domains that branch off are one
/// line. `isUtf8`: false: plain ASCII.
std::string treeText(const Lineage& lineage, const client::DomainInfo& domain, bool isUtf8);

/// The same as data: "domain", "head", "suspended", "nodes" (all that the tree has, parents first) and "forks":
/// "domain", "from", "snapshots" (how many).
Json treeJson(const Lineage& lineage, const client::DomainInfo& domain);

/// Whether the terminal shows UTF-8, as the environment says.
bool isUtf8Locale();

} // namespace bulkhead::cli
