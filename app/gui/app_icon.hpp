// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QIcon>

namespace bulkhead::gui {

/// The program's icon, painted: the same drawing as org.bulkhead.Tray.svg in resources/icons, without needing a reader
/// of SVG. It is coloured: a monochrome one vanishes on a panel of the same shade.
QIcon appIcon();

} // namespace bulkhead::gui
