// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/model/definition_change.hpp"

#include <sdbus-c++/sdbus-c++.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::dbus {

using Options = std::map<std::string, sdbus::Variant>;

/// Reads an options dictionary. Values may be given in their own type or as text, as a command line has them. The first
/// mistake is kept; finish() gives it, or names a key that nobody asked for.
class OptionReader {
public:
    explicit OptionReader(const Options& options)
        : m_options(options) {}

    std::string text(const std::string& key, const std::string& fallback = {});
    /// None: the key is not there.
    std::optional<std::string> textIfGiven(const std::string& key);
    bool flag(const std::string& key, bool fallback = false);
    std::optional<bool> flagIfGiven(const std::string& key);
    std::uint64_t number(const std::string& key, std::uint64_t fallback, std::uint64_t largest);
    std::optional<Bytes> bytes(const std::string& key);
    std::vector<std::string> list(const std::string& key);

    [[nodiscard]] Status finish() const;

private:
    const sdbus::Variant* take(const std::string& key);
    void complain(const std::string& key, const std::string& wanted);

    const Options& m_options;
    std::vector<std::string> m_known;
    std::optional<Error> m_error;
};

/// The settings of SetDefinition; core judges them. InvalidArgument, which begins with the key, for a value of a type
/// that no setting has.
Result<core::Settings> settingsFrom(const Options& changes);

} // namespace bulkhead::dbus
