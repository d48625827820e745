// SPDX-License-Identifier: Apache-2.0
#include "gui/main_window.hpp"

#include "gui/app_icon.hpp"
#include "gui/desk.hpp"
#include "gui/dialogs/create_dialog.hpp"
#include "gui/dialogs/deleted_dialog.hpp"
#include "gui/pages/domain_page.hpp"
#include "gui/pages/first_run_page.hpp"
#include "gui/pages/notice_page.hpp"
#include "gui/search/search_field.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/domain_delegate.hpp"
#include "gui/widgets/job_bar.hpp"
#include "gui/widgets/style.hpp"
#include "gui/wording.hpp"

#include <QAction>
#include <QCloseEvent>
#include <QHBoxLayout>
#include <QListView>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <chrono>

namespace bulkhead::gui {
namespace {

/// Memory and disk numbers are for a glance; each costs a round trip to a guest.
constexpr std::chrono::seconds kPollInterval{3};
constexpr int kLeftWidth = 300;

} // namespace

MainWindow::MainWindow(Desk& desk, QWidget* parent)
    : QMainWindow(parent)
    , m_desk(desk)
    , m_whole(new QStackedWidget)
    , m_unreachable(new NoticePage)
    , m_banner(new Banner)
    , m_list(new QListView)
    , m_right(new QStackedWidget)
    , m_domainPage(new DomainPage(desk))
    , m_firstRun(new FirstRunPage(desk)) {
    setWindowTitle(tr("Bulkhead"));
    setWindowIcon(appIcon());
    resize(1080, 720);

    auto* middle = new QHBoxLayout;
    middle->setSpacing(0);
    m_left = makeLeft();
    middle->addWidget(m_left);
    middle->addWidget(m_right, 1);
    m_right->addWidget(m_firstRun);
    m_right->addWidget(m_domainPage);

    auto* work = new QWidget;
    auto* column = new QVBoxLayout(work);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeTop());
    column->addWidget(makeLine(Qt::Horizontal));
    auto* bannerSpace = new QVBoxLayout;
    bannerSpace->setContentsMargins(kMargin, 0, kMargin, 0);
    bannerSpace->addWidget(m_banner);
    column->addLayout(bannerSpace);
    column->addLayout(middle, 1);
    column->addWidget(new JobBar(desk.jobs));
    m_whole->addWidget(m_unreachable);
    m_whole->addWidget(work);
    setCentralWidget(m_whole);
    makeActions();

    m_poll.setInterval(kPollInterval);
    connect(&m_poll, &QTimer::timeout, this, &MainWindow::pollVisible);
    connect(m_unreachable, &NoticePage::buttonClicked, &desk.link, &client::DaemonLink::retry);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(&desk.link, &client::DaemonLink::stateChanged, this, &MainWindow::showLinkState);
    connect(&desk.domains, &DomainModel::loaded, this, &MainWindow::keepChoice);
    connect(&desk.domains, &DomainModel::listFailed, this, [this](const client::Failure& failure) {
        m_banner->setText(tr("The domains cannot be listed: %1").arg(sentence(failure)));
    });
    connect(&desk.domains, &DomainModel::domainChanged, this, [this] { m_search->refreshResults(); });
    connect(&desk.domains, &DomainModel::domainGone, this, &MainWindow::keepChoice);
    connect(&desk.verbs, &Verbs::failed, this, [this](const QString& what, const client::Failure& failure) {
        const QString advice = adviceFor(failure);
        m_banner->setText(tr("%1: %2 %3").arg(what, sentence(failure), advice).trimmed());
    });
    connect(&desk.verbs, &Verbs::told, this,
            [this](const QString& note) { m_banner->setText(note, true, Banner::Kind::Information); });
    connect(m_domainPage, &DomainPage::forked, this, &MainWindow::chooseDomain);
    connect(&desk.verbs, &Verbs::disposableStarted, this, &MainWindow::chooseDomain);
    connect(&desk.verbs, &Verbs::busyChanged, this, [this] {
        const bool isBusy = m_desk.verbs.isStartingDisposable();
        m_newDisposable->setEnabled(!isBusy);
        m_newDisposable->setText(isBusy ? tr("Starting…") : tr("New &disposable"));
    });
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this, &MainWindow::showRight);
    connect(m_list, &QListView::activated, this, [this] { m_domainPage->showApps(); });
    connect(m_firstRun, &FirstRunPage::newDomainRequested, this, &MainWindow::openCreateDialog);
    showLinkState();
    showRight();
}

