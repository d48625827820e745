// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/roomy_list.hpp"

#include "gui/widgets/style.hpp"

#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QTreeWidget>

namespace bulkhead::gui {
namespace {

class RoomyDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        return QStyledItemDelegate::sizeHint(option, index) + QSize(2 * kGap, 0) + QSize(0, kGap + kGap / 2);
    }
};

} // namespace

void makeRoomyList(QTreeWidget* list, const QStringList& headings, int stretched) {
    list->setHeaderLabels(headings);
    list->setItemDelegate(new RoomyDelegate(list));
    list->headerItem()->setTextAlignment(static_cast<int>(headings.size()) - 1, Qt::AlignRight | Qt::AlignVCenter);
    list->setRootIsDecorated(false);
    list->setUniformRowHeights(true);
    list->setAllColumnsShowFocus(true);
    list->setTextElideMode(Qt::ElideRight);
    list->header()->setStretchLastSection(false);
    list->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
    list->header()->setSectionResizeMode(stretched, QHeaderView::Stretch);
    list->header()->setSectionsMovable(false);
}

} // namespace bulkhead::gui
