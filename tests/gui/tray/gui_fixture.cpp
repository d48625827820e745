// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include <QLabel>
#include <QLineEdit>

namespace bulkhead::tests {

QDBusArgument& operator<<(QDBusArgument& argument, const SizeOnBus& size) {
    argument.beginStructure();
    argument << size.memory << size.vcpus;
    argument.endStructure();
    return argument;
}

const QDBusArgument& operator>>(const QDBusArgument& argument, SizeOnBus& size) {
    argument.beginStructure();
    argument >> size.memory >> size.vcpus;
    argument.endStructure();
    return argument;
}

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
