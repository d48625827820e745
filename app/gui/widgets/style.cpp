// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/style.hpp"

#include <QAbstractButton>
#include <QApplication>
#include <QEvent>
#include <QPainter>

#include <algorithm>

namespace bulkhead::gui {
namespace {

QColor blend(const QColor& a, const QColor& b, double shareOfA) {
    const auto mix = [&](int x, int y) { return static_cast<int>(x * shareOfA + y * (1 - shareOfA)); };
    return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

/// Painted, since a style's own lines ignore the palette or are two pixels wide.
class Line : public QWidget {
public:
    Line(Qt::Orientation orientation, QWidget* parent)
        : QWidget(parent) {
        if (orientation == Qt::Horizontal) {
            setFixedHeight(1);
        } else {
            setFixedWidth(1);
        }
    }

protected:
    void paintEvent(QPaintEvent* /*event*/) override {
        QPainter painter(this);
        painter.fillRect(rect(), lineColour(palette()));
    }
};

} // namespace

QColor quietColour(const QPalette& palette) {
    return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.68);
}

QColor problemColour(const QPalette& palette) {
    return palette.color(QPalette::Window).lightness() < 128 ? QColor(0xff, 0x9b, 0x93) : QColor(0xb3, 0x1d, 0x1d);
}

QColor lineColour(const QPalette& palette) {
    return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.16);
}

TextLabel::TextLabel(Look look, const QString& text, QWidget* parent)
    : QLabel(text, parent)
    , m_look(look) {
    setTextFormat(Qt::PlainText);
    setWordWrap(true);
    QFont wanted = font();
    if (look == Look::Heading) {
        wanted.setPointSizeF(wanted.pointSizeF() * 1.15);
        wanted.setWeight(QFont::DemiBold);
    } else if (look == Look::Title) {
        wanted.setPointSizeF(wanted.pointSizeF() * 1.6);
        wanted.setWeight(QFont::DemiBold);
    }
    setFont(wanted);
    applyColour();
}

void TextLabel::changeEvent(QEvent* event) {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::ParentChange || event->type() == QEvent::ApplicationPaletteChange) {
        applyColour();
    }
}

void TextLabel::applyColour() {
    if (m_look == Look::Quiet || m_look == Look::Problem) {
        const QPalette of = QApplication::palette();
        QPalette own;
        own.setColor(QPalette::WindowText, m_look == Look::Quiet ? quietColour(of) : problemColour(of));
        setPalette(own);
    }
}

void makeRoomy(QAbstractButton* button) {
    button->setMinimumHeight(kControlHeight);
    button->setMinimumWidth(std::max(96, button->sizeHint().width() + 2 * kGap));
}

QWidget* makeLine(Qt::Orientation orientation, QWidget* parent) {
    return new Line(orientation, parent);
}

} // namespace bulkhead::gui
