// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/domain_toml.hpp"
#include "core/model/template.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::config {

/// `name`: the file's name without ".toml", which the file must repeat.
tl::expected<core::TemplateDefinition, Problems> parseTemplateToml(std::string_view text, const std::string& path,
                                                                   const std::string& name);

/// A file NAME.d/*.toml beside the definition of template NAME: the packages that it adds.
tl::expected<std::vector<std::string>, Problems> parseTemplateDropIn(std::string_view text, const std::string& path);
/// The drop-in that `template install` keeps; parseTemplateDropIn() reads it back.
std::string writeTemplateDropIn(const std::string& name, const std::vector<std::string>& packages);

} // namespace bulkhead::config
