// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"
#include "client/info.hpp"

#include <QString>

#include <cstdint>

/// How things are said to people, the same in window, tray and tests.
namespace bulkhead::gui {

/// Foreign text (a name, a reason, a title) made safe to show and to read aloud: escaped as for a terminal, cut at
/// `longest` characters. It is meant for plain text; nothing of ours shows it as rich text.
QString shown(const QString& foreign, qsizetype longest = 400);
QString shown(const std::string& foreign, qsizetype longest = 400);

/// "Running", "Stopped" …; a word that is not known is shown as it came.
QString stateInWords(const QString& state);
/// "app domain", "disposable", "standalone domain".
QString kindInWords(const QString& kind);
/// "28 Nov 2026 15:04", as the desktop writes it.
QString timeInWords(std::int64_t secondsSinceEpoch);
/// "Disks and memory", "Disks only".
QString snapshotKindInWords(const client::SnapshotInfo& snapshot);
/// Why it was taken: the product's own words in plain ones, a user's as they are.
QString reasonInWords(const QString& reason);
/// What a person can do about it; empty when the message says all there is.
QString adviceFor(const client::Failure& failure);
/// The message with a capital and a dot, as it stands in a banner.
QString sentence(const client::Failure& failure);
/// Foreign text as one word of a shell command that a person may copy.
QString shellWord(const QString& foreign);
/// "small: 1.0 GiB memory, 2 processors".
QString sizeInWords(const QString& name, const client::TemplateSize& size);
/// "1.4 GiB".
QString bytesInWords(std::uint64_t bytes);

} // namespace bulkhead::gui
