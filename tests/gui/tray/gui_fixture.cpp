// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include <QLabel>
#include <QLineEdit>

namespace bulkhead::tests {

bool GuiFixture::says(const QString& text) {
    for (QWidget* widget : QApplication::allWidgets()) {
        if (!widget->isVisible()) {
            continue;
        }
        if (const auto* label = qobject_cast<QLabel*>(widget); label != nullptr && label->text().contains(text)) {
            return true;
        }
        if (const auto* line = qobject_cast<QLineEdit*>(widget); line != nullptr && line->text().contains(text)) {
            return true;
        }
    }
    return false;
}

} // namespace bulkhead::tests
