// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QList>
#include <QString>

#include <functional>

namespace bulkhead::gui {

/// Something that the search field can do.
struct Command {
    QString title; ///< "Stop work"; safe to show
    QString hint;  ///< what kind of thing it is: "Domain", "App in work"
    std::function<void()> run;
};

/// Those of `commands` that have every word of `text` in their title or hint; titles that begin with the text first,
/// otherwise in their order. At most `most`. Nothing for an empty text but the first `most`.
QList<Command> matching(const QList<Command>& commands, const QString& text, qsizetype most);

} // namespace bulkhead::gui
