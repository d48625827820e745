// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QWidget>

class QLineEdit;

namespace bulkhead::gui {

/// A command for a terminal, or a path, to read and to copy.
class CommandLine : public QWidget {
    Q_OBJECT

public:
    /// `what` it is, for those who cannot see it: "Command that builds the template".
    CommandLine(const QString& what, const QString& command, QWidget* parent = nullptr);
    void setCommand(const QString& command);

private:
    QLineEdit* m_line;
};

} // namespace bulkhead::gui
