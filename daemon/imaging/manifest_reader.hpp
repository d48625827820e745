// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"
#include "core/model/snapshot.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <toml++/toml.h>

/// What the manifests of this module have in common: TOML with a number for the format, read by name, each value
/// checked. Files of the store stand in them relative to its folder, so that a store that was moved still works.
namespace bulkhead::imaging {

/// A file that a manifest vouches for.
struct ManifestPart {
    Bytes size = 0;
    std::string digest; ///< contentDigest()
    bool operator==(const ManifestPart&) const = default;
};

/// Parses and checks that "format" is from 1 to `newest`. `file` is for messages.
Result<toml::table> parseManifest(std::string_view text, const std::string& file, std::int64_t newest);
std::string textOf(const toml::table& table);

/// Reads the values of a table and remembers the last one that was missing or wrong.
class ManifestReader {
public:
    /// `state`: what paths are relative to; none: there are none.
    explicit ManifestReader(const toml::table& table, std::filesystem::path state = {})
        : m_table(table)
        , m_state(std::move(state)) {}

    [[nodiscard]] bool has(const char* key) const { return m_table.contains(key); }
    std::string text(const char* key);
    std::uint64_t number(const char* key, std::uint64_t most = std::uint64_t{INT64_MAX});
    bool flag(const char* key);
    template <class Enum, std::size_t Count> Enum word(const char* key, const std::array<Enum, Count>& all) {
        const auto found = m_table[key].value_exact<std::string>();
        for (const Enum value : all) {
            if (found == nameOf(value)) {
                return value;
            }
        }
        m_wrong = key;
        return all.front();
    }
    template <class IdType> IdType id(const char* key) {
        const auto value = IdType::parse(text(key));
        m_wrong = value ? m_wrong : key;
        return value.value_or(IdType());
    }
    /// A file of the store.
    std::filesystem::path path(const char* key);
    /// Empty when there is none.
    core::Disk disk(const char* key);
    core::MemoryImageRef image(const char* key);
    std::map<std::string, ManifestPart> parts(const char* key);
    /// The table of this name; an empty one is wrong.
    const toml::table& table(const char* key);

    void setWrong(std::string key) { m_wrong = std::move(key); }
    [[nodiscard]] const std::string& wrong() const { return m_wrong; }
    /// HostFailure when anything was wrong.
    [[nodiscard]] Status status(const std::string& file) const;

private:
    const toml::table& m_table;
    std::filesystem::path m_state;
    std::string m_wrong;
};

/// As it stands in a manifest. A file outside of the store stands there as it is, and is refused when it is read.
std::string storedPath(const std::filesystem::path& file, const std::filesystem::path& state);
/// The file of a stored path; none when that could leave the store.
std::optional<std::filesystem::path> pathFromStored(std::string_view stored, const std::filesystem::path& state);
toml::array storedDisk(const core::Disk& disk, const std::filesystem::path& state);
toml::table storedImage(const core::MemoryImageRef& image, const std::filesystem::path& state);
toml::table storedParts(const std::map<std::string, ManifestPart>& parts);

} // namespace bulkhead::imaging
