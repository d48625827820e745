// SPDX-License-Identifier: Apache-2.0
#include "gui/tray_icon.hpp"

#include "gui/app_icon.hpp"
#include "gui/desk.hpp"
#include "gui/session_bus.hpp"
#include "gui/wording.hpp"
#include "widgets/label_paint.hpp"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusServiceWatcher>
#include <QDBusVariant>
#include <QSystemTrayIcon>

#include <chrono>

namespace bulkhead::gui {
namespace {

using namespace std::chrono_literals;

const QString kNotifierService = QStringLiteral("org.kde.StatusNotifierWatcher");
const QString kNotifierPath = QStringLiteral("/StatusNotifierWatcher");
constexpr int kMostApps = 20; ///< in a menu; the window has them all

} // namespace

// Qt 6.4 looks for the desktop's notifier host once in a process, when the first QSystemTrayIcon is made; one that
// comes later is never seen again. A tray that is started at login is often there before the panel. So the icon is
// made only when the host is there; on X11 also after a while without one, since an old-style tray has no such host.
TrayIcon::TrayIcon(Desk& desk, QObject* parent)
    : QObject(parent)
    , m_desk(desk) {
    m_rebuild.setSingleShot(true);
    m_rebuild.setInterval(50ms);
    connect(&m_rebuild, &QTimer::timeout, this, &TrayIcon::rebuild);
    connect(&desk.link, &client::DaemonLink::stateChanged, this, &TrayIcon::rebuildSoon);
    connect(&desk.domains, &DomainModel::loaded, this, &TrayIcon::rebuildSoon);
    connect(&desk.domains, &DomainModel::domainChanged, this, &TrayIcon::rebuildSoon);
    connect(&desk.domains, &DomainModel::domainGone, this, &TrayIcon::rebuildSoon);
    connect(&desk.apps, &AppCatalog::changed, this, &TrayIcon::rebuildSoon);
    rebuild();

    QDBusConnection session = sessionBusIfThere();
    if (session.isConnected()) {
        m_watcher = new QDBusServiceWatcher(kNotifierService, session, QDBusServiceWatcher::WatchForOwnerChange, this);
        connect(m_watcher, &QDBusServiceWatcher::serviceRegistered, this, &TrayIcon::askForHost);
        connect(m_watcher, &QDBusServiceWatcher::serviceUnregistered, this, [this] { m_hasNotifierHost = false; });
        session.connect(kNotifierService, kNotifierPath, kNotifierService,
                        QStringLiteral("StatusNotifierHostRegistered"), this, SLOT(onHostRegistered()));
        askForHost();
    }
    if (QGuiApplication::platformName() == QLatin1String("xcb")) {
        m_grace.setSingleShot(true);
        m_grace.setInterval(session.isConnected() ? 20s : 0s);
        connect(&m_grace, &QTimer::timeout, this, &TrayIcon::makeIcon);
        m_grace.start();
    }
}

TrayIcon::~TrayIcon() = default;

void TrayIcon::askForHost() {
    QDBusMessage question = QDBusMessage::createMethodCall(
        kNotifierService, kNotifierPath, QStringLiteral("org.freedesktop.DBus.Properties"), QStringLiteral("Get"));
    question.setAutoStartService(false);
    question << kNotifierService << QStringLiteral("IsStatusNotifierHostRegistered");
    auto* answer = new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(question), this);
    connect(answer, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* finished) {
        finished->deleteLater();
        const QDBusPendingReply<QDBusVariant> reply = *finished;
        if (!reply.isError() && reply.value().variant().toBool()) {
            onHostRegistered();
        }
    });
}

void TrayIcon::onHostRegistered() {
    m_hasNotifierHost = true;
    makeIcon();
}

void TrayIcon::makeIcon() {
    m_grace.stop();
    if (m_icon) {
        return;
    }
    m_icon = std::make_unique<QSystemTrayIcon>(appIcon());
    m_icon->setContextMenu(&m_menu);
    m_icon->setToolTip(toolTip());
    connect(m_icon.get(), &QSystemTrayIcon::activated, this, [this](QSystemTrayIcon::ActivationReason reason) {
        if (reason == QSystemTrayIcon::Trigger || reason == QSystemTrayIcon::DoubleClick) {
            Q_EMIT openRequested();
        }
    });
    m_icon->show();
}

bool TrayIcon::hasHost() const {
    return m_icon && (m_hasNotifierHost || (QGuiApplication::platformName() == QLatin1String("xcb") &&
                                            QSystemTrayIcon::isSystemTrayAvailable()));
}

