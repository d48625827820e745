// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/domain_page.hpp"

#include "gui/desk.hpp"
#include "gui/dialogs/confirm_dialog.hpp"
#include "gui/dialogs/fork_dialog.hpp"
#include "gui/dialogs/revert_dialog.hpp"
#include "gui/menu_exports.hpp"
#include "gui/pages/apps_page.hpp"
#include "gui/pages/settings_page.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/elided_label.hpp"
#include "gui/wording.hpp"
#include "widgets/label_paint.hpp"

#include <QAction>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QStackedWidget>
#include <QTabBar>
#include <QToolButton>
#include <QVBoxLayout>

namespace bulkhead::gui {
namespace {

bool is(const client::DomainInfo& info, const char* state) {
    return info.state == QLatin1String(state);
}

} // namespace

DomainPage::DomainPage(Desk& desk, QWidget* parent)
    : QWidget(parent)
    , m_desk(desk)
    , m_chip(new QLabel)
    , m_name(new ElidedLabel(TextLabel::Look::Title))
    , m_state(new ElidedLabel(TextLabel::Look::Quiet))
    , m_main(new QPushButton)
    , m_more(new QToolButton)
    , m_banner(new Banner)
    , m_tabs(new QTabBar)
    , m_pages(new QStackedWidget)
    , m_apps(new AppsPage(desk))
    , m_settings(new SettingsPage(desk)) {
    makeRoomy(m_main);
    m_main->setMinimumWidth(120);
    m_more->setText(tr("More"));
    m_more->setToolButtonStyle(Qt::ToolButtonTextOnly);
    m_more->setPopupMode(QToolButton::InstantPopup);
    m_more->setFocusPolicy(Qt::StrongFocus);
    makeRoomy(m_more);
    m_more->setAccessibleName(tr("More to do with this domain"));
    m_more->setMenu(makeMenu());

    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    words->addWidget(m_name);
    words->addWidget(m_state);
    auto* head = new QHBoxLayout;
    head->setSpacing(14);
    head->addWidget(m_chip, 0, Qt::AlignVCenter);
    head->addLayout(words, 1);
    head->addWidget(m_main, 0, Qt::AlignVCenter);
    head->addWidget(m_more, 0, Qt::AlignVCenter);
    auto* top = new QVBoxLayout;
    top->setContentsMargins(kMargin, kSection, kMargin, 0);
    top->setSpacing(12);
    top->addLayout(head);
    top->addWidget(m_banner);

    m_tabs->setDocumentMode(true);
    m_tabs->setAccessibleName(tr("Pages of this domain"));
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->addTab(tr("&Apps"));
    m_tabs->addTab(tr("&Settings"));
    m_pages->addWidget(m_apps);
    m_pages->addWidget(m_settings);
    connect(m_tabs, &QTabBar::currentChanged, m_pages, &QStackedWidget::setCurrentIndex);
    auto* tabLine = new QHBoxLayout;
    tabLine->setContentsMargins(kMargin, 0, kMargin, 0);
    tabLine->addWidget(m_tabs);
    tabLine->addStretch();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(top);
    layout->addSpacing(12);
    layout->addLayout(tabLine);
    layout->addWidget(makeLine(Qt::Horizontal));
    layout->addWidget(m_pages, 1);

    connect(m_main, &QPushButton::clicked, this, &DomainPage::onMainButton);
    connect(m_banner, &Banner::dismissed, this, [this] {
        m_desk.domains.setProblem(m_path, {});
        m_desk.domains.setNote(m_path, {});
    });
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& path) {
        if (path == m_path) {
            refresh();
        }
    });
}

QMenu* DomainPage::makeMenu() {
    auto* menu = new QMenu(m_more);
    m_pause = menu->addAction(tr("&Pause"));
    m_suspend = menu->addAction(tr("S&uspend"));
    m_snapshot = menu->addAction(tr("Take a &snapshot"));
    m_revert = menu->addAction(tr("Re&vert to…"));
    m_fork = menu->addAction(tr("F&ork…"));
    menu->addSeparator();
    m_inMenu = menu->addAction(tr("Show its apps in the desktop's &menu"));
    m_inMenu->setCheckable(true);
    menu->addSeparator();
    m_forceStop = menu->addAction(tr("&Force stop…"));
    m_remove = menu->addAction(tr("&Remove…"));
    connect(menu, &QMenu::aboutToShow, this, &DomainPage::refreshInMenu);
    connect(m_pause, &QAction::triggered, this, &DomainPage::togglePause);
    connect(m_suspend, &QAction::triggered, this, [this] { m_desk.verbs.suspend(m_path); });
    connect(m_snapshot, &QAction::triggered, this, [this] { m_desk.verbs.takeSnapshot(m_path); });
    connect(m_revert, &QAction::triggered, this, &DomainPage::askRevert);
    connect(m_fork, &QAction::triggered, this, &DomainPage::askFork);
    connect(m_inMenu, &QAction::triggered, this, &DomainPage::changeInMenu);
    connect(m_forceStop, &QAction::triggered, this, &DomainPage::askForceStop);
    connect(m_remove, &QAction::triggered, this, &DomainPage::askRemove);
    return menu;
}

