// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMenu>
#include <QObject>
#include <QTimer>

#include <memory>

class QDBusServiceWatcher;
class QSystemTrayIcon;

namespace bulkhead::gui {

struct Desk;

/// The window in short: running domains with their apps, and the ways to open it and to quit. It appears as soon as
/// the desktop has a tray, however late that is. GUI thread.
class TrayIcon : public QObject {
    Q_OBJECT

public:
    explicit TrayIcon(Desk& desk, QObject* parent = nullptr);
    ~TrayIcon() override;

    /// Whether somebody shows the icon now.
    [[nodiscard]] bool hasHost() const;
    [[nodiscard]] QMenu& menu() { return m_menu; }

Q_SIGNALS:
    void openRequested();
    void domainRequested(const QString& path);
    void quitRequested();

private Q_SLOTS:
    void onHostRegistered();

private:
    void askForHost();
    void makeIcon();
    void rebuildSoon();
    void rebuild();
    void addDomain(int number);
    [[nodiscard]] QString toolTip() const;

    Desk& m_desk;
    QMenu m_menu;
    QTimer m_rebuild;
    QTimer m_grace;
    QDBusServiceWatcher* m_watcher = nullptr;
    bool m_hasNotifierHost = false;
    std::unique_ptr<QSystemTrayIcon> m_icon;
};

} // namespace bulkhead::gui
