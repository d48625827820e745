// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

/// A definition that was set aside with its domain.
struct SetAsideDefinition {
    DomainId id;
    uid_t owner = 0;
    std::string name;           ///< of the domain, before
    std::int64_t deletedAt = 0; ///< seconds since the epoch

    bool operator==(const SetAsideDefinition&) const = default;
};

/// Definitions of deleted domains, out of sight of DefinitionStore. That one lies here says by itself that its domain
/// is deleted, also when the database is lost. Each call is atomic and on disk when it returns. Blocking, thread-safe.
class DeletedDefinitions {
public:
    virtual ~DeletedDefinitions() = default;
    /// Moves the owner's definition of that name here, text and all. Success when the domain's is here already (then
    /// one of that name is another domain's and stays), or when there is none.
    virtual Status setAside(const SetAsideDefinition& what) = 0;
    /// Moves it back, as the definition of `name`. AlreadyExists when there is one of that name; success when the
    /// domain's is not here.
    virtual Status bringBack(const DomainId& id, uid_t owner, const std::string& name) = 0;
    /// Success when it is not here.
    virtual Status remove(const DomainId& id, uid_t owner) = 0;
    virtual Result<std::vector<SetAsideDefinition>> all() = 0;
};

/// What else than InstanceStore's calls there is to kept homes. Blocking, thread-safe.
class KeptHomes {
public:
    virtual ~KeptHomes() = default;
    /// Notes beside the home that its domain has another name. Success when there is no such home.
    virtual Status rename(const DomainId& id, uid_t owner, const std::string& name) = 0;
    /// What removing it would free; 0: there is none.
    virtual Result<Bytes> sizeOnDisk(const DomainId& id) = 0;
};

} // namespace bulkhead::core
