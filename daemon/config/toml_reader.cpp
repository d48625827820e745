// SPDX-License-Identifier: Apache-2.0
#include "config/toml_reader.hpp"

#include "base/escaping.hpp"
#include "config/nearest_name.hpp"

#include <algorithm>

namespace bulkhead::config {

namespace {

std::string placeOf(const std::string& file, const toml::source_position& at) {
    // A table that begins with the file has no place of its own in toml++.
    const auto line = std::max<std::uint32_t>(at.line, 1);
    const auto column = std::max<std::uint32_t>(at.column, 1);
    return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

std::string_view typeName(const toml::node& node) {
    switch (node.type()) {
    case toml::node_type::none:
        return "nothing";
    case toml::node_type::table:
        return "a table";
    case toml::node_type::array:
        return "a list";
    case toml::node_type::string:
        return "a text";
    case toml::node_type::integer:
        return "a number";
    case toml::node_type::floating_point:
        return "a fraction";
    case toml::node_type::boolean:
        return "true or false";
    case toml::node_type::date:
        return "a date";
    case toml::node_type::time:
        return "a time";
    case toml::node_type::date_time:
        return "a date and time";
    }
    return "something else";
}

std::string quoted(std::string_view key) {
    return "\"" + escapeUntrusted(key, 80) + "\"";
}

} // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, std::string file) {
    try {
        return TomlDocument(toml::parse(text, file), file);
    } catch (const toml::parse_error& error) {
        return fail(ErrorCode::InvalidArgument, placeOf(file, error.source().begin) +
                                                    "not valid TOML: " + escapeUntrusted(error.description(), 300));
    }
}

TomlTable TomlDocument::root() {
    return {m_table, "", *this};
}

void TomlDocument::addProblem(const toml::source_region& where, const std::string& message) {
    m_problems.push_back({where.begin, message});
}

std::vector<Error> TomlDocument::takeProblems() {
    std::stable_sort(m_problems.begin(), m_problems.end(), [](const Problem& a, const Problem& b) {
        return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
    });
    std::vector<Error> errors;
    for (const Problem& problem : m_problems) {
        errors.push_back({ErrorCode::InvalidArgument, placeOf(m_file, problem.at) + problem.message});
    }
    m_problems.clear();
    return errors;
}

const toml::node* TomlTable::find(std::string_view key) {
    m_known.emplace_back(key);
    return m_table->get(key);
}

bool TomlTable::isInteger(std::string_view key) const {
    const toml::node* const node = m_table->get(key);
    return node != nullptr && node->is_integer();
}

std::optional<toml::source_region> TomlTable::placeOf(std::string_view key) const {
    const toml::node* const node = m_table->get(key);
    return node == nullptr ? std::nullopt : std::optional(node->source());
}

void TomlTable::addProblem(std::string_view key, const std::string& message) {
    const toml::node* const node = m_table->get(key);
    m_document->addProblem(node != nullptr ? node->source() : m_table->source(), message);
}

void TomlTable::check(std::string_view key, const Status& status) {
    if (!status) {
        addProblem(key, status.error().message);
    }
}

void TomlTable::addMissing(std::string_view key, std::string_view example) {
    addProblem(key, quoted(m_prefix + std::string(key)) + " is missing; add " + std::string(example));
}

void TomlTable::addWrongType(std::string_view key, std::string_view expected) {
    addProblem(key, quoted(m_prefix + std::string(key)) + " must be " + std::string(expected) + ", not " +
                        std::string(typeName(*m_table->get(key))));
}

std::optional<std::string> TomlTable::text(std::string_view key) {
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    if (const auto* value = node->as_string()) {
        return value->get();
    }
    addWrongType(key, "a text in quotes");
    return std::nullopt;
}

std::optional<Bytes> TomlTable::size(std::string_view key, Bytes least, Bytes most) {
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    const auto* const value = node->as_string();
    if (value == nullptr) {
        addWrongType(key, "a size in quotes, like \"2GiB\"");
        return std::nullopt;
    }
    const auto bytes = parseBytes(value->get());
    const std::string name = quoted(m_prefix + std::string(key));
    if (!bytes) {
        addProblem(key, name + ": " + quoted(value->get()) + " is not a size; write \"512MiB\" or \"2GiB\"");
        return std::nullopt;
    }
    if (*bytes < least || *bytes > most) {
        addProblem(key, name + " is " + formatBytes(*bytes) + "; it must be from " + formatBytes(least) + " to " +
                            formatBytes(most));
        return std::nullopt;
    }
    // Disks and memory come in whole mebibytes; the hypervisor would round silently.
    if (*bytes % kMiB != 0) {
        addProblem(key, name + " must be a whole number of MiB");
        return std::nullopt;
    }
    return *bytes;
}

std::optional<std::int64_t> TomlTable::integer(std::string_view key, std::int64_t least, std::int64_t most) {
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    const auto* const value = node->as_integer();
    if (value == nullptr) {
        addWrongType(key, "a number");
        return std::nullopt;
    }
    if (value->get() < least || value->get() > most) {
        addProblem(key, quoted(m_prefix + std::string(key)) + " is " + std::to_string(value->get()) +
                            "; it must be from " + std::to_string(least) + " to " + std::to_string(most));
        return std::nullopt;
    }
    return value->get();
}

std::optional<bool> TomlTable::flag(std::string_view key) {
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    const auto* const value = node->as_boolean();
    if (value == nullptr) {
        addWrongType(key, "true or false, without quotes");
        return std::nullopt;
    }
    return value->get();
}

std::optional<std::vector<std::string>> TomlTable::textList(std::string_view key, std::size_t most) {
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    const auto* const list = node->as_array();
    if (list == nullptr) {
        addWrongType(key, "a list of texts, like [\"a\", \"b\"]");
        return std::nullopt;
    }
    const std::string name = quoted(m_prefix + std::string(key));
    if (list->size() > most) {
        addProblem(key, name + " has more than " + std::to_string(most) + " entries");
        return std::nullopt;
    }
    std::vector<std::string> texts;
    for (const toml::node& element : *list) {
        const auto* const value = element.as_string();
        if (value == nullptr) {
            m_document->addProblem(element.source(),
                                   name + " may hold texts only, not " + std::string(typeName(element)));
        } else if (std::find(texts.begin(), texts.end(), value->get()) != texts.end()) {
            m_document->addProblem(element.source(), name + " has " + quoted(value->get()) + " twice");
        } else {
            texts.push_back(value->get());
        }
    }
    return texts;
}

std::vector<std::pair<std::string, TomlTable>> TomlTable::tables(std::string_view key) {
    std::vector<std::pair<std::string, TomlTable>> found;
    const toml::node* const node = find(key);
    if (node == nullptr) {
        return found;
    }
    const auto* const outer = node->as_table();
    if (outer == nullptr) {
        addWrongType(key, "a group of tables, like [" + std::string(key) + ".small]");
        return found;
    }
    for (const auto& [name, inner] : *outer) {
        const std::string path = m_prefix + std::string(key) + "." + std::string(name.str());
        if (const auto* table = inner.as_table()) {
            found.emplace_back(std::string(name.str()),
                               TomlTable(*table, escapeUntrusted(path, 80) + ".", *m_document));
        } else {
            m_document->addProblem(name.source(),
                                   quoted(path) + " must be a table, like [" + std::string(key) + ".small]");
        }
    }
    return found;
}

void TomlTable::refuse(std::string_view key, const std::string& message) {
    m_refused.emplace_back(key);
    if (has(key)) {
        for (const auto& [name, node] : *m_table) {
            if (name.str() == key) {
                m_document->addProblem(name.source(), message);
            }
        }
    }
}

void TomlTable::finish() {
    const auto isIn = [](const std::vector<std::string>& list, std::string_view key) {
        return std::find(list.begin(), list.end(), key) != list.end();
    };
    for (const auto& [name, node] : *m_table) {
        const std::string_view key = name.str();
        if (isIn(m_known, key) || isIn(m_refused, key)) {
            continue;
        }
        std::string message = "unknown key " + quoted(m_prefix + std::string(key));
        if (const auto nearest = nearestName(key, m_known)) {
            message += "; did you mean " + quoted(*nearest) + "?";
        } else {
            std::vector<std::string> known = m_known;
            std::sort(known.begin(), known.end());
            message += "; known are";
            for (std::size_t i = 0; i < known.size(); ++i) {
                message += (i == 0 ? " " : ", ") + known[i];
            }
        }
        m_document->addProblem(name.source(), message);
    }
}

} // namespace bulkhead::config
