// SPDX-License-Identifier: Apache-2.0
#include "client/snapshots.hpp"

#include "client/terminal_text.hpp"

#include <QRegularExpression>

#include <array>
#include <utility>

namespace bulkhead::client {
namespace {

constexpr qsizetype kShort = 8;
constexpr qsizetype kFewestDigits = 4;
constexpr qsizetype kMostNamed = 5;

QString digitsOf(const QString& id) {
    return QString(id).remove(QLatin1Char('-')).toLower();
}

/// "12ab34cd of work", safe.
std::string nameOf(const SnapshotInfo& snapshot, qsizetype digits) {
    return terminalSafe(digitsOf(snapshot.id).left(digits)) + " of " + terminalSafe(snapshot.domainName);
}

/// As many digits as tell these apart from each other, at least kShort.
qsizetype digitsThatTellApart(const QList<SnapshotInfo>& snapshots) {
    qsizetype needed = kShort;
    for (qsizetype i = 0; i < snapshots.size(); ++i) {
        for (qsizetype j = i + 1; j < snapshots.size(); ++j) {
            const QString one = digitsOf(snapshots[i].id);
            const QString other = digitsOf(snapshots[j].id);
            qsizetype same = 0;
            while (same < one.size() && same < other.size() && one[same] == other[same]) {
                ++same;
            }
            needed = std::max(needed, same + 1);
        }
    }
    return needed;
}

} // namespace

QString shortId(const QString& id) {
    return digitsOf(id).left(kShort);
}

bool looksLikeSnapshotId(const QString& text) {
    static const QRegularExpression kForm(QStringLiteral("\\A[0-9a-fA-F-]+\\z"));
    return kForm.match(text).hasMatch() && digitsOf(text).size() >= kFewestDigits;
}

Outcome<SnapshotInfo> findSnapshot(const QList<SnapshotInfo>& snapshots, const QString& text) {
    const bool mayBeId = looksLikeSnapshotId(text);
    const QString wanted = digitsOf(text);
    QList<SnapshotInfo> found;
    for (const auto& snapshot : snapshots) {
        const bool hasLabel = !text.isEmpty() && snapshot.label == text;
        if (hasLabel || (mayBeId && digitsOf(snapshot.id).startsWith(wanted))) {
            found.append(snapshot);
        }
    }
    if (found.isEmpty()) {
        return mayBeId ? failed(code::kNotFound, "there is no snapshot " + terminalSafe(text))
                       : failed(code::kInvalidArgument,
                                "'" + terminalSafe(text) +
                                    "' is not the id of a snapshot, nor at least 4 digits of its beginning, nor the "
                                    "label of one");
    }
    if (found.size() == 1) {
        return found.front();
    }
    const qsizetype digits = digitsThatTellApart(found);
    std::string names;
    for (qsizetype i = 0; i < std::min(found.size(), kMostNamed); ++i) {
        names += (names.empty() ? "" : ", ") + nameOf(found[i], digits);
    }
    if (found.size() > kMostNamed) {
        names += " and " + std::to_string(found.size() - kMostNamed) + " more";
    }
    return failed(code::kInvalidArgument,
                  "several snapshots are called " + terminalSafe(text) + ": " + names + "; give these digits");
}

std::string ageText(std::int64_t then, std::int64_t now) {
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kHour = 60 * kMinute;
    constexpr std::int64_t kDay = 24 * kHour;
    static constexpr std::array<std::pair<std::int64_t, const char*>, 5> kUnits{
        {{365 * kDay, "year"}, {30 * kDay, "month"}, {kDay, "day"}, {kHour, "hour"}, {kMinute, "minute"}}};
    const std::int64_t age = now - then;
    for (const auto& [seconds, unit] : kUnits) {
        if (age >= seconds) {
            const std::int64_t count = age / seconds;
            return std::to_string(count) + " " + unit + (count == 1 ? " ago" : "s ago");
        }
    }
    return "just now";
}

} // namespace bulkhead::client
