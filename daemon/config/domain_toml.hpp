// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/domain.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::config {

/// Finds the uid of a user name; none when there is no such user.
using UserLookup = std::function<std::optional<uid_t>(const std::string& name)>;
/// Asks the host's user database.
std::optional<uid_t> lookUpUser(const std::string& name);

/// What a file says by its place.
struct DomainFile {
    std::string path;           ///< for messages and DomainDefinition::file
    std::string name;           ///< of the domain: the file's name without ".toml"
    std::optional<uid_t> owner; ///< from the folder; none: an admin's file, which names its owner
};

/// All problems of a file. Not empty.
using Problems = std::vector<Error>;

tl::expected<core::DomainDefinition, Problems> parseDomainToml(std::string_view text, const DomainFile& file,
                                                               const UserLookup& users = lookUpUser);

/// Whose domain an admin's file with problems is about, as far as it can be read; none: not at all.
std::optional<uid_t> ownerInDomainToml(std::string_view text, const UserLookup& users = lookUpUser);

/// The text of a user's definition; parseDomainToml() reads it back to the same value.
std::string writeDomainToml(const core::DomainDefinition& definition);

/// `text`, a user's definition that reads well, changed so that it says `wanted`: only the values that differ are put
/// in place of the old ones, or added as new lines at the end. None when that cannot be done; the caller reads the
/// result back before it trusts it.
std::optional<std::string> editDomainToml(std::string_view text, const core::DomainDefinition& wanted);

} // namespace bulkhead::config
