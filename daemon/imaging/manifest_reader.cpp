// SPDX-License-Identifier: Apache-2.0
#include "imaging/manifest_reader.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <sstream>

namespace bulkhead::imaging {
namespace {

/// A chain this long has other troubles than its manifest.
constexpr std::size_t kMostLayers = 1000;

const toml::table& noTable() {
    static const toml::table kNone;
    return kNone;
}

} // namespace

Result<toml::table> parseManifest(std::string_view text, const std::string& file, std::int64_t newest) {
    toml::table table;
    try {
        table = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
        return fail(ErrorCode::HostFailure, file + " is damaged: " + escapeUntrusted(error.description(), 200));
    }
    const auto format = table["format"].value_exact<std::int64_t>();
    if (!format || *format < 1 || *format > newest) {
        return fail(ErrorCode::HostFailure, file + " has a format that this version does not know");
    }
    return table;
}

std::string textOf(const toml::table& table) {
    std::ostringstream text;
    text << toml::toml_formatter(table) << '\n';
    return text.str();
}

std::string ManifestReader::text(const char* key) {
    const auto value = m_table[key].value_exact<std::string>();
    m_wrong = value ? m_wrong : key;
    return value.value_or("");
}

std::uint64_t ManifestReader::number(const char* key, std::uint64_t most) {
    const auto value = m_table[key].value_exact<std::int64_t>();
    const bool isGood = value && *value >= 0 && static_cast<std::uint64_t>(*value) <= most;
    m_wrong = isGood ? m_wrong : key;
    return isGood ? static_cast<std::uint64_t>(*value) : 0;
}

bool ManifestReader::flag(const char* key) {
    const auto value = m_table[key].value_exact<bool>();
    m_wrong = value ? m_wrong : key;
    return value.value_or(false);
}

std::filesystem::path ManifestReader::path(const char* key) {
    const auto found = pathFromStored(text(key), m_state);
    m_wrong = found ? m_wrong : key;
    return found.value_or(std::filesystem::path());
}

core::Disk ManifestReader::disk(const char* key) {
    core::Disk disk;
    if (!has(key)) {
        return disk;
    }
    const auto* const layers = m_table[key].as_array();
    if (layers == nullptr || layers->size() > kMostLayers) {
        m_wrong = key;
        return disk;
    }
    for (const toml::node& node : *layers) {
        const auto* const layer = node.as_table();
        ManifestReader inner(layer != nullptr ? *layer : noTable(), m_state);
        disk.layers.push_back(
            {inner.path("file"), inner.word("format", std::array{core::DiskFormat::Raw, core::DiskFormat::Qcow2})});
        m_wrong = inner.wrong().empty() ? m_wrong : key;
    }
    return disk;
}

core::MemoryImageRef ManifestReader::image(const char* key) {
    ManifestReader inner(table(key), m_state);
    core::MemoryImageRef image{inner.path("file"), inner.text("digest")};
    m_wrong = inner.wrong().empty() ? m_wrong : key;
    return image;
}

std::map<std::string, ManifestPart> ManifestReader::parts(const char* key) {
    std::map<std::string, ManifestPart> parts;
    for (const auto& [name, value] : table(key)) {
        const auto* const part = value.as_table();
        ManifestReader inner(part != nullptr ? *part : noTable());
        ManifestPart read{inner.number("size"), inner.text("digest")};
        m_wrong = inner.wrong().empty() ? m_wrong : key;
        parts.emplace(std::string(name.str()), std::move(read));
    }
    return parts;
}

const toml::table& ManifestReader::table(const char* key) {
    const auto* const found = m_table[key].as_table();
    if (found == nullptr || found->empty()) {
        m_wrong = key;
        return noTable();
    }
    return *found;
}

Status ManifestReader::status(const std::string& file) const {
    if (m_wrong.empty()) {
        return {};
    }
    return fail(ErrorCode::HostFailure, file + " is damaged: \"" + m_wrong + "\" is missing or wrong");
}

std::string storedPath(const std::filesystem::path& file, const std::filesystem::path& state) {
    const std::filesystem::path relative = file.lexically_relative(state);
    return relative.empty() || *relative.begin() == ".." ? file.string() : relative.string();
}

std::optional<std::filesystem::path> pathFromStored(std::string_view stored, const std::filesystem::path& state) {
    const std::filesystem::path relative(stored);
    const bool isPlain = !stored.empty() && relative.is_relative() && stored.find('\0') == std::string_view::npos &&
                         std::none_of(relative.begin(), relative.end(), [](const std::filesystem::path& part) {
                             return part == ".." || part == "." || part.empty();
                         });
    return isPlain ? std::optional(state / relative) : std::nullopt;
}

toml::array storedDisk(const core::Disk& disk, const std::filesystem::path& state) {
    toml::array layers;
    for (const core::DiskLayer& layer : disk.layers) {
        layers.push_back(toml::table{{"file", storedPath(layer.path, state)}, {"format", nameOf(layer.format)}});
    }
    return layers;
}

toml::table storedImage(const core::MemoryImageRef& image, const std::filesystem::path& state) {
    return toml::table{{"file", storedPath(image.file, state)}, {"digest", image.digest}};
}

toml::table storedParts(const std::map<std::string, ManifestPart>& parts) {
    toml::table table;
    for (const auto& [name, part] : parts) {
        table.insert_or_assign(name,
                               toml::table{{"size", static_cast<std::int64_t>(part.size)}, {"digest", part.digest}});
    }
    return table;
}

} // namespace bulkhead::imaging
