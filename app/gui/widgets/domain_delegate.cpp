// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/domain_delegate.hpp"

#include "gui/models/domain_model.hpp"
#include "gui/widgets/style.hpp"
#include "widgets/label_paint.hpp"

#include <QApplication>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>

namespace bulkhead::gui {
namespace {

constexpr int kPadding = 10;
constexpr int kBarHeight = 3;
constexpr double kNearlyFull = 0.9;

QFont smallFont(QFont font) {
    font.setPointSizeF(font.pointSizeF() * 0.88);
    return font;
}

QFont nameFont(QFont font) {
    font.setWeight(QFont::DemiBold);
    return font;
}

int headingHeight(const QStyleOptionViewItem& option) {
    return QFontMetrics(smallFont(option.font)).height() + 2 * kPadding;
}

struct Colours {
    QColor text;
    QColor quiet;
    QColor bar;
    QColor track;
};

Colours coloursFor(const QStyleOptionViewItem& option, bool isSelected) {
    const QPalette& palette = option.palette;
    if (!isSelected) {
        return {palette.color(QPalette::Text), quietColour(palette), palette.color(QPalette::Highlight),
                lineColour(palette)};
    }
    const QColor text = palette.color(QPalette::HighlightedText);
    QColor track = text;
    track.setAlphaF(0.3F);
    return {text, text, text, track};
}

/// Caption and bar; a bar that is nearly full says so in words too.
void paintBar(QPainter& painter, const QRect& where, const QString& caption, double share, const Colours& colours) {
    const QFontMetrics metrics(painter.font());
    const QString words =
        share >= kNearlyFull ? DomainDelegate::tr("%1 %2 %").arg(caption).arg(qRound(share * 100)) : caption;
    painter.setPen(share >= kNearlyFull ? colours.text : colours.quiet);
    painter.drawText(where, Qt::AlignLeft | Qt::AlignVCenter, words);
    const int left = where.left() + metrics.horizontalAdvance(words) + 6;
    QRectF track(left, where.center().y(), where.right() - left, kBarHeight);
    if (track.width() < 8) {
        return;
    }
    painter.setPen(Qt::NoPen);
    painter.setBrush(colours.track);
    painter.drawRoundedRect(track, 1.5, 1.5);
    track.setWidth(std::max<qreal>(kBarHeight, track.width() * std::clamp(share, 0.0, 1.0)));
    painter.setBrush(colours.bar);
    painter.drawRoundedRect(track, 1.5, 1.5);
}

/// A crescent: asleep.
void paintCrescent(QPainter& painter, const QRectF& where, const QColor& colour) {
    QPainterPath disc;
    disc.addEllipse(where);
    QPainterPath bite;
    bite.addEllipse(where.translated(where.width() * 0.38, -where.height() * 0.16));
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPath(disc.subtracted(bite));
}

/// Two bars: it stands still.
void paintPauseBars(QPainter& painter, const QRectF& where, const QColor& colour) {
    const double width = where.width() * 0.3;
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawRoundedRect(QRectF(where.left() + where.width() * 0.08, where.top(), width, where.height()), 1, 1);
    painter.drawRoundedRect(QRectF(where.right() - where.width() * 0.08 - width, where.top(), width, where.height()), 1,
                            1);
}

} // namespace

QSize DomainDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const int name = QFontMetrics(nameFont(option.font)).height();
    const int line = QFontMetrics(smallFont(option.font)).height();
    const int heading = index.data(DomainModel::BeginsDisposablesRole).toBool() ? headingHeight(option) : 0;
    // Always room for the bars: a list that shifts when a domain starts makes people miss what they click.
    return {200, heading + 2 * kPadding + name + 2 * line + 6};
}