void DomainPage::setDomain(const QString& path) {
    m_path = path;
    refresh();
    m_apps->setDomain(path);
    m_settings->setDomain(path);
}

void DomainPage::showApps() {
    m_tabs->setCurrentIndex(m_pages->indexOf(m_apps));
}

void DomainPage::showSettings() {
    m_tabs->setCurrentIndex(m_pages->indexOf(m_settings));
}

QString DomainPage::problemText() const {
    const auto& row = *m_desk.domains.find(m_path);
    QStringList parts;
    if (!row.info.reason.isEmpty()) {
        // The daemon's reason names domain, phase and resource already.
        parts.append(sentence({{}, row.info.reason.toStdString()}));
        if (is(row.info, "failed")) {
            parts.append(tr("Start tries again; “Examine this host” in the search field looks for causes."));
        }
    }
    if (!row.problem.isEmpty() && !(parts.size() > 0 && row.problem.contains(parts.first()))) {
        parts.append(row.problem);
    }
    return parts.join(QLatin1Char('\n'));
}

void DomainPage::refresh() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    const QString name = shown(row->info.name, 64);
    m_name->setFullText(name);
    m_name->setAccessibleName(tr("Domain %1").arg(name));
    const QModelIndex index = m_desk.domains.indexOf(m_path);
    QStringList words{index.data(DomainModel::StateTextRole).toString(), kindInWords(row->info.kind)};
    if (!row->info.templateName.isEmpty()) {
        words.append(shown(row->info.templateName, 64));
    }
    // The line has no room for both; the list has a bar for the memory.
    if (row->status && row->status->memoryTotal > 0 && !row->info.updateAvailable) {
        words.append(tr("%1 of %2")
                         .arg(bytesInWords(row->status->memoryTotal -
                                           std::min(row->status->memoryAvailable, row->status->memoryTotal)),
                              bytesInWords(row->status->memoryTotal)));
    }
    m_state->setFullText(words.join(QStringLiteral(" · ")));
    const client::Label& label = client::labelNamed(row->info.label.toStdString());
    m_chip->setPixmap(widgets::chipPixmap(label, widgets::themeOf(palette()), font(), devicePixelRatioF()));
    m_chip->setAccessibleName(tr("Label %1").arg(shown(row->info.label, 32)));
    m_chip->setToolTip(m_chip->accessibleName());
    // What went wrong stands before what is only worth knowing.
    const QString problem = problemText();
    m_banner->setText(problem.isEmpty() ? row->note : problem, row->info.reason.isEmpty(),
                      problem.isEmpty() ? Banner::Kind::Information : Banner::Kind::Warning);
    refreshVerbs();
}

