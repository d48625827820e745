// SPDX-License-Identifier: Apache-2.0
#include "viewer/state_overlay.hpp"

#include <QAccessible>
#include <QFrame>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

namespace bulkhead::viewer {
namespace {

constexpr int kCardWidth = 420;

QLabel* makeLabel(QWidget* parent, double size, QFont::Weight weight) {
    auto* label = new QLabel(parent);
    QFont font = label->font();
    font.setWeight(weight);
    if (font.pointSizeF() > 0) {
        font.setPointSizeF(font.pointSizeF() * size);
    }
    label->setFont(font);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setAlignment(Qt::AlignHCenter | Qt::AlignVCenter);
    return label;
}

} // namespace

StateOverlay::StateOverlay(QWidget* parent)
    : QWidget(parent) {
    auto* card = new QFrame(this);
    card->setAutoFillBackground(true);
    card->setFrameShape(QFrame::StyledPanel);
    card->setMaximumWidth(kCardWidth);
    m_title = makeLabel(card, 1.35, QFont::DemiBold);
    m_detail = makeLabel(card, 1.0, QFont::Normal);
    m_action = new QPushButton(card);
    m_action->setAutoDefault(true);
    m_action->setMinimumHeight(m_action->sizeHint().height() + 6);
    auto* inner = new QVBoxLayout(card);
    inner->setContentsMargins(28, 22, 28, 22);
    inner->setSpacing(10);
    inner->addWidget(m_title);
    inner->addWidget(m_detail);
    inner->addSpacing(4);
    inner->addWidget(m_action, 0, Qt::AlignHCenter);

    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(12, 12, 12, 12);
    outer->addStretch(1);
    auto* row = new QHBoxLayout;
    row->addStretch(1);
    row->addWidget(card, 8);
    row->addStretch(1);
    outer->addLayout(row);
    outer->addStretch(1);
    // A small window keeps its size; the card is cut, and the frame's strip says the same.
    outer->setSizeConstraint(QLayout::SetNoConstraint);

    connect(m_action, &QPushButton::clicked, this, &StateOverlay::actionChosen);
    setFocusPolicy(Qt::StrongFocus);
    hide();
}

void StateOverlay::setText(const OverlayText& text) {
    if (text == m_text) {
        return;
    }
    m_text = text;
    m_title->setText(text.title);
    m_detail->setText(text.detail);
    m_detail->setVisible(!text.detail.isEmpty());
    m_action->setText(text.action);
    m_action->setVisible(!text.action.isEmpty());
    setAccessibleName(text.title);
    setAccessibleDescription(text.detail);
    const bool wanted = !text.title.isEmpty();
    setVisible(wanted);
    if (wanted) {
        // Now, not with the next turn of the event loop: the first picture of the card is whole.
        m_title->parentWidget()->layout()->activate();
        layout()->invalidate();
        layout()->activate();
        raise();
        QAccessibleEvent changed(this, QAccessible::NameChanged);
        QAccessible::updateAccessibility(&changed);
    }
}

void StateOverlay::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    painter.fillRect(rect(), QColor(18, 20, 23, 178));
}

} // namespace bulkhead::viewer
