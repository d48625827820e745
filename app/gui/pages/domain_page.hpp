// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

#include <QWidget>

class QAction;
class QMenu;
class QPushButton;
class QStackedWidget;
class QTabBar;
class QToolButton;

namespace bulkhead::gui {

class AppsPage;
class Banner;
class ElidedLabel;
struct Desk;
class SettingsPage;

/// One domain: who it is and how it is, what can be done with it, and its pages.
class DomainPage : public QWidget {
    Q_OBJECT

public:
    explicit DomainPage(Desk& desk, QWidget* parent = nullptr);
    void setDomain(const QString& path);
    [[nodiscard]] const QString& domain() const { return m_path; }

    void showApps();
    void showSettings();
    /// Pauses what runs, lets go on what is paused.
    void togglePause();
    /// Ask first, then do.
    void askForceStop();
    void askRemove();
    void askRevert();
    void askFork();

Q_SIGNALS:
    /// There is a new domain, which the user will want to see.
    void forked(const QString& path);

private:
    void refreshInMenu();
    void changeInMenu(bool isWanted);
    void refresh();
    void refreshVerbs();
    void onMainButton();
    QMenu* makeMenu();
    [[nodiscard]] QString problemText() const;

    Desk& m_desk;
    QString m_path;
    QLabel* m_chip;
    ElidedLabel* m_name;
    ElidedLabel* m_state;
    QPushButton* m_main;
    QToolButton* m_more;
    QAction* m_snapshot;
    QAction* m_revert;
    QAction* m_fork;
    QAction* m_pause;
    QAction* m_suspend;
    QAction* m_inMenu;
    QAction* m_forceStop;
    QAction* m_remove;
    Banner* m_banner;
    QTabBar* m_tabs;
    QStackedWidget* m_pages;
    AppsPage* m_apps;
    SettingsPage* m_settings;
};

} // namespace bulkhead::gui
