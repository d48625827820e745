// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QColor>
#include <QLabel>
#include <QPalette>
#include <QString>

class QAbstractButton;
class QWidget;

/// The few things that make all pages look alike. Colours come from the palette, so that light and dark follow the
/// desktop.
namespace bulkhead::gui {

constexpr int kGap = 8;      ///< between things that belong together, logical pixels
constexpr int kSection = 20; ///< between those that do not
constexpr int kMargin = 24;  ///< around a page
constexpr int kControlHeight = 32;

/// Text that steps back: between the text and the background.
QColor quietColour(const QPalette& palette);
/// Text that says what is wrong.
QColor problemColour(const QPalette& palette);
/// A hairline.
QColor lineColour(const QPalette& palette);

/// A label of plain text that wraps; what it shows is never taken for rich text.
class TextLabel : public QLabel {
    Q_OBJECT

public:
    enum class Look { Body, Quiet, Heading, Title, Problem };
    explicit TextLabel(Look look, const QString& text = {}, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    void applyColour();
    Look m_look;
};

/// Gives a button the room that its text wants, and the height of the fields beside it.
void makeRoomy(QAbstractButton* button);

/// A line that separates.
QWidget* makeLine(Qt::Orientation orientation, QWidget* parent = nullptr);

} // namespace bulkhead::gui
