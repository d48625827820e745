// SPDX-License-Identifier: Apache-2.0
#include "cli/output/snapshots.hpp"

#include "cli/output/describe.hpp"
#include "cli/output/table.hpp"
#include "client/snapshots.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

std::string text(const QString& value) {
    return value.toStdString();
}

Json optionalText(const QString& value) {
    return value.isEmpty() ? Json(nullptr) : Json(text(value));
}

Json texts(const QStringList& values) {
    Json array = Json::array();
    for (const QString& value : values) {
        array.push_back(text(value));
    }
    return array;
}

/// The id in the form that all else prints it in: an object's path has it without dashes.
QString domainIdOf(const QString& path) {
    QString id = path.section(QLatin1Char('/'), -1);
    constexpr qsizetype kDigits = 32;
    if (id.size() == kDigits) {
        for (const qsizetype at : {20, 16, 12, 8}) {
            id.insert(at, QLatin1Char('-'));
        }
    }
    return id;
}

std::string notesOn(const Lineage& lineage, const client::SnapshotInfo& snapshot) {
    QStringList notes;
    if (snapshot.isPinned) {
        notes.append(QStringLiteral("pinned"));
    }
    if (!snapshot.suspect.isEmpty()) {
        notes.append(QStringLiteral("suspect"));
    }
    for (const QString& name : lineage.standingAt(snapshot.id)) {
        notes.append(name + QStringLiteral(" is here"));
    }
    return text(notes.join(QStringLiteral(", ")));
}

QStringList idsOf(const QList<client::SnapshotInfo>& snapshots, bool areShort) {
    QStringList ids;
    for (const auto& snapshot : snapshots) {
        ids.append(areShort ? client::shortId(snapshot.id) : snapshot.id);
    }
    return ids;
}

} // namespace

const client::DomainInfo* Lineage::domainAt(const QString& path) const {
    const auto found =
        std::find_if(domains.begin(), domains.end(), [&](const auto& domain) { return domain.path == path; });
    return found == domains.end() ? nullptr : &*found;
}

const client::DomainInfo* Lineage::domainNamed(const QString& name) const {
    const auto found =
        std::find_if(domains.begin(), domains.end(), [&](const auto& domain) { return domain.name == name; });
    return found == domains.end() ? nullptr : &*found;
}

QString Lineage::domainNameOf(const client::SnapshotInfo& snapshot) const {
    const auto* domain = domainAt(snapshot.domain);
    return domain == nullptr ? snapshot.domainName : domain->name;
}

QStringList Lineage::standingAt(const QString& id) const {
    QStringList names;
    for (const auto& domain : domains) {
        if (!id.isEmpty() && domain.head == id) {
            names.append(domain.name);
        }
    }
    names.sort();
    return names;
}

QList<client::SnapshotInfo> Lineage::childrenOf(const QString& id) const {
    QList<client::SnapshotInfo> children;
    std::copy_if(snapshots.begin(), snapshots.end(), std::back_inserter(children),
                 [&](const auto& snapshot) { return snapshot.parent == id; });
    return children;
}

std::string timeAndAge(std::int64_t seconds, std::int64_t now) {
    return timeText(seconds) + " (" + client::ageText(seconds, now) + ")";
}

std::string snapshotTable(const Lineage& lineage, const QList<client::SnapshotInfo>& snapshots) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& snapshot : snapshots) {
        const bool isGone = lineage.domainAt(snapshot.domain) == nullptr;
        rows.push_back(
            {text(client::shortId(snapshot.id)), text(lineage.domainNameOf(snapshot)) + (isGone ? " (gone)" : ""),
             text(snapshot.kind), timeText(snapshot.createdAt), client::ageText(snapshot.createdAt, lineage.now),
             bytesText(snapshot.sizeOnDisk), text(snapshot.reason), text(snapshot.label), notesOn(lineage, snapshot)});
    }
    return tableText({"ID", "DOMAIN", "KIND", "TAKEN", "AGE", "DISK", "REASON", "LABEL", "NOTES"}, rows);
}

std::string snapshotText(const Lineage& lineage, const client::SnapshotInfo& snapshot) {
    const bool isGone = lineage.domainAt(snapshot.domain) == nullptr;
    const auto children = lineage.childrenOf(snapshot.id);
    return keyValueText({
        {"Id", text(snapshot.id)},
        {"Domain", text(lineage.domainNameOf(snapshot)) + (isGone ? " (it is gone)" : "")},
        {"Kind", snapshot.isFull()                        ? "full: disks and memory"
                 : snapshot.kind == QLatin1String("disk") ? "disk: the disks alone"
                                                          : text(snapshot.kind)},
        {"Taken", timeAndAge(snapshot.createdAt, lineage.now)},
        {"Reason", text(snapshot.reason)},
        {"Label", text(snapshot.label)},
        {"Pinned", snapshot.isPinned ? "yes" : "no"},
        {"Suspect", text(snapshot.suspect)},
        {"Template", text(snapshot.templateName) +
                         (snapshot.templateVersion.isEmpty() ? "" : ", version " + text(snapshot.templateVersion))},
        {"Size", text(snapshot.size)},
        {"Disk", bytesText(snapshot.sizeOnDisk)},
        {"Comes from", text(client::shortId(snapshot.parent))},
        {"Followed by", text(idsOf(children, true).join(QStringLiteral(", ")))},
        {"Standing here", text(lineage.standingAt(snapshot.id).join(QStringLiteral(", ")))},
    });
}

Json jsonOf(const Lineage& lineage, const client::SnapshotInfo& snapshot) {
    Json json;
    json["id"] = text(snapshot.id);
    json["parent"] = optionalText(snapshot.parent);
    json["domain"] = text(lineage.domainNameOf(snapshot));
    json["domain_id"] = text(domainIdOf(snapshot.domain));
    json["domain_exists"] = lineage.domainAt(snapshot.domain) != nullptr;
    json["kind"] = text(snapshot.kind);
    json["created_at"] = snapshot.createdAt;
    json["reason"] = text(snapshot.reason);
    json["label"] = optionalText(snapshot.label);
    json["pinned"] = snapshot.isPinned;
    json["suspect"] = optionalText(snapshot.suspect);
    json["template"] = text(snapshot.templateName);
    json["template_version"] = optionalText(snapshot.templateVersion);
    json["size"] = text(snapshot.size);
    json["size_on_disk"] = snapshot.sizeOnDisk;
    json["children"] = texts(idsOf(lineage.childrenOf(snapshot.id), false));
    json["standing_here"] = texts(lineage.standingAt(snapshot.id));
    return json;
}

Json jsonOf(const Lineage& lineage, const QList<client::SnapshotInfo>& snapshots) {
    Json array = Json::array();
    for (const auto& snapshot : snapshots) {
        array.push_back(jsonOf(lineage, snapshot));
    }
    return array;
}

} // namespace bulkhead::cli
