// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/app_grid.hpp"

#include "gui/widgets/style.hpp"
#include "gui/wording.hpp"
#include "widgets/app_picture.hpp"

#include <QEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTextOption>

namespace bulkhead::gui {
namespace {

constexpr int kIdRole = Qt::UserRole + 1;
constexpr int kIconSide = 48;
constexpr int kCellWidth = 128;
constexpr int kCellHeight = 120;

QIcon letterIcon(const QString& name, const QPalette& palette, qreal ratio) {
    QPixmap pixmap(QSize(kIconSide, kIconSide) * ratio);
    pixmap.setDevicePixelRatio(ratio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    QColor fill = palette.color(QPalette::Highlight);
    fill.setAlphaF(0.16F);
    painter.setBrush(fill);
    painter.setPen(Qt::NoPen);
    painter.drawRoundedRect(QRectF(0, 0, kIconSide, kIconSide), 12, 12);
    QFont font = painter.font();
    font.setPixelSize(22);
    font.setWeight(QFont::DemiBold);
    painter.setFont(font);
    painter.setPen(palette.color(QPalette::WindowText));
    painter.drawText(QRect(0, 0, kIconSide, kIconSide), Qt::AlignCenter, name.left(1).toUpper());
    return QIcon(pixmap);
}

/// Icon above, name below over the whole width of the cell, in up to two lines.
class TileDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const override {
        QStyleOptionViewItem option = given;
        initStyleOption(&option, index);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const QRectF tile = QRectF(option.rect).adjusted(2, 2, -6, -6);
        const bool isChosen = (option.state & QStyle::State_Selected) != 0 && option.widget->hasFocus();
        if (isChosen || (option.state & QStyle::State_MouseOver) != 0) {
            QColor fill = option.palette.color(QPalette::Highlight);
            fill.setAlphaF(isChosen ? 0.28F : 0.12F);
            painter->setPen(isChosen ? QPen(option.palette.color(QPalette::Highlight)) : QPen(Qt::NoPen));
            painter->setBrush(fill);
            painter->drawRoundedRect(tile, 8, 8);
        }
        const QRectF icon(tile.center().x() - kIconSide / 2.0, tile.top() + 12, kIconSide, kIconSide);
        option.icon.paint(painter, icon.toRect());
        QTextOption words(Qt::AlignHCenter | Qt::AlignTop);
        words.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
        const QRectF below(tile.left() + 6, icon.bottom() + 8, tile.width() - 12, tile.bottom() - icon.bottom() - 10);
        painter->setPen(option.palette.color(QPalette::WindowText));
        painter->setClipRect(below);
        painter->drawText(
            below, option.fontMetrics.elidedText(option.text, Qt::ElideRight, static_cast<int>(below.width() * 1.8)),
            words);
        painter->restore();
    }
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/, const QModelIndex& /*index*/) const override {
        return {kCellWidth, kCellHeight};
    }
};

} // namespace

AppGrid::AppGrid(QWidget* parent)
    : QListView(parent) {
    setAccessibleName(tr("Apps"));
    setAccessibleDescription(tr("Enter starts the chosen app"));
    setViewMode(QListView::IconMode);
    setMovement(QListView::Static);
    setResizeMode(QListView::Adjust);
    setWordWrap(true);
    setTextElideMode(Qt::ElideRight);
    setIconSize(QSize(kIconSide, kIconSide));
    setGridSize(QSize(kCellWidth, kCellHeight));
    setItemDelegate(new TileDelegate(this));
    setMouseTracking(true);
    setUniformItemSizes(true);
    setFrameShape(QFrame::NoFrame);
    setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    viewport()->setAutoFillBackground(false);
    m_filter.setSourceModel(&m_model);
    m_filter.setFilterCaseSensitivity(Qt::CaseInsensitive);
    setModel(&m_filter);
    // Single click or Enter, as in every launcher; not `activated`, which some styles send on a double click only.
    connect(this, &QListView::clicked, this, &AppGrid::launch);
    connect(this, &QListView::activated, this, [this](const QModelIndex& index) {
        if (!style()->styleHint(QStyle::SH_ItemView_ActivateItemOnSingleClick, nullptr, this)) {
            launch(index);
        }
    });
}

void AppGrid::setApps(const QList<AppEntry>& apps) {
    if (apps == m_apps) {
        return;
    }
    m_apps = apps;
    m_model.clear();
    for (const AppEntry& app : apps) {
        const QString name = shown(app.name, 60);
        auto* item = new QStandardItem(name);
        item->setData(app.id, kIdRole);
        item->setToolTip(QStringLiteral("%1 (%2)").arg(name, shown(app.id, 80)));
        item->setAccessibleText(name);
        m_model.appendRow(item);
    }
    drawIcons();
}

void AppGrid::drawIcons() {
    for (int number = 0; number < m_model.rowCount(); ++number) {
        QStandardItem* item = m_model.item(number);
        const AppEntry& app = m_apps.at(number);
        const QIcon icon = widgets::hostIconFor({app.id, app.id.section(QLatin1Char('.'), -1)}, app.categories);
        item->setIcon(icon.isNull() ? letterIcon(item->text(), palette(), devicePixelRatioF()) : icon);
    }
}

void AppGrid::setFilter(const QString& text) {
    m_filter.setFilterFixedString(text);
}

void AppGrid::launchFirst() {
    if (m_filter.rowCount() > 0) {
        launch(m_filter.index(0, 0));
    }
}

void AppGrid::launch(const QModelIndex& index) {
    Q_EMIT launchRequested(index.data(kIdRole).toString());
}

void AppGrid::changeEvent(QEvent* event) {
    QListView::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) {
        drawIcons();
    }
}

} // namespace bulkhead::gui
