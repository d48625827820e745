// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/apps_page.hpp"

#include "gui/desk.hpp"
#include "gui/pages/notice_page.hpp"
#include "gui/widgets/app_grid.hpp"
#include "gui/wording.hpp"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace bulkhead::gui {
namespace {

const QStringList kTerminals{QStringLiteral("TerminalEmulator")};
const QStringList kFileManagers{QStringLiteral("FileManager"), QStringLiteral("FileTools")};

QString shellCommand(const QString& domainName) {
    return QStringLiteral("bulkhead run --domain %1 -t -- bash").arg(shellWord(domainName));
}

void offer(QPushButton* button, const AppEntry* app, const QString& none) {
    button->setEnabled(app != nullptr);
    button->setToolTip(app != nullptr ? shown(app->name, 60) : none);
    button->setAccessibleDescription(button->toolTip());
}

} // namespace

AppsPage::AppsPage(Desk& desk, QWidget* parent)
    : QWidget(parent)
    , m_desk(desk)
    , m_stack(new QStackedWidget)
    , m_notice(new NoticePage)
    , m_search(new QLineEdit)
    , m_grid(new AppGrid)
    , m_terminal(new QPushButton(tr("&Terminal")))
    , m_files(new QPushButton(tr("&Files")))
    , m_windows(new QPushButton(tr("Show &windows"))) {
    m_search->setPlaceholderText(tr("Find an app"));
    m_search->setAccessibleName(tr("Find an app of this domain"));
    m_search->setClearButtonEnabled(true);
    m_search->setMaximumWidth(320);
    m_search->setMinimumHeight(kControlHeight);
    m_search->setTextMargins(4, 0, 4, 0);
    for (QPushButton* button : {m_terminal, m_files, m_windows}) {
        makeRoomy(button);
    }
    m_terminal->setAccessibleName(tr("Open a terminal in this domain"));
    m_files->setAccessibleName(tr("Open the files of this domain"));
    m_windows->setAccessibleName(tr("Show the windows of this domain"));
    m_windows->setToolTip(tr("Shows the windows that the domain has open"));

    auto* line = new QHBoxLayout;
    line->setSpacing(kGap);
    line->addWidget(m_search, 1);
    line->addStretch();
    line->addWidget(m_terminal);
    line->addWidget(m_files);
    line->addWidget(m_windows);
    auto* running = new QWidget;
    auto* column = new QVBoxLayout(running);
    column->setContentsMargins(kMargin, 16, kMargin, kGap);
    column->setSpacing(12);
    column->addLayout(line);
    column->addWidget(m_grid, 1);
    m_stack->addWidget(m_notice);
    m_stack->addWidget(running);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_stack);

    connect(m_search, &QLineEdit::textChanged, m_grid, &AppGrid::setFilter);
    connect(m_search, &QLineEdit::returnPressed, m_grid, &AppGrid::launchFirst);
    connect(m_grid, &AppGrid::launchRequested, this,
            [this](const QString& appId) { m_desk.apps.launch(m_path, appId); });
    connect(m_terminal, &QPushButton::clicked, this, [this] { launchCategory(kTerminals); });
    connect(m_files, &QPushButton::clicked, this, [this] { launchCategory(kFileManagers); });
    connect(m_windows, &QPushButton::clicked, this, [this] { m_desk.apps.showWindows(m_path); });
    connect(m_notice, &NoticePage::buttonClicked, this, &AppsPage::onNoticeButton);
    connect(&desk.apps, &AppCatalog::changed, this, [this](const QString& path) {
        if (path == m_path) {
            refresh();
        }
    });
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& path) {
        if (path == m_path) {
            refresh();
        }
    });
}

void AppsPage::setDomain(const QString& path) {
    if (path != m_path) {
        m_path = path;
        m_search->clear();
    }
    m_desk.apps.open(path);
    refresh();
}

void AppsPage::refresh() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    const QString name = shown(row->info.name, 64);
    const QString& state = row->info.state;
    m_notice->button()->setEnabled(row->task == Task::None);
    if (state == QLatin1String("running")) {
        refreshRunning();
        return;
    }
    m_stack->setCurrentWidget(m_notice);
    if (row->task == Task::Starting || state == QLatin1String("starting")) {
        m_notice->show(tr("%1 is starting").arg(name), tr("Its apps appear here as soon as it is up."));
    } else if (state == QLatin1String("stopping")) {
        m_notice->show(tr("%1 is stopping").arg(name), tr("Its programs are asked to end."));
    } else if (isPaused(row->info)) {
        m_notice->show(tr("%1 is paused").arg(name), tr("Unpause it: its programs go on where they stand."), {},
                       tr("Unpause it"));
    } else if (isSuspended(row->info)) {
        m_notice->show(tr("%1 is suspended").arg(name),
                       tr("Resume it: its programs and windows go on where they were."), {}, tr("Resume it"));
    } else {
        m_notice->show(tr("%1 does not run").arg(name), tr("Start it to see and open its apps."), {}, tr("Start it"));
    }
}

void AppsPage::refreshRunning() {
    const auto& row = *m_desk.domains.find(m_path);
    const QString name = shown(row.info.name, 64);
    const AppCatalog::Shelf& shelf = m_desk.apps.shelf(m_path);
    m_stack->setCurrentWidget(m_notice);
    switch (shelf.state) {
    case AppCatalog::State::Closed:
    case AppCatalog::State::Opening:
    case AppCatalog::State::Listing:
        m_notice->show(tr("Asking %1 for its apps").arg(name), {});
        break;
    case AppCatalog::State::NoSession:
        m_notice->show(tr("%1 has no desktop session").arg(name),
                       tr("A domain of a desktop template shows its apps here once its session is up. In any domain "
                          "that runs, a shell opens from a terminal:"),
                       shellCommand(row.info.name));
        break;
    case AppCatalog::State::Failed:
        m_notice->show(tr("The apps of %1 cannot be listed").arg(name), shelf.problem, {}, tr("Try again"));
        break;
    case AppCatalog::State::Ready:
        if (shelf.apps.isEmpty()) {
            m_notice->show(tr("%1 has no apps").arg(name),
                           tr("Its template installs none. A shell opens from a terminal:"),
                           shellCommand(row.info.name));
            break;
        }
        m_stack->setCurrentIndex(1);
        m_grid->setApps(shelf.apps);
        offer(m_terminal, firstOfCategory(shelf.apps, kTerminals), tr("Its template has no terminal app"));
        offer(m_files, firstOfCategory(shelf.apps, kFileManagers), tr("Its template has no file manager"));
        break;
    }
}

void AppsPage::onNoticeButton() {
    const auto* row = m_desk.domains.find(m_path);
    if (row != nullptr && row->info.state == QLatin1String("running")) {
        m_desk.apps.reopen(m_path);
    } else {
        m_desk.verbs.start(m_path);
    }
}

void AppsPage::launchCategory(const QStringList& categories) {
    if (const AppEntry* app = firstOfCategory(m_desk.apps.shelf(m_path).apps, categories)) {
        m_desk.apps.launch(m_path, app->id);
    }
}

} // namespace bulkhead::gui
