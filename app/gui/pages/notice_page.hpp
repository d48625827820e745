// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

#include <QWidget>

class QPushButton;

namespace bulkhead::gui {

class CommandLine;

/// A page that has only something to say, and at most one thing to do about it.
class NoticePage : public QWidget {
    Q_OBJECT

public:
    explicit NoticePage(QWidget* parent = nullptr);
    /// Empty `command` or `button`: there is none.
    void show(const QString& title, const QString& text, const QString& command = {}, const QString& button = {});
    [[nodiscard]] QPushButton* button() const { return m_button; }

Q_SIGNALS:
    void buttonClicked();

private:
    TextLabel* m_title;
    TextLabel* m_text;
    CommandLine* m_command;
    QPushButton* m_button;
};

} // namespace bulkhead::gui