void DomainPage::refreshVerbs() {
    const auto& row = *m_desk.domains.find(m_path);
    const bool isBusy = row.task != Task::None || is(row.info, "starting") || is(row.info, "stopping");
    QString text;
    switch (row.task) {
    case Task::None:
        text = is(row.info, "running")    ? tr("Stop")
               : isPaused(row.info)       ? tr("Unpause")
               : is(row.info, "starting") ? tr("Starting…")
               : is(row.info, "stopping") ? tr("Stopping…")
               : isSuspended(row.info)    ? tr("Resume")
                                          : tr("Start");
        break;
    case Task::Starting:
        text = tr("Starting…");
        break;
    case Task::Stopping:
    case Task::ForceStopping:
        text = tr("Stopping…");
        break;
    case Task::Removing:
        text = tr("Removing…");
        break;
    case Task::Suspending:
        text = tr("Suspending…");
        break;
    case Task::Pausing:
        text = tr("Pausing…");
        break;
    case Task::Unpausing:
        text = tr("Unpausing…");
        break;
    case Task::Snapshotting:
    case Task::Reverting:
    case Task::Forking: // the line above says so; the button would have to grow
        text = is(row.info, "running") ? tr("Stop")
               : isPaused(row.info)    ? tr("Unpause")
               : isSuspended(row.info) ? tr("Resume")
                                       : tr("Start");
        break;
    }
    m_main->setText(text);
    m_main->setEnabled(!isBusy);
    m_main->setAccessibleName(tr("%1 %2").arg(text, shown(row.info.name, 64)));
    const bool isOn = !is(row.info, "stopped") && !is(row.info, "failed") && !isSuspended(row.info);
    m_pause->setText(isPaused(row.info) ? tr("Un&pause") : tr("&Pause"));
    m_pause->setEnabled(!isBusy && (is(row.info, "running") || isPaused(row.info)));
    m_suspend->setEnabled(!isBusy && is(row.info, "running") && row.info.canBeSuspended());
    m_snapshot->setEnabled(!isBusy && !isSuspended(row.info) && !isPaused(row.info));
    m_revert->setEnabled(!isBusy);
    m_fork->setEnabled(!isBusy);
    m_forceStop->setEnabled(isOn && row.task != Task::ForceStopping && row.task != Task::Removing);
    m_remove->setEnabled(row.task == Task::None);
}

void DomainPage::refreshInMenu() {
    const auto* row = m_desk.domains.find(m_path);
    const bool isThere = row != nullptr && isInMenu(row->info.name);
    m_inMenu->setChecked(isThere);
    // The apps of a domain that does not run are not known.
    m_inMenu->setEnabled(isThere ||
                         (row != nullptr && canBeInMenu(row->info.name) && !m_desk.apps.shelf(m_path).apps.isEmpty()));
}

void DomainPage::changeInMenu(bool isWanted) {
    if (const auto* row = m_desk.domains.find(m_path)) {
        const QString name = row->info.name;
        m_desk.domains.setProblem(m_path,
                                  isWanted ? putIntoMenu(name, m_desk.apps.shelf(m_path).apps) : takeOutOfMenu(name));
    }
}

void DomainPage::onMainButton() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    if (is(row->info, "running")) {
        m_desk.verbs.stop(m_path);
    } else if (isPaused(row->info)) {
        m_desk.verbs.unpause(m_path);
    } else {
        m_desk.verbs.start(m_path);
    }
}

void DomainPage::togglePause() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    if (isPaused(row->info)) {
        m_desk.verbs.unpause(m_path);
    } else if (is(row->info, "running")) {
        m_desk.verbs.pause(m_path);
    }
}

void DomainPage::askForceStop() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    const QString name = shown(row->info.name, 64);
    auto* dialog = new ConfirmDialog(tr("Cut the power of %1?").arg(name),
                                     row->info.kind == QLatin1String("disposable")
                                         ? tr("Its programs get no chance to save, and everything in it is lost.")
                                         : tr("Its programs get no chance to save. Its home keeps what was written."),
                                     tr("Cut the power of %1").arg(name), window());
    connect(dialog, &QDialog::accepted, this, [this, path = m_path] { m_desk.verbs.forceStop(path); });
    dialog->open();
}

void DomainPage::askRemove() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr || row->task != Task::None) {
        return;
    }
    const QString name = shown(row->info.name, 64);
    QString effect =
        row->info.kind == QLatin1String("disposable")
            ? tr("Everything in it is lost.")
            : tr("“Deleted domains” below the list can bring it back with its home for 7 days, unless your "
                 "administrator has changed that.");
    if (!is(row->info, "stopped") && !is(row->info, "failed") && !isSuspended(row->info)) {
        effect.prepend(tr("It is powered off first; its programs get no chance to save. "));
    }
    auto* dialog = new ConfirmDialog(tr("Remove %1?").arg(name), effect, tr("Remove %1").arg(name), window());
    connect(dialog, &QDialog::accepted, this, [this, path = m_path] { m_desk.verbs.remove(path); });
    dialog->open();
}

void DomainPage::askRevert() {
    if (m_desk.domains.find(m_path) != nullptr && m_desk.link.isAvailable()) {
        (new RevertDialog(m_desk, m_path, window()))->open();
    }
}

void DomainPage::askFork() {
    if (m_desk.domains.find(m_path) != nullptr && m_desk.link.isAvailable()) {
        auto* dialog = new ForkDialog(m_desk, m_path, window());
        connect(dialog, &ForkDialog::created, this, &DomainPage::forked);
        dialog->open();
    }
}

} // namespace bulkhead::gui
