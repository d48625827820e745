// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

#include <QFrame>

class QToolButton;

namespace bulkhead::gui {

/// Says in place what went wrong and what to do, or what has come of something; never a dialog. Hidden while it has no
/// text.
class Banner : public QFrame {
    Q_OBJECT

public:
    enum class Kind { Warning, Information };
    explicit Banner(QWidget* parent = nullptr);

    /// `text` is for people and safe to show; empty hides it.
    void setText(const QString& text, bool canDismiss = true, Kind kind = Kind::Warning);
    [[nodiscard]] QString text() const { return m_text->text(); }

Q_SIGNALS:
    void dismissed();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QLabel* m_icon;
    TextLabel* m_text;
    QToolButton* m_dismiss;
};

} // namespace bulkhead::gui
