// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/labels.hpp"

#include <QIcon>
#include <QPixmap>
#include <QStringList>

/// Pictures for the apps of guests. None is a guest's: a guest only says a name, by which the host's own icon theme is
/// asked, so that the host decodes nothing that a guest has made.
namespace bulkhead::widgets {

/// Whether the theme may be asked for that: [A-Za-z0-9._-], 1 to 128, beginning with a letter or a digit. No path.
bool isIconName(const QString& name);

/// The host's icon for an app that is called one of `names` (the guest's words, the best one first), else one for
/// what kind of app it is by the categories of the Desktop Menu Specification. Null: the theme has none.
QIcon hostIconFor(const QStringList& names, const QStringList& categories);

/// That icon with the label's colour and pattern over a corner: nobody takes it for a program of the host.
QPixmap markedPixmap(const QIcon& icon, const client::Label& label, client::Theme theme, int side,
                     qreal devicePixelRatio);

} // namespace bulkhead::widgets
