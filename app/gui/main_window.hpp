// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"
#include "gui/search/command.hpp"

#include <QMainWindow>
#include <QTimer>

class QListView;
class QPushButton;
class QStackedWidget;

namespace bulkhead::gui {

class Banner;
struct Desk;
class DomainPage;
class FirstRunPage;
class NoticePage;
class SearchField;

/// The window that can do everything: domains at the left, the chosen one at the right, search above, jobs below.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(Desk& desk, QWidget* parent = nullptr);

    /// In front, whatever it was.
    void present();
    void chooseDomain(const QString& path);
    void openCreateDialog();
    void openDeletedDialog();
    [[nodiscard]] QString chosenDomain() const;

Q_SIGNALS:
    /// The user closed it; who owns the program decides what that means.
    void closed();
    void quitRequested();

protected:
    void closeEvent(QCloseEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    QWidget* makeTop();
    QWidget* makeLeft();
    void makeActions();
    void showLinkState();
    void showRight();
    void keepChoice();
    void showHost();
    void pollVisible();
    [[nodiscard]] QList<Command> commands();
    void addDomainCommands(QList<Command>& found, int number);
    void addSnapshotCommands(QList<Command>& found, const client::DomainInfo& info);

    Desk& m_desk;
    QStackedWidget* m_whole;
    NoticePage* m_unreachable;
    SearchField* m_search;
    QPushButton* m_newDisposable;
    QPushButton* m_newDomain;
    QPushButton* m_deleted;
    Banner* m_banner;
    QWidget* m_left;
    QListView* m_list;
    QStackedWidget* m_right;
    DomainPage* m_domainPage;
    FirstRunPage* m_firstRun;
    QTimer m_poll;
    bool m_showsHost = false; ///< at the right, though there are domains
    QString m_wanted;         ///< path to choose as soon as it is in the list
};

} // namespace bulkhead::gui
