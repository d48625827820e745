// SPDX-License-Identifier: Apache-2.0
#include "cli/output/diff.hpp"

#include <QByteArray>
#include <QString>

#include <array>
#include <utility>

namespace bulkhead::cli {

using namespace diff_stream;
using client::FileState;

namespace {

/// Sets `key`, and where the bytes are no UTF-8 also `key`_base64: those of `key` are a likeness then.
void setBytes(Json& json, const std::string& key, const std::string& bytes) {
    const QString text = QString::fromStdString(bytes);
    json[key] = text.toStdString();
    if (text.toStdString() != bytes) {
        json[key + "_base64"] = QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())).toBase64().toStdString();
    }
}

const char* wordFor(Disk disk) {
    return disk == Disk::System ? "system" : "home";
}

const char* wordFor(FileType type) {
    constexpr std::array<const char*, 8> kWords{"unknown", "file",   "directory",        "link",
                                                "fifo",    "socket", "character-device", "block-device"};
    return kWords.at(static_cast<std::size_t>(type));
}

const char* wordFor(Change change) {
    return change == Change::Added ? "added" : change == Change::Removed ? "removed" : "changed";
}

const char* wordFor(DiskState state) {
    constexpr std::array<const char*, 6> kWords{"", "compared", "not-given", "only-a", "only-b", "unreadable"};
    return kWords.at(static_cast<std::size_t>(state));
}

const char* wordFor(NoteKind kind) {
    constexpr std::array<const char*, 14> kWords{"",
                                                 "not-mounted",
                                                 "journal-ignored",
                                                 "unreadable",
                                                 "seen-before",
                                                 "too-deep",
                                                 "path-too-long",
                                                 "too-many-names",
                                                 "too-many-directories",
                                                 "bad-name",
                                                 "other-file-system",
                                                 "too-many-entries",
                                                 "packages-unreadable",
                                                 "facts-cut"};
    return kWords.at(static_cast<std::size_t>(kind));
}

Json wordsFor(std::uint32_t what) {
    constexpr std::array<std::pair<std::uint32_t, const char*>, 7> kWords{{{kContent, "content"},
                                                                           {kMode, "mode"},
                                                                           {kOwner, "owner"},
                                                                           {kType, "type"},
                                                                           {kTarget, "target"},
                                                                           {kAttributes, "attributes"},
                                                                           {kDevice, "device"}}};
    Json words = Json::array();
    for (const auto& [bit, word] : kWords) {
        if ((what & bit) != 0) {
            words.push_back(word);
        }
    }
    return words;
}

Json jsonOf(const std::optional<FileState>& state) {
    if (!state) {
        return nullptr;
    }
    Json json;
    json["type"] = wordFor(state->type);
    json["size"] = state->size;
    json["mode"] = state->mode;
    json["uid"] = state->uid;
    json["gid"] = state->gid;
    json["mtime"] = state->mtime;
    if (state->type == FileType::Link) {
        setBytes(json, "target", state->target);
    }
    if (state->type == FileType::CharacterDevice || state->type == FileType::BlockDevice) {
        json["device"] = Json::array({state->deviceMajor, state->deviceMinor});
    }
    return json;
}

Json versionOrNull(const std::string& version) {
    return version.empty() ? Json(nullptr) : Json(QString::fromStdString(version).toStdString());
}

/// Without the line break.
std::string compact(const Json& value) {
    std::string line = jsonLine(value);
    line.pop_back();
    return line;
}

} // namespace

DiffJson::DiffJson(DiffWriter writer, const Json& about)
    : DiffOutput(std::move(writer)) {
    write("{\n");
    for (const auto& [key, value] : about.items()) {
        write("  " + compact(key) + ": " + compact(value) + ",\n");
    }
    write("  \"packages\": [");
}

void DiffJson::element(const Json& value) {
    write((std::exchange(m_isFirst, false) ? "\n    " : ",\n    ") + compact(value));
}

void DiffJson::beginFiles() {
    if (!std::exchange(m_hasFiles, true)) {
        write(std::exchange(m_isFirst, true) ? "],\n  \"files\": [" : "\n  ],\n  \"files\": [");
    }
}

void DiffJson::package(const client::PackageChange& change) {
    Json json;
    setBytes(json, "name", change.name);
    setBytes(json, "architecture", change.architecture);
    json["before"] = versionOrNull(change.before);
    json["after"] = versionOrNull(change.after);
    element(json);
}

void DiffJson::diskIs(Disk disk, DiskState state) {
    beginFiles();
    m_disks.push_back(Json{{"disk", wordFor(disk)}, {"state", wordFor(state)}});
}

void DiffJson::entry(const client::DiffEntry& entry) {
    Json json;
    json["disk"] = wordFor(entry.disk);
    json["change"] = wordFor(entry.change);
    setBytes(json, "path", guestPath(entry.disk, entry.path));
    json["what"] = wordsFor(entry.what);
    json["before"] = jsonOf(entry.before);
    json["after"] = jsonOf(entry.after);
    element(json);
}

void DiffJson::note(const client::DiffNote& note) {
    Json json;
    json["kind"] = wordFor(note.kind);
    json["disk"] = wordFor(note.disk);
    json["side"] = note.side == Side::A ? Json("a") : note.side == Side::B ? Json("b") : Json(nullptr);
    setBytes(json, "path", note.path.empty() ? std::string() : guestPath(note.disk, note.path));
    json["errno"] = note.error == 0 ? Json(nullptr) : Json(note.error);
    json["text"] = noteText(note);
    m_notes.push_back(json);
}

void DiffJson::totals(const client::DiffTotals& totals) {
    m_totals = Json{{"added", totals.added},
                    {"removed", totals.removed},
                    {"changed", totals.changed},
                    {"packages_added", totals.packagesAdded},
                    {"packages_removed", totals.packagesRemoved},
                    {"packages_changed", totals.packagesChanged},
                    {"notes", totals.notes},
                    {"directories", totals.directories},
                    {"names", totals.names},
                    {"bytes_read", totals.bytes}};
}

void DiffJson::finish(const client::Failure* failure) {
    beginFiles();
    write(m_isFirst ? "],\n" : "\n  ],\n");
    write("  \"disks\": " + compact(m_disks) + ",\n  \"notes\": " + compact(m_notes) + ",\n");
    write("  \"totals\": " + compact(m_totals) + ",\n");
    write(std::string("  \"complete\": ") + (failure == nullptr ? "true" : "false") + ",\n");
    write("  \"error\": " + (failure == nullptr ? "null" : compact(cli::jsonOf(*failure, {}))) + "\n}\n");
    flush();
}

} // namespace bulkhead::cli
