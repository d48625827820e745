// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"

#include <cstdint>
#include <string>

/// What the verbs print for people: whole texts, safe for a terminal.
namespace bulkhead::cli {

/// "1.5 GiB", "512 MiB", "17 B".
std::string bytesText(std::uint64_t bytes);
/// "2026-11-29 15:04:05", in the local time zone.
std::string timeText(std::int64_t secondsSinceEpoch);

/// Domains in the order of their kind and name, disposables last. `withOwner` adds the column of the owner's uid.
std::string domainTable(QList<client::DomainInfo> domains, bool withOwner);
std::string domainText(const client::DomainInfo& domain);
std::string templateTable(QList<client::TemplateInfo> templates);
std::string templateText(const client::TemplateInfo& info);
std::string packagesText(const client::TemplateInfo& info);
/// The findings, each with its fix, and a line that sums up.
std::string findingsText(const QList<client::Finding>& findings);

} // namespace bulkhead::cli
