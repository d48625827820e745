// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

namespace bulkhead::config {

class TomlTable;

/// A TOML file being read. Every problem is kept with its place, so that one reading shows them all.
class TomlDocument {
public:
    /// InvalidArgument with file:line:column when `text` is not TOML.
    static Result<TomlDocument> parse(std::string_view text, std::string file);

    TomlTable root();
    void addProblem(const toml::source_region& where, const std::string& message);
    [[nodiscard]] bool hasProblems() const { return !m_problems.empty(); }
    /// In the order of the file; InvalidArgument each, "file:line:column: what, and what to do".
    [[nodiscard]] std::vector<Error> takeProblems();

private:
    struct Problem {
        toml::source_position at;
        std::string message;
    };
    TomlDocument(toml::table table, std::string file)
        : m_table(std::move(table))
        , m_file(std::move(file)) {}

    toml::table m_table;
    std::string m_file;
    std::vector<Problem> m_problems;
};

/// A table of a document, read key by key. Getters give none when the key is absent, or when it is wrong, which is then
/// among the document's problems. Keys that nobody asked for are problems too: call finish() last.
class TomlTable {
public:
    /// `prefix`: how the table is called in messages, "sizes.small." or empty. `document` must outlive this.
    TomlTable(const toml::table& table, std::string prefix, TomlDocument& document)
        : m_table(&table)
        , m_prefix(std::move(prefix))
        , m_document(&document) {}

    std::optional<std::string> text(std::string_view key);
    /// A text like "2GiB".
    std::optional<Bytes> size(std::string_view key, Bytes least, Bytes most);
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
    std::optional<bool> flag(std::string_view key);
    std::optional<std::vector<std::string>> textList(std::string_view key, std::size_t most);
    /// The tables inside the table `key`, by name.
    std::vector<std::pair<std::string, TomlTable>> tables(std::string_view key);

    [[nodiscard]] bool has(std::string_view key) const { return m_table->contains(key); }
    [[nodiscard]] bool isInteger(std::string_view key) const;
    /// Where the value of `key` stands.
    [[nodiscard]] std::optional<toml::source_region> placeOf(std::string_view key) const;
    /// Adds a problem at the value of `key`, or at the table when it is absent.
    void addProblem(std::string_view key, const std::string& message);
    /// Adds a problem at the value of `key` when `status` is a failure.
    void check(std::string_view key, const Status& status);
    /// Adds the problem that `key` is missing; `example` shows how to write it.
    void addMissing(std::string_view key, std::string_view example);
    /// Takes `key` as known and gives a problem with this message when it is there.
    void refuse(std::string_view key, const std::string& message);
    /// Adds a problem for each key that was not asked for.
    void finish();

private:
    const toml::node* find(std::string_view key);
    void addWrongType(std::string_view key, std::string_view expected);

    const toml::table* m_table;
    std::string m_prefix;
    TomlDocument* m_document;
    std::vector<std::string> m_known;
    std::vector<std::string> m_refused; ///< known, but nothing to hint at
};

} // namespace bulkhead::config
