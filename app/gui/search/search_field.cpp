// SPDX-License-Identifier: Apache-2.0
#include "gui/search/search_field.hpp"

#include "gui/widgets/style.hpp"

#include <QKeyEvent>
#include <QListView>
#include <QPainter>
#include <QStyledItemDelegate>

#include <algorithm>

namespace bulkhead::gui {
namespace {

constexpr qsizetype kMostResults = 9;
constexpr int kRowHeight = 34;
constexpr int kHintRole = Qt::UserRole + 1;

/// Title at the left, kind at the right.
class ResultDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const bool isSelected = (option.state & QStyle::State_Selected) != 0;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        if (isSelected) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(option.palette.brush(QPalette::Highlight));
            painter->drawRoundedRect(QRectF(option.rect).adjusted(4, 2, -4, -2), 5, 5);
        }
        const QRect inner = option.rect.adjusted(14, 0, -14, 0);
        const QString hint = index.data(kHintRole).toString();
        const int hintWidth = option.fontMetrics.horizontalAdvance(hint);
        painter->setPen(option.palette.color(isSelected ? QPalette::HighlightedText : QPalette::Text));
        const QRect title = inner.adjusted(0, 0, -hintWidth - 16, 0);
        painter->drawText(title, Qt::AlignLeft | Qt::AlignVCenter,
                          option.fontMetrics.elidedText(index.data().toString(), Qt::ElideRight, title.width()));
        if (!isSelected) {
            painter->setPen(quietColour(option.palette));
        }
        painter->drawText(inner, Qt::AlignRight | Qt::AlignVCenter, hint);
        painter->restore();
    }
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/, const QModelIndex& /*index*/) const override {
        return {100, kRowHeight};
    }
};

} // namespace

SearchField::SearchField(std::function<QList<Command>()> commands, QWidget* host)
    : m_commands(std::move(commands))
    , m_results(new QListView(host)) {
    setPlaceholderText(tr("Find domains, apps and actions (Ctrl+K)"));
    setAccessibleName(tr("Find domains, apps and actions"));
    setAccessibleDescription(tr("Arrow keys choose a result, Enter runs it"));
    setClearButtonEnabled(true);
    m_results->setAccessibleName(tr("Results"));
    m_results->setModel(&m_model);
    m_results->setItemDelegate(new ResultDelegate(m_results));
    m_results->setFocusPolicy(Qt::NoFocus); // the field keeps the keyboard
    m_results->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_results->setFrameShape(QFrame::StyledPanel);
    m_results->setAutoFillBackground(true);
    m_results->hide();
    connect(this, &QLineEdit::textEdited, this, &SearchField::showResults);
    connect(m_results, &QListView::clicked, this, &SearchField::run);
}

void SearchField::refreshResults() {
    if (m_results->isVisible()) {
        showResults();
    }
}

void SearchField::showResults() {
    // By what it is, not by where it stands: the list changes while somebody is about to press Enter.
    const QVariant before = m_results->currentIndex().data(Qt::AccessibleTextRole);
    int chosen = 0;
    m_found = matching(m_commands(), text(), kMostResults);
    m_model.clear();
    for (const Command& command : m_found) {
        auto* item = new QStandardItem(command.title);
        item->setData(command.hint, kHintRole);
        item->setAccessibleText(tr("%1, %2").arg(command.title, command.hint));
        if (before.isValid() && item->accessibleText() == before.toString()) {
            chosen = m_model.rowCount();
        }
        m_model.appendRow(item);
    }
    if (m_found.isEmpty()) {
        auto* item = new QStandardItem(tr("Nothing is called that"));
        item->setEnabled(false);
        m_model.appendRow(item);
    } else {
        m_results->setCurrentIndex(m_model.index(chosen, 0));
    }
    place();
    m_results->show();
    m_results->raise();
}

void SearchField::place() {
    const QPoint below = mapTo(m_results->parentWidget(), QPoint(0, height() + 4));
    m_results->setGeometry(below.x(), below.y(), std::max(width(), 320), m_model.rowCount() * kRowHeight + 8);
}

void SearchField::hideResults() {
    m_results->hide();
    m_found.clear();
}

void SearchField::choose(int step) {
    if (!m_results->isVisible()) {
        showResults();
        return;
    }
    const int rows = static_cast<int>(m_found.size());
    if (rows > 0) {
        m_results->setCurrentIndex(m_model.index((m_results->currentIndex().row() + step + rows) % rows, 0));
        setAccessibleDescription(m_results->currentIndex().data(Qt::AccessibleTextRole).toString());
    }
}

void SearchField::run(const QModelIndex& index) {
    if (index.row() < 0 || index.row() >= static_cast<int>(m_found.size())) {
        return;
    }
    const auto act = m_found[index.row()].run;
    clear();
    hideResults();
    act();
}

void SearchField::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
    case Qt::Key_Down:
        choose(1);
        break;
    case Qt::Key_Up:
        choose(-1);
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_results->isVisible()) {
            run(m_results->currentIndex());
        } else {
            showResults();
        }
        break;
    case Qt::Key_Escape:
        clear();
        hideResults();
        break;
    default:
        QLineEdit::keyPressEvent(event);
    }
}

void SearchField::focusInEvent(QFocusEvent* event) {
    QLineEdit::focusInEvent(event);
    // Not when the window merely comes to the front.
    if (event->reason() == Qt::ShortcutFocusReason || event->reason() == Qt::MouseFocusReason) {
        selectAll();
        showResults();
    }
}

void SearchField::focusOutEvent(QFocusEvent* event) {
    QLineEdit::focusOutEvent(event);
    hideResults();
}

void SearchField::resizeEvent(QResizeEvent* event) {
    QLineEdit::resizeEvent(event);
    if (m_results->isVisible()) {
        place();
    }
}

} // namespace bulkhead::gui
