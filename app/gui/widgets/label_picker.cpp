// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/label_picker.hpp"

#include "widgets/label_paint.hpp"

#include <QEvent>

namespace bulkhead::gui {

LabelPicker::LabelPicker(QWidget* parent)
    : QComboBox(parent) {
    setAccessibleName(tr("Label"));
    for (const client::Label& label : client::labels()) {
        const QString name = QString::fromLatin1(label.name.data(), static_cast<qsizetype>(label.name.size()));
        addItem(name, name);
        setItemData(count() - 1, tr("Label %1").arg(name), Qt::AccessibleTextRole);
    }
    drawChips();
}

void LabelPicker::choose(const QString& label) {
    setCurrentIndex(std::max(0, findData(label)));
}

void LabelPicker::drawChips() {
    const client::Theme theme = widgets::themeOf(palette());
    for (int number = 0; number < count(); ++number) {
        const client::Label& label = client::labelNamed(itemData(number).toString().toStdString());
        const QPixmap chip = widgets::chipPixmap(label, theme, font(), devicePixelRatioF());
        setIconSize(chip.deviceIndependentSize().toSize());
        setItemIcon(number, QIcon(chip));
    }
}

void LabelPicker::changeEvent(QEvent* event) {
    QComboBox::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        drawChips();
    }
}

} // namespace bulkhead::gui
