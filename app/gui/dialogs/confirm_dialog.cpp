// SPDX-License-Identifier: Apache-2.0
#include "gui/dialogs/confirm_dialog.hpp"

#include "gui/widgets/style.hpp"

#include <QDialogButtonBox>
#include <QPushButton>
#include <QVBoxLayout>

namespace bulkhead::gui {

ConfirmDialog::ConfirmDialog(const QString& title, const QString& effect, const QString& verb, QWidget* parent)
    : QDialog(parent) {
    setWindowTitle(title);
    setAttribute(Qt::WA_DeleteOnClose);
    setAccessibleDescription(effect);
    auto* buttons = new QDialogButtonBox;
    auto* cancel = buttons->addButton(QDialogButtonBox::Cancel);
    auto* act = buttons->addButton(verb, QDialogButtonBox::DestructiveRole);
    act->setObjectName(QStringLiteral("act"));
    act->setAccessibleName(verb);
    act->setAutoDefault(false);
    makeRoomy(act);
    makeRoomy(cancel);
    cancel->setAccessibleName(cancel->text());
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(act, &QPushButton::clicked, this, &QDialog::accept);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, 16);
    layout->setSpacing(12);
    layout->addWidget(new TextLabel(TextLabel::Look::Heading, title));
    layout->addWidget(new TextLabel(TextLabel::Look::Body, effect));
    layout->addSpacing(kGap);
    layout->addWidget(buttons);
    cancel->setDefault(true); // only once it is in the dialog does that know of it
    cancel->setFocus();
    setMinimumWidth(440);
}

} // namespace bulkhead::gui
