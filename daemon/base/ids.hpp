// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// An opaque id: a random UUID (RFC 4122 version 4) in lower-case text form. One type per kind of thing, so that a
/// job's id is never taken for a domain's. Says nothing about the user or the name behind it, so it may stand in
/// libvirt's XML, in paths and in signals.
template <class Tag> class Id {
public:
    Id() = default;
    /// None unless `text` is exactly 8-4-4-4-12 lower-case hexadecimal digits.
    static std::optional<Id> parse(std::string_view text);
    /// The 32 digits without dashes: for D-Bus object paths.
    [[nodiscard]] std::string compact() const;
    /// Reads the form that compact() writes.
    static std::optional<Id> parseCompact(std::string_view text);
    [[nodiscard]] const std::string& text() const { return m_text; }
    [[nodiscard]] bool isNull() const { return m_text.empty(); }
    auto operator<=>(const Id&) const = default;

private:
    std::string m_text;
};

struct DomainTag {};
struct InstanceTag {};
struct JobTag {};
struct SnapshotTag {};
/// A domain, for as long as it exists.
using DomainId = Id<DomainTag>;
/// One start of a domain, from power on to power off. Never used twice.
using InstanceId = Id<InstanceTag>;
using JobId = Id<JobTag>;
/// A node of a domain's lineage. Never used twice.
using SnapshotId = Id<SnapshotTag>;

extern template class Id<DomainTag>;
extern template class Id<InstanceTag>;
extern template class Id<JobTag>;
extern template class Id<SnapshotTag>;

/// Makes a random version 4 UUID from the kernel's generator. Throws std::system_error if the kernel gives none.
std::string randomUuidText();
/// A fresh id of any kind.
template <class IdType> IdType randomId() {
    return *IdType::parse(randomUuidText());
}

} // namespace bulkhead

template <class Tag> struct std::hash<bulkhead::Id<Tag>> {
    std::size_t operator()(const bulkhead::Id<Tag>& id) const noexcept { return std::hash<std::string>{}(id.text()); }
};
