// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/json.hpp"
#include "client/info.hpp"

#include <cstdint>
#include <string>

/// What `domain ls --deleted` prints. Pure.
namespace bulkhead::cli {

/// `now`: seconds since 1970. `withOwner` adds the column of the owner's uid.
std::string deletedTable(const QList<client::DeletedInfo>& domains, std::int64_t now, bool withOwner);
Json jsonOf(const QList<client::DeletedInfo>& domains);
/// What is said of a domain that was removed just now; empty: it is not among them, so it is gone for good.
std::string restorableText(const QList<client::DeletedInfo>& domains, const std::string& name);

} // namespace bulkhead::cli
