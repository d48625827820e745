// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/app_grid.hpp"

#include "gui/widgets/style.hpp"
#include "gui/wording.hpp"

#include <QEvent>
#include <QPainter>

namespace bulkhead::gui {
namespace {

constexpr int kIdRole = Qt::UserRole + 1;
constexpr int kIconSide = 48;

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
    setGridSize(QSize(124, 108));
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
        item->setIcon(letterIcon(item->text(), palette(), devicePixelRatioF()));
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