void DomainDelegate::paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    QRect row = option.rect;
    if (index.data(DomainModel::BeginsDisposablesRole).toBool()) {
        const QRect heading(row.left() + kPadding + 4, row.top(), row.width() - 2 * kPadding, headingHeight(option));
        painter->setFont(smallFont(option.font));
        painter->setPen(quietColour(option.palette));
        painter->drawText(heading, Qt::AlignLeft | Qt::AlignBottom, tr("Disposables"));
        row.setTop(row.top() + headingHeight(option));
    }
    const bool isSelected = (option.state & QStyle::State_Selected) != 0;
    const QRectF body = QRectF(row).adjusted(6, 2, -6, -2);
    if (isSelected || (option.state & QStyle::State_MouseOver) != 0) {
        QColor fill = option.palette.color(QPalette::Highlight);
        if (!isSelected) {
            fill.setAlphaF(0.12F);
        }
        painter->setPen(Qt::NoPen);
        painter->setBrush(fill);
        painter->drawRoundedRect(body, 6, 6);
    }
    const Colours colours = coloursFor(option, isSelected);
    const client::Label& label = client::labelNamed(index.data(DomainModel::LabelRole).toString().toStdString());
    const QSize chip = widgets::chipSize(label, smallFont(option.font));
    const QFontMetrics nameMetrics(nameFont(option.font));
    const double memory = index.data(DomainModel::MemoryRole).toDouble();
    const double disk = index.data(DomainModel::DiskRole).toDouble();
    // What has no bars stands in the middle of its row.
    const int barLine = QFontMetrics(smallFont(option.font)).height() + 4;
    const int top = row.top() + kPadding + (memory < 0 && disk < 0 ? barLine / 2 : 0);
    const int left = row.left() + kPadding + 6;
    widgets::paintChip(*painter,
                       QRectF(left, top + (nameMetrics.height() - chip.height()) / 2.0, chip.width(), chip.height()),
                       label, widgets::themeOf(option.palette), smallFont(option.font));

    QRect text(left + chip.width() + 10, top, 0, nameMetrics.height());
    text.setRight(row.right() - kPadding - 6);
    painter->setFont(nameFont(option.font));
    painter->setPen(colours.text);
    painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter,
                      nameMetrics.elidedText(option.text, Qt::ElideRight, text.width()));

    painter->setFont(smallFont(option.font));
    const QFontMetrics small(painter->font());
    text.translate(0, nameMetrics.height() + 2);
    text.setHeight(small.height());
    const bool isFailed = index.data(DomainModel::IsFailedRole).toBool();
    QString state = index.data(DomainModel::StateTextRole).toString();
    int indent = 0;
    if (isFailed) {
        const QIcon icon = QApplication::style()->standardIcon(QStyle::SP_MessageBoxWarning);
        icon.paint(painter, QRect(text.left(), text.top(), small.height(), small.height()));
        indent = small.height() + 5;
        painter->setPen(colours.text);
    } else {
        const double side = small.ascent() * 0.86;
        const QRectF mark(text.left() + 1, text.center().y() - side / 2 + 0.5, side, side);
        if (index.data(DomainModel::IsSuspendedRole).toBool()) {
            paintCrescent(*painter, mark, colours.quiet);
            indent = small.height() + 1;
        } else if (index.data(DomainModel::IsPausedRole).toBool()) {
            paintPauseBars(*painter, mark, colours.quiet);
            indent = small.height() + 1;
        }
        painter->setPen(colours.quiet);
    }
    painter->drawText(text.adjusted(indent, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                      small.elidedText(state, Qt::ElideRight, text.width() - indent));

    text.translate(0, small.height() + 4);
    const int half = (text.width() - 12) / 2;
    if (memory >= 0) {
        paintBar(*painter, QRect(text.left(), text.top(), half, text.height()), tr("Memory"), memory, colours);
    }
    if (disk >= 0) {
        paintBar(*painter, QRect(text.left() + half + 12, text.top(), half, text.height()), tr("Disk"), disk, colours);
    }
    if ((option.state & QStyle::State_HasFocus) != 0) {
        QPen pen(isSelected ? option.palette.color(QPalette::HighlightedText)
                            : option.palette.color(QPalette::Highlight));
        pen.setStyle(Qt::DotLine);
        painter->setPen(pen);
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(body.adjusted(2, 2, -2, -2), 4, 4);
    }
    painter->restore();
}

} // namespace bulkhead::gui
