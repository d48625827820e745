// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/domain_toml.hpp"
#include "core/model/template.hpp"

#include <string>
#include <string_view>

namespace bulkhead::config {

/// `name`: the file's name without ".toml", which the file must repeat.
tl::expected<core::TemplateDefinition, Problems> parseTemplateToml(std::string_view text, const std::string& path,
                                                                   const std::string& name);

} // namespace bulkhead::config
