// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"

#include <QList>
#include <QString>

#include <cstdint>
#include <string>

/// What people say and read of snapshots. Pure.
namespace bulkhead::client {

/// The digits by which people call a snapshot: the first eight.
QString shortId(const QString& id);

/// May `text` be meant for an id: nothing but hexadecimal digits and dashes, at least four digits.
bool looksLikeSnapshotId(const QString& text);

/// The one that is labelled so, or whose id begins so (at least four digits of it). InvalidArgument for what is neither
/// a label nor may be an id; NotFound; InvalidArgument that names the candidates when there are several.
Outcome<SnapshotInfo> findSnapshot(const QList<SnapshotInfo>& snapshots, const QString& text);

/// "5 minutes ago", "2 days ago"; "just now" also for what a clock that was put back makes the future. In English.
std::string ageText(std::int64_t then, std::int64_t now);

} // namespace bulkhead::client