void TrayIcon::rebuildSoon() {
    m_rebuild.start();
}

QString TrayIcon::toolTip() const {
    if (!m_desk.link.isAvailable()) {
        return tr("Bulkhead: the service is not running");
    }
    int running = 0;
    for (int number = 0; number < m_desk.domains.rowCount(); ++number) {
        running += m_desk.domains.index(number).data(DomainModel::IsRunningRole).toBool() ? 1 : 0;
    }
    return running == 0   ? tr("Bulkhead: no domain runs")
           : running == 1 ? tr("Bulkhead: one domain runs")
                          : tr("Bulkhead: %1 domains run").arg(running);
}

void TrayIcon::rebuild() {
    if (m_menu.isVisible()) {
        rebuildSoon(); // not under somebody's pointer
        return;
    }
    // Submenus are children of the menu that clear() leaves behind.
    const auto before = m_menu.findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly);
    m_menu.clear();
    qDeleteAll(before);
    if (!m_desk.link.isAvailable()) {
        m_menu.addAction(tr("The service is not running"))->setEnabled(false);
    } else {
        const qsizetype own = m_menu.actions().size();
        for (int number = 0; number < m_desk.domains.rowCount(); ++number) {
            const QModelIndex index = m_desk.domains.index(number);
            if (index.data(DomainModel::IsRunningRole).toBool() || isPaused(m_desk.domains.row(number).info)) {
                addDomain(number);
            }
        }
        if (m_menu.actions().size() == own) {
            m_menu.addAction(tr("No domain runs"))->setEnabled(false);
        }
        m_menu.addSeparator();
        connect(m_menu.addAction(tr("New disposable")), &QAction::triggered, this,
                [this] { m_desk.verbs.startDisposable(); });
    }
    m_menu.addSeparator();
    connect(m_menu.addAction(tr("Open Bulkhead")), &QAction::triggered, this, &TrayIcon::openRequested);
    connect(m_menu.addAction(tr("Quit (domains go on running)")), &QAction::triggered, this, &TrayIcon::quitRequested);
    if (m_icon) {
        m_icon->setToolTip(toolTip());
    }
}

void TrayIcon::addDomain(int number) {
    const auto& row = m_desk.domains.row(number);
    const QString path = row.info.path;
    // "&" would make the letter after it a shortcut.
    const auto menuText = [](QString text) { return text.replace(QLatin1Char('&'), QLatin1String("&&")); };
    const QString state = m_desk.domains.index(number).data(DomainModel::StateTextRole).toString();
    const client::Label& label = client::labelNamed(row.info.label.toStdString());
    QMenu* menu = m_menu.addMenu(menuText(tr("%1: %2").arg(shown(row.info.name, 64), state)));
    menu->setIcon(QIcon(widgets::swatchPixmap(label, widgets::themeOf(QApplication::palette()), 16, 1)));
    const QList<AppEntry>& apps = m_desk.apps.shelf(path).apps;
    for (qsizetype i = 0; i < apps.size() && i < kMostApps; ++i) {
        connect(menu->addAction(menuText(shown(apps[i].name, 60))), &QAction::triggered, this,
                [this, path, id = apps[i].id] { m_desk.apps.launch(path, id); });
    }
    menu->addSeparator();
    if (!apps.isEmpty()) {
        connect(menu->addAction(tr("Show its windows")), &QAction::triggered, this,
                [this, path] { m_desk.apps.showWindows(path); });
    }
    connect(menu->addAction(tr("Open in Bulkhead")), &QAction::triggered, this,
            [this, path] { Q_EMIT domainRequested(path); });
    const bool isStill = isPaused(row.info);
    QAction* pause = menu->addAction(isStill ? tr("Unpause") : tr("Pause"));
    pause->setEnabled(row.task == Task::None);
    connect(pause, &QAction::triggered, this, [this, path, isStill] {
        if (isStill) {
            m_desk.verbs.unpause(path);
        } else {
            m_desk.verbs.pause(path);
        }
    });
    QAction* suspend = menu->addAction(tr("Suspend"));
    suspend->setEnabled(row.task == Task::None && !isStill && row.info.canBeSuspended());
    connect(suspend, &QAction::triggered, this, [this, path] { m_desk.verbs.suspend(path); });
    QAction* stop = menu->addAction(tr("Stop"));
    stop->setEnabled(row.task == Task::None && !isStill);
    connect(stop, &QAction::triggered, this, [this, path] { m_desk.verbs.stop(path); });
}

} // namespace bulkhead::gui