QWidget* MainWindow::makeTop() {
    m_search = new SearchField([this] { return commands(); }, m_whole);
    m_search->setMinimumHeight(kControlHeight);
    m_search->setTextMargins(6, 0, 6, 0);
    m_search->setMaximumWidth(560);
    m_newDisposable = new QPushButton(tr("New &disposable"));
    m_newDisposable->setAccessibleName(tr("New disposable"));
    m_newDisposable->setToolTip(tr("Starts a domain of which nothing is kept"));
    m_newDomain = new QPushButton(tr("&New domain…"));
    m_newDomain->setAccessibleName(tr("New domain"));
    for (QPushButton* button : {m_newDisposable, m_newDomain}) {
        makeRoomy(button);
    }
    connect(m_newDisposable, &QPushButton::clicked, this, [this] {
        m_banner->setText({});
        m_desk.verbs.startDisposable();
    });
    connect(m_newDomain, &QPushButton::clicked, this, &MainWindow::openCreateDialog);
    auto* top = new QWidget;
    auto* layout = new QHBoxLayout(top);
    layout->setContentsMargins(16, 12, 16, 12);
    layout->setSpacing(kGap);
    layout->addWidget(m_search, 1);
    layout->addStretch();
    layout->addWidget(m_newDisposable);
    layout->addWidget(m_newDomain);
    return top;
}

