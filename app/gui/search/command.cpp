// SPDX-License-Identifier: Apache-2.0
#include "gui/search/command.hpp"

#include <QStringList>

#include <algorithm>

namespace bulkhead::gui {
namespace {

/// 0: the title begins so; 1: some word of the title does; 2: found somewhere; 3: not found.
int rankOf(const Command& command, const QString& text, const QStringList& words) {
    const QString all = command.title + QLatin1Char(' ') + command.hint;
    const bool isFound = std::all_of(words.begin(), words.end(),
                                     [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); });
    if (!isFound) {
        return 3;
    }
    if (command.title.startsWith(text, Qt::CaseInsensitive)) {
        return 0;
    }
    return command.title.contains(QLatin1Char(' ') + text, Qt::CaseInsensitive) ? 1 : 2;
}

} // namespace

QList<Command> matching(const QList<Command>& commands, const QString& text, qsizetype most) {
    const QString wanted = text.simplified();
    const QStringList words = wanted.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    QList<Command> found;
    for (int rank = 0; rank < 3; ++rank) {
        for (const Command& command : commands) {
            if (found.size() >= most) {
                return found;
            }
            if (rankOf(command, wanted, words) == rank) {
                found.append(command);
            }
        }
    }
    return found;
}

} // namespace bulkhead::gui
