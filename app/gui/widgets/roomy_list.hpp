// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QStringList>

class QTreeWidget;

namespace bulkhead::gui {

/// Makes a flat list with columns of it, with rows that have room to read and to hit. The column `stretched` takes the
/// width that is left; the last one stands at the right, for numbers.
void makeRoomyList(QTreeWidget* list, const QStringList& headings, int stretched);

} // namespace bulkhead::gui
