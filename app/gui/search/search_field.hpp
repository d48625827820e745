// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/search/command.hpp"

#include <QLineEdit>
#include <QStandardItemModel>

class QListView;

namespace bulkhead::gui {

/// The one search field: type, choose with the arrow keys, Enter. What it finds opens below it, inside the window.
class SearchField : public QLineEdit {
    Q_OBJECT

public:
    /// `commands` is asked each time the list is to be shown. The list of results is laid over `host`.
    SearchField(std::function<QList<Command>()> commands, QWidget* host);

    [[nodiscard]] QListView* results() const { return m_results; }
    /// Something changed that the results may name.
    void refreshResults();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void showResults();
    void hideResults();
    void place();
    void choose(int step);
    void run(const QModelIndex& index);

    std::function<QList<Command>()> m_commands;
    QList<Command> m_found;
    QStandardItemModel m_model;
    QListView* m_results;
};

} // namespace bulkhead::gui
