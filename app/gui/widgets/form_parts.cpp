// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/form_parts.hpp"

#include <QVBoxLayout>

namespace bulkhead::gui {

QLabel* caption(const QString& text, QWidget* field) {
    auto* label = new QLabel(text);
    label->setBuddy(field);
    label->setMinimumWidth(label->sizeHint().width() + 4); // the underlined letter is not counted in
    return label;
}

QLayout* withHint(QWidget* field, QWidget* hint) {
    auto* column = new QVBoxLayout;
    column->setSpacing(4);
    column->addWidget(field);
    column->addWidget(hint);
    return column;
}

} // namespace bulkhead::gui
