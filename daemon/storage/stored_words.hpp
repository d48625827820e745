// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/domain.hpp"
#include "core/model/instance.hpp"
#include "core/ports/repositories.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// The words that stand in the database for enumerations. They are a file format: apart from nameOf(), whose texts are
/// for people and may change. Reading is total: a word that is not known is an error.
namespace bulkhead::storage {

std::string_view storedWord(core::DomainKind kind);
std::string_view storedWord(core::DomainRecord::Phase phase);
std::string_view storedWord(core::InstancePhase phase);
std::string_view storedWord(core::Acceleration acceleration);
std::string_view storedWord(core::Transport transport);
std::string_view storedWord(core::Audio audio);
std::string_view storedWord(core::DiskFormat format);
std::string_view storedWord(core::SnapshotKind kind);
std::string_view storedWord(core::SnapshotRecord::Phase phase);

Result<core::DomainKind> domainKindFromStored(std::string_view word);
Result<core::DomainRecord::Phase> domainPhaseFromStored(std::string_view word);
Result<core::InstancePhase> instancePhaseFromStored(std::string_view word);
Result<core::Acceleration> accelerationFromStored(std::string_view word);
Result<core::Transport> transportFromStored(std::string_view word);
Result<core::Audio> audioFromStored(std::string_view word);
Result<core::DiskFormat> diskFormatFromStored(std::string_view word);
Result<core::SnapshotKind> snapshotKindFromStored(std::string_view word);
Result<core::SnapshotRecord::Phase> snapshotPhaseFromStored(std::string_view word);

Result<DomainId> domainIdFromStored(std::string_view text);
Result<InstanceId> instanceIdFromStored(std::string_view text);
Result<SnapshotId> snapshotIdFromStored(std::string_view text);
/// For uids and slots.
Result<std::uint32_t> unsignedFromStored(std::int64_t number);

} // namespace bulkhead::storage