QWidget* MainWindow::makeLeft() {
    m_list->setModel(&m_desk.domains);
    m_list->setItemDelegate(new DomainDelegate(m_list));
    m_list->setObjectName(QStringLiteral("domains"));
    m_list->setAccessibleName(tr("Domains"));
    m_list->setAccessibleDescription(tr("Arrow keys choose a domain"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_list->setMouseTracking(true);
    m_deleted = new QPushButton(tr("De&leted domains…"));
    m_deleted->setAccessibleName(tr("Deleted domains"));
    m_deleted->setToolTip(tr("Brings a removed domain back"));
    m_deleted->setFlat(true);
    makeRoomy(m_deleted);
    connect(m_deleted, &QPushButton::clicked, this, &MainWindow::openDeletedDialog);
    auto* left = new QWidget;
    left->setFixedWidth(kLeftWidth);
    auto* layout = new QHBoxLayout(left);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    column->addWidget(m_list, 1);
    column->addWidget(m_deleted);
    layout->addLayout(column, 1);
    layout->addWidget(makeLine(Qt::Vertical));
    return left;
}

void MainWindow::makeActions() {
    const auto add = [this](const QKeySequence& keys, auto slot) {
        auto* action = new QAction(this);
        action->setShortcut(keys);
        connect(action, &QAction::triggered, this, slot);
        addAction(action);
    };
    add(QKeySequence(Qt::CTRL | Qt::Key_K), [this] { m_search->setFocus(Qt::ShortcutFocusReason); });
    add(QKeySequence(Qt::CTRL | Qt::Key_N), &MainWindow::openCreateDialog);
    add(QKeySequence(Qt::CTRL | Qt::Key_P), [this] {
        if (!chosenDomain().isEmpty()) {
            m_domainPage->togglePause();
        }
    });
    add(QKeySequence(Qt::CTRL | Qt::Key_Q), &MainWindow::quitRequested);
    setTabOrder(m_search, m_newDisposable);
    setTabOrder(m_newDisposable, m_newDomain);
    setTabOrder(m_newDomain, m_list);
    setTabOrder(m_list, m_deleted);
}

void MainWindow::present() {
    setWindowState(windowState() & ~Qt::WindowMinimized);
    show();
    raise();
    activateWindow();
}

QString MainWindow::chosenDomain() const {
    return m_list->currentIndex().data(DomainModel::PathRole).toString();
}

void MainWindow::chooseDomain(const QString& path) {
    const QModelIndex index = m_desk.domains.indexOf(path);
    if (!index.isValid()) {
        m_wanted = path;
        return;
    }
    m_wanted.clear();
    m_list->setCurrentIndex(index);
    m_list->scrollTo(index);
}

void MainWindow::openCreateDialog() {
    if (!m_desk.link.isAvailable()) {
        return;
    }
    auto* dialog = new CreateDialog(m_desk, this);
    connect(dialog, &CreateDialog::created, this, &MainWindow::chooseDomain);
    dialog->open();
}

void MainWindow::openDeletedDialog() {
    if (!m_desk.link.isAvailable()) {
        return;
    }
    auto* dialog = new DeletedDialog(m_desk, this);
    connect(dialog, &DeletedDialog::restored, this, &MainWindow::chooseDomain);
    dialog->open();
}

void MainWindow::showLinkState() {
    const bool isAvailable = m_desk.link.isAvailable();
    m_whole->setCurrentIndex(isAvailable ? 1 : 0);
    if (m_desk.link.state() == client::DaemonLink::State::Connecting) {
        m_unreachable->show(tr("Connecting to Bulkhead’s service"), {});
    } else if (!isAvailable) {
        const client::Failure& failure = m_desk.link.failure();
        const bool isDown =
            failure.code == client::code::kDaemonNotRunning || failure.code == client::code::kDaemonLost;
        const bool isBus = failure.code == client::code::kBusUnavailable;
        const QString waits = tr("Domains that run go on without it. This window connects by itself as soon as it is "
                                 "there. To start it:");
        m_unreachable->show(
            isDown ? tr("Bulkhead’s service is not running") : tr("Bulkhead’s service cannot be reached"),
            isDown ? waits : tr("%1 %2").arg(sentence(failure), waits),
            isBus ? QStringLiteral("sudo systemctl start dbus") : QStringLiteral("sudo systemctl start bulkheadd"),
            tr("Try now"));
    }
    if (isAvailable && !m_list->hasFocus() && !m_search->hasFocus()) {
        m_list->setFocus();
    }
}

void MainWindow::keepChoice() {
    if (!m_wanted.isEmpty()) {
        chooseDomain(m_wanted);
    }
    if (!m_list->currentIndex().isValid() && m_desk.domains.rowCount() > 0 && !m_showsHost) {
        m_list->setCurrentIndex(m_desk.domains.index(0));
    }
    showRight();
    m_search->refreshResults();
    pollVisible();
}

void MainWindow::showRight() {
    const QString path = chosenDomain();
    if (!path.isEmpty()) {
        m_showsHost = false;
        m_domainPage->setDomain(path);
        m_right->setCurrentWidget(m_domainPage);
    } else {
        m_right->setCurrentWidget(m_firstRun);
    }
    m_left->setVisible(m_desk.domains.rowCount() > 0);
    // Until the daemon has told, an empty list means nothing.
    m_right->setVisible(!path.isEmpty() || m_desk.domains.isLoaded());
}

void MainWindow::showHost() {
    m_showsHost = true;
    m_list->setCurrentIndex({});
    showRight();
    m_firstRun->examine();
}

void MainWindow::pollVisible() {
    if (!isVisible() || isMinimized()) {
        return;
    }
    QStringList paths;
    const QRect seen = m_list->viewport()->rect();
    for (int number = 0; number < m_desk.domains.rowCount(); ++number) {
        const QModelIndex index = m_desk.domains.index(number);
        if (index.data(DomainModel::IsRunningRole).toBool() && m_list->visualRect(index).intersects(seen)) {
            paths.append(index.data(DomainModel::PathRole).toString());
        }
    }
    m_desk.domains.pollStatus(paths);
}

QList<Command> MainWindow::commands() {
    QList<Command> found;
    for (int number = 0; number < m_desk.domains.rowCount(); ++number) {
        addDomainCommands(found, number);
    }
    const QString action = tr("Action");
    found.append({tr("New domain…"), action, [this] { openCreateDialog(); }});
    found.append({tr("New disposable"), action, [this] { m_desk.verbs.startDisposable(); }});
    found.append({tr("Deleted domains…"), action, [this] { openDeletedDialog(); }});
    found.append({tr("Examine this host"), action, [this] { showHost(); }});
    found.append({tr("Quit Bulkhead (domains go on running)"), action, [this] { Q_EMIT quitRequested(); }});
    return found;
}

void MainWindow::addDomainCommands(QList<Command>& found, int number) {
    const auto& row = m_desk.domains.row(number);
    const QString path = row.info.path;
    const QString name = shown(row.info.name, 64);
    const bool isRunning = row.info.state == QLatin1String("running");
    found.append({name, tr("Domain"), [this, path] {
                      chooseDomain(path);
                      m_list->setFocus();
                  }});
    if (row.task == Task::None) {
        if (isRunning) {
            found.append({tr("Stop %1").arg(name), tr("Action"), [this, path] { m_desk.verbs.stop(path); }});
            found.append({tr("Pause %1").arg(name), tr("Action"), [this, path] { m_desk.verbs.pause(path); }});
        } else if (isPaused(row.info)) {
            found.append({tr("Unpause %1").arg(name), tr("Action"), [this, path] { m_desk.verbs.unpause(path); }});
        } else {
            const QString title = isSuspended(row.info) ? tr("Resume %1") : tr("Start %1");
            found.append({title.arg(name), tr("Action"), [this, path] {
                              chooseDomain(path);
                              m_desk.verbs.start(path);
                          }});
        }
        addSnapshotCommands(found, row.info);
        found.append({tr("Remove %1…").arg(name), tr("Action"), [this, path] {
                          chooseDomain(path);
                          m_domainPage->askRemove();
                      }});
    }
    found.append({tr("Settings of %1").arg(name), tr("Page"), [this, path] {
                      chooseDomain(path);
                      m_domainPage->showSettings();
                  }});
    for (const AppEntry& app : m_desk.apps.shelf(path).apps) {
        found.append({tr("%1 in %2").arg(shown(app.name, 60), name), tr("App"),
                      [this, path, id = app.id] { m_desk.apps.launch(path, id); }});
    }
}

void MainWindow::addSnapshotCommands(QList<Command>& found, const client::DomainInfo& info) {
    const QString path = info.path;
    const QString name = shown(info.name, 64);
    const QString action = tr("Action");
    if (info.state == QLatin1String("running") && info.kind != QLatin1String("disposable")) {
        found.append({tr("Suspend %1").arg(name), action, [this, path] { m_desk.verbs.suspend(path); }});
    }
    if (!isSuspended(info) && !isPaused(info)) {
        found.append({tr("Take a snapshot of %1").arg(name), action, [this, path] {
                          chooseDomain(path); // what comes of it is told there
                          m_desk.verbs.takeSnapshot(path);
                      }});
    }
    found.append({tr("Revert %1 to…").arg(name), action, [this, path] {
                      chooseDomain(path);
                      m_domainPage->askRevert();
                  }});
    found.append({tr("Fork %1…").arg(name), action, [this, path] {
                      chooseDomain(path);
                      m_domainPage->askFork();
                  }});
}

void MainWindow::closeEvent(QCloseEvent* event) {
    event->accept();
    Q_EMIT closed();
}

void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    m_poll.start();
    pollVisible();
}

void MainWindow::hideEvent(QHideEvent* event) {
    QMainWindow::hideEvent(event);
    m_poll.stop();
}

} // namespace bulkhead::gui
