// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QWidget>

class QLabel;
class QPushButton;

namespace bulkhead::viewer {

/// Why a window shows no living picture, in words.
struct OverlayText {
    QString title;  ///< empty: no overlay, the picture lives
    QString detail; ///< foreign text is cleaned before it comes here
    QString action; ///< a button's text; empty: no button
    bool operator==(const OverlayText&) const = default;
};

/// Lies over the picture while that does not live, darkens it and says why, and takes what the user types and clicks.
class StateOverlay : public QWidget {
    Q_OBJECT

public:
    explicit StateOverlay(QWidget* parent);

    /// Shows itself, or hides when the title is empty.
    void setText(const OverlayText& text);
    [[nodiscard]] const OverlayText& text() const { return m_text; }

Q_SIGNALS:
    void actionChosen();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    OverlayText m_text;
    QLabel* m_title = nullptr;
    QLabel* m_detail = nullptr;
    QPushButton* m_action = nullptr;
};

} // namespace bulkhead::viewer
