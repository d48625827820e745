// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QWidget>

class QLineEdit;
class QPushButton;
class QStackedWidget;

namespace bulkhead::gui {

class AppGrid;
struct Desk;
class NoticePage;

/// The apps of one domain: a grid with a search line, and its terminal and files. When there are none to show it says
/// why and what to do.
class AppsPage : public QWidget {
    Q_OBJECT

public:
    explicit AppsPage(Desk& desk, QWidget* parent = nullptr);
    void setDomain(const QString& path);

private:
    void refresh();
    void refreshRunning();
    void onNoticeButton();
    void launchCategory(const QStringList& categories);

    Desk& m_desk;
    QString m_path;
    QStackedWidget* m_stack;
    NoticePage* m_notice;
    QLineEdit* m_search;
    AppGrid* m_grid;
    QPushButton* m_terminal;
    QPushButton* m_files;
    QPushButton* m_windows;
};

} // namespace bulkhead::gui
