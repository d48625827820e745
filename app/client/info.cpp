// SPDX-License-Identifier: Apache-2.0
#include "client/info.hpp"

#include "client/bus_types.hpp"

#include <QDBusArgument>
#include <QDBusObjectPath>

namespace bulkhead::client {
namespace {

/// The argument behind `value` if it has exactly this signature. Reading a QDBusArgument of another type than it has
/// goes wrong silently, so it is always asked first.
std::optional<QDBusArgument> argumentOf(const QVariant& value, const char* signature) {
    if (value.userType() != qMetaTypeId<QDBusArgument>()) {
        return std::nullopt;
    }
    auto argument = value.value<QDBusArgument>();
    if (argument.currentSignature() != QLatin1String(signature)) {
        return std::nullopt;
    }
    return argument;
}

std::optional<std::int64_t> secondsOf(const QVariantMap& map, const QString& key) {
    const auto found = map.constFind(key);
    return found == map.constEnd() ? std::nullopt : std::optional<std::int64_t>(found->toLongLong());
}

QMap<QString, TemplateSize> sizesFrom(const QVariant& value) {
    QMap<QString, TemplateSize> sizes;
    const auto argument = argumentOf(value, "a{s(tu)}");
    if (!argument) {
        return sizes;
    }
    argument->beginMap();
    while (!argument->atEnd()) {
        QString name;
        qulonglong memory = 0;
        uint vcpus = 0;
        argument->beginMapEntry();
        *argument >> name;
        argument->beginStructure();
        *argument >> memory >> vcpus;
        argument->endStructure();
        argument->endMapEntry();
        sizes.insert(name, {memory, vcpus});
    }
    argument->endMap();
    return sizes;
}

QMap<QString, QString> textsFrom(const QVariant& value) {
    const auto argument = argumentOf(value, "a{ss}");
    return argument ? qdbus_cast<QMap<QString, QString>>(*argument) : QMap<QString, QString>();
}

} // namespace

QVariantMap nestedMap(const QVariant& value) {
    if (value.userType() == QMetaType::QVariantMap) {
        return value.toMap();
    }
    const auto argument = argumentOf(value, "a{sv}");
    return argument ? qdbus_cast<QVariantMap>(*argument) : QVariantMap();
}

ManagerInfo managerInfoFrom(const QVariantMap& map) {
    return {map.value(QStringLiteral("version")).toString(), map.value(QStringLiteral("features")).toStringList(),
            map.value(QStringLiteral("acceleration")).toString(), map.value(QStringLiteral("policy")).toString()};
}

DomainInfo domainInfoFrom(const QVariantMap& map) {
    const auto text = [&](const char* key) { return map.value(QLatin1String(key)).toString(); };
    const auto number = [&](const char* key) { return map.value(QLatin1String(key)).toULongLong(); };
    DomainInfo info;
    info.id = text("id");
    info.name = text("name");
    info.kind = text("kind");
    info.state = text("state");
    info.reason = text("reason");
    info.templateName = text("template");
    info.size = text("size");
    info.label = text("label");
    info.egress = text("egress");
    info.audio = text("audio");
    info.tags = map.value(QStringLiteral("tags")).toStringList();
    info.owner = static_cast<std::uint32_t>(number("owner"));
    info.homeSize = number("home-size");
    info.file = text("file");
    info.isManaged = map.value(QStringLiteral("managed")).toBool();
    info.isRestartNeeded = map.value(QStringLiteral("restart-needed")).toBool();
    info.nextSize = text("next-size");
    info.nextAudio = text("next-audio");
    info.head = text("head");
    info.isSuspended = map.value(QStringLiteral("suspended")).toBool();
    info.snapshotOnStop = map.value(QStringLiteral("snapshot-on-stop")).toBool();
    info.idleSuspend = text("idle-suspend");
    info.isKept = map.value(QStringLiteral("kept")).toBool();
    info.memory = number("memory");
    info.vcpus = static_cast<std::uint32_t>(number("vcpus"));
    info.acceleration = text("acceleration");
    info.transport = text("transport");
    info.templateVersion = text("template-version");
    info.updateAvailable = map.value(QStringLiteral("update-available")).toBool();
    info.startedAt = secondsOf(map, QStringLiteral("started-at"));
    info.programs = static_cast<std::uint32_t>(number("execs"));
    return info;
}

SnapshotInfo snapshotInfoFrom(const QVariantMap& map) {
    const auto text = [&](const char* key) { return map.value(QLatin1String(key)).toString(); };
    SnapshotInfo info;
    info.id = text("id");
    info.parent = text("parent");
    info.domain = map.value(QStringLiteral("domain")).value<QDBusObjectPath>().path();
    info.domainName = text("domain-name");
    info.kind = text("kind");
    info.createdAt = map.value(QStringLiteral("created-at")).toLongLong();
    info.reason = text("reason");
    info.label = text("label");
    info.isPinned = map.value(QStringLiteral("pinned")).toBool();
    info.suspect = text("suspect");
    info.templateName = text("template");
    info.templateVersion = text("template-version");
    info.size = text("size");
    info.sizeOnDisk = map.value(QStringLiteral("size-on-disk")).toULongLong();
    return info;
}

DeletedInfo deletedInfoFrom(const QVariantMap& map) {
    DeletedInfo info;
    info.id = map.value(QStringLiteral("id")).toString();
    info.name = map.value(QStringLiteral("name")).toString();
    info.owner = map.value(QStringLiteral("owner")).toUInt();
    info.deletedAt = map.value(QStringLiteral("deleted-at")).toLongLong();
    info.goesAt = map.value(QStringLiteral("goes-at")).toLongLong();
    info.sizeOnDisk = map.value(QStringLiteral("size-on-disk")).toULongLong();
    return info;
}

GuestStatus guestStatusFrom(const QVariantMap& map) {
    const auto number = [&](const char* key) { return std::uint64_t{map.value(QLatin1String(key)).toULongLong()}; };
    return {number("uptime-ms"),    number("memory-total"),     number("memory-available"), number("processes"),
            number("system-total"), number("system-available"), number("home-total"),       number("home-available")};
}

TemplateInfo templateInfoFrom(const QVariantMap& map) {
    const auto text = [&](const char* key) { return map.value(QLatin1String(key)).toString(); };
    TemplateInfo info;
    info.name = text("name");
    info.description = text("description");
    info.built = map.value(QStringLiteral("built")).toBool();
    info.stale = map.value(QStringLiteral("stale")).toBool();
    info.version = text("version");
    info.sizeOnDisk = map.value(QStringLiteral("size-on-disk")).toULongLong();
    info.builtAt = secondsOf(map, QStringLiteral("built-at"));
    info.checkedAt = secondsOf(map, QStringLiteral("checked-at"));
    info.sizes = sizesFrom(map.value(QStringLiteral("sizes")));
    info.defaultSize = text("default-size");
    info.packages = map.value(QStringLiteral("packages")).toStringList();
    info.artefacts = textsFrom(map.value(QStringLiteral("artefacts")));
    info.definitionHash = text("definition-hash");
    info.file = text("file");
    if (const auto images = argumentOf(map.value(QStringLiteral("warm-images")), "aa{sv}")) {
        for (const QVariantMap& image : qdbus_cast<VariantMapList>(*images)) {
            info.warmImages.append(
                {image.value(QStringLiteral("size")).toString(), image.value(QStringLiteral("acceleration")).toString(),
                 image.value(QStringLiteral("transport")).toString(),
                 image.value(QStringLiteral("size-on-disk")).toULongLong(), secondsOf(image, QStringLiteral("made-at")),
                 image.value(QStringLiteral("label")).toString(), secondsOf(image, QStringLiteral("last-used-at"))});
        }
    }
    return info;
}

Outcome<QList<Finding>> findingsFrom(const QVariantMap& jobResult) {
    const auto argument = argumentOf(jobResult.value(QStringLiteral("findings")), "aa{sv}");
    if (!argument) {
        return failed(code::kVersionMismatch, "this bulkheadd answers the examination in another form");
    }
    QList<Finding> findings;
    for (const QVariantMap& map : qdbus_cast<VariantMapList>(*argument)) {
        findings.append({map.value(QStringLiteral("check")).toString(), map.value(QStringLiteral("status")).toString(),
                         map.value(QStringLiteral("text")).toString(), map.value(QStringLiteral("fix")).toString()});
    }
    return findings;
}

} // namespace bulkhead::client
