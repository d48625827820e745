// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <QList>
#include <QMap>
#include <QString>
#include <QStringList>
#include <QVariantMap>

#include <cstdint>
#include <optional>

/// What the daemon says of its things, as values. The readers take the maps of the contract; a key that is missing
/// leaves the member at its default, a key that is not known is passed over (the daemon may be newer).
namespace bulkhead::client {

struct ManagerInfo {
    QString version;
    QStringList features;
    QString acceleration; ///< kvm, emulation or unknown
    QString policy;
};

struct DomainInfo {
    QString path; ///< of its object on the bus; only from Manager::listDomains()
    QString id;
    QString name;
    QString kind; ///< app, disposable or standalone
    QString state;
    QString reason; ///< why, when state is failed
    QString templateName;
    QString size;
    QString label;
    QString egress;
    QString audio; ///< off or out
    QStringList tags;
    std::uint32_t owner = 0;
    std::uint64_t homeSize = 0;   ///< bytes
    QString file;                 ///< its definition
    bool isManaged = false;       ///< the definition is an administrator's
    bool isRestartNeeded = false; ///< something in the definition takes effect at its next start only
    QString nextSize;             ///< the size that it has then; empty: the same
    QString nextAudio;            ///< the same of its sound
    QString head;                 ///< the snapshot that it comes from; empty: none
    bool isSuspended = false;     ///< its next start goes on in the memory of its head
    bool isKept = false;          ///< a disposable that is suspended, not removed, when its program has ended
    bool snapshotOnStop = false;  ///< each stop but a forced one leaves a snapshot of its home
    QString idleSuspend;          ///< after so long without use it is suspended, such as "30m"; "off": never
    std::uint64_t memory = 0;     ///< bytes
    std::uint32_t vcpus = 0;
    // Only while it runs:
    QString acceleration;
    QString transport;
    QString templateVersion;
    bool updateAvailable = false;          ///< its template has a newer version: restart to update
    std::optional<std::int64_t> startedAt; ///< seconds since 1970
    std::uint32_t programs = 0;            ///< programs that run in it through us

    /// Whatever it does now: suspending it is not refused for what it is.
    [[nodiscard]] bool canBeSuspended() const { return isKept || kind != QLatin1String("disposable"); }
    /// It does not run, and its next start goes on where it was.
    [[nodiscard]] bool waitsSuspended() const { return isSuspended && state == QLatin1String("suspended"); }
    bool operator==(const DomainInfo&) const = default;
};

/// What the guest's agent says of itself. Untrusted numbers: good for a bar, never for a decision. All sizes in bytes.
struct GuestStatus {
    std::uint64_t uptimeMs = 0;
    std::uint64_t memoryTotal = 0;
    std::uint64_t memoryAvailable = 0;
    std::uint64_t processes = 0;
    std::uint64_t systemTotal = 0;
    std::uint64_t systemAvailable = 0;
    std::uint64_t homeTotal = 0; ///< 0: it has no home of its own
    std::uint64_t homeAvailable = 0;
};

struct TemplateSize {
    std::uint64_t memory = 0; ///< bytes
    std::uint32_t vcpus = 0;
};

/// A memory image that domains of a template start from.
struct WarmImageInfo {
    QString size;
    QString acceleration;
    QString transport;
    std::uint64_t sizeOnDisk = 0; ///< bytes
    std::optional<std::int64_t> madeAt;
    QString label; ///< of the domains that begin from it; empty: nobody's yet
    std::optional<std::int64_t> lastUsedAt;
};

struct TemplateInfo {
    QString name;
    QString description;
    bool built = false;
    bool stale = false; ///< built, but its definition has changed since
    QString version;
    std::uint64_t sizeOnDisk = 0;
    std::optional<std::int64_t> builtAt;
    std::optional<std::int64_t> checkedAt; ///< when its packages were last known to be the newest
    QMap<QString, TemplateSize> sizes;
    QString defaultSize;
    // Only from DescribeTemplate:
    QStringList packages;
    QMap<QString, QString> artefacts; ///< file to hash
    QString definitionHash;
    QString file;
    QList<WarmImageInfo> warmImages;
};

/// A node of the lineage: what a domain was at one moment.
struct SnapshotInfo {
    QString id;
    QString parent;             ///< the node that its domain came from, which may be gone; empty: none
    QString domain;             ///< path of the domain that it was taken of, which may be gone
    QString domainName;         ///< of that one, then
    QString kind;               ///< full (with memory) or disk
    std::int64_t createdAt = 0; ///< seconds since 1970
    QString reason;
    QString label; ///< the user's name for it, may be empty
    bool isPinned = false;
    QString suspect; ///< why it cannot be trusted; empty: it can
    QString templateName;
    QString templateVersion;
    QString size;
    std::uint64_t sizeOnDisk = 0; ///< bytes that are its own

    [[nodiscard]] bool isFull() const { return kind == QLatin1String("full"); }
    bool operator==(const SnapshotInfo&) const = default;
};

/// A removed domain that can be restored.
struct DeletedInfo {
    QString id;
    QString name;
    std::uint32_t owner = 0;
    std::int64_t deletedAt = 0;   ///< seconds since 1970
    std::int64_t goesAt = 0;      ///< when it is removed for good
    std::uint64_t sizeOnDisk = 0; ///< bytes that removing it frees

    bool operator==(const DeletedInfo&) const = default;
};

struct Finding {
    QString check;
    QString status; ///< ok, warning or problem
    QString text;
    QString fix; ///< empty when ok
};

ManagerInfo managerInfoFrom(const QVariantMap& map);
DomainInfo domainInfoFrom(const QVariantMap& map);
GuestStatus guestStatusFrom(const QVariantMap& map);
TemplateInfo templateInfoFrom(const QVariantMap& map);
SnapshotInfo snapshotInfoFrom(const QVariantMap& map);
DeletedInfo deletedInfoFrom(const QVariantMap& map);
/// The result of a Doctor job. Fails with VersionMismatch when `findings` is not there or has another type.
Outcome<QList<Finding>> findingsFrom(const QVariantMap& jobResult);
/// A nested a{sv}, whichever way QtDBus delivered it; empty when it is something else.
QVariantMap nestedMap(const QVariant& value);

} // namespace bulkhead::client
