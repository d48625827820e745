// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>
#include <QString>

namespace bulkhead::gui {

/// Asks before something is lost. The button says what it does; Cancel is the default. Deletes itself.
class ConfirmDialog : public QDialog {
    Q_OBJECT

public:
    ConfirmDialog(const QString& title, const QString& effect, const QString& verb, QWidget* parent);
};

} // namespace bulkhead::gui
