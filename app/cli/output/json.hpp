// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"
#include "client/info.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace bulkhead::cli {

/// Keeps the order in which keys are set, so that output reads and compares well.
using Json = nlohmann::ordered_json;

/// Pure ASCII (everything else as \u escapes), so that foreign text cannot reach a terminal through it.
std::string jsonText(const Json& value);
/// The same on one line, for standard error.
std::string jsonLine(const Json& value);

Json jsonOf(const client::DomainInfo& domain);
Json jsonOf(const QList<client::DomainInfo>& domains);
Json jsonOf(const client::TemplateInfo& info, bool withDetails);
Json jsonOf(const QList<client::TemplateInfo>& templates);
Json jsonOf(const QList<client::Finding>& findings);
Json jsonOf(const client::Failure& failure, const std::string& hint);

} // namespace bulkhead::cli
