// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/settings_page.hpp"

#include "gui/desk.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/command_line.hpp"
#include "gui/widgets/definition_form.hpp"
#include "gui/wording.hpp"

#include <QDateTime>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLocale>
#include <QPointer>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace bulkhead::gui {
namespace {

void say(QLabel* label, const QString& text) {
    label->setText(text);
    label->setAccessibleName(text);
}

QString orElse(const QString& text, const QString& other) {
    return text.isEmpty() ? other : shown(text);
}

QString runningInWords(const client::DomainInfo& info) {
    if (!info.startedAt) {
        return SettingsPage::tr("no");
    }
    const QString since = QLocale().toString(QDateTime::fromSecsSinceEpoch(*info.startedAt), QLocale::ShortFormat);
    return info.acceleration == QLatin1String("emulation")
               ? SettingsPage::tr("since %1, emulated: slow, since this host offers no virtualization").arg(since)
               : SettingsPage::tr("since %1").arg(since);
}

} // namespace

SettingsPage::SettingsPage(Desk& desk, QWidget* parent)
    : QWidget(parent)
    , m_desk(desk)
    , m_editor(new QWidget)
    , m_banner(new Banner)
    , m_form(new DefinitionForm)
    , m_apply(new QPushButton(tr("Appl&y")))
    , m_revert(new QPushButton(tr("Re&vert")))
    , m_outcome(new TextLabel(TextLabel::Look::Quiet))
    , m_file(new CommandLine(tr("Path of the definition"), {}))
    , m_howTo(new TextLabel(TextLabel::Look::Quiet)) {
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(kMargin, 16, kMargin, kMargin);
    column->setSpacing(kSection);

    m_apply->setAccessibleName(tr("Apply the changed settings"));
    m_revert->setAccessibleName(tr("Revert the changed settings"));
    makeRoomy(m_apply);
    makeRoomy(m_revert);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(kGap);
    buttons->addWidget(m_apply);
    buttons->addWidget(m_revert);
    buttons->addWidget(m_outcome, 1);
    auto* editor = new QVBoxLayout(m_editor);
    editor->setContentsMargins(0, 0, 0, 0);
    editor->setSpacing(16);
    editor->addWidget(m_banner);
    editor->addWidget(m_form);
    editor->addLayout(buttons);
    column->addWidget(m_editor);

    auto* facts = new QFormLayout;
    facts->setHorizontalSpacing(kSection);
    facts->setVerticalSpacing(10);
    facts->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    facts->setFormAlignment(Qt::AlignLeft | Qt::AlignTop);
    facts->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_kind = addRow(facts, tr("Kind"));
    m_template = addRow(facts, tr("Template"));
    m_network = addRow(facts, tr("Network"));
    m_running = addRow(facts, tr("Running"));
    column->addLayout(facts);

    auto* definition = new QVBoxLayout;
    definition->setSpacing(kGap);
    definition->addWidget(new TextLabel(TextLabel::Look::Heading, tr("Definition")));
    definition->addWidget(m_file);
    definition->addWidget(m_howTo);
    column->addLayout(definition);
    column->addStretch();

    auto* area = new QScrollArea;
    area->setWidget(content);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setAccessibleName(tr("Settings"));
    area->setFocusPolicy(Qt::NoFocus); // Tab goes to the fields; they scroll into view
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(area);
    connect(m_form, &DefinitionForm::edited, this, &SettingsPage::refreshButtons);
    connect(m_form, &DefinitionForm::submitted, this, &SettingsPage::apply);
    connect(m_apply, &QPushButton::clicked, this, &SettingsPage::apply);
    connect(m_revert, &QPushButton::clicked, this, &SettingsPage::revert);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& path) {
        if (path == m_path) {
            refresh();
        }
    });
    connect(&desk.templates, &TemplateModel::loaded, this, &SettingsPage::refresh);
    connect(&desk.link, &client::DaemonLink::stateChanged, this, [this] {
        m_isBusy = false; // a daemon that went answers no more
        m_form->setBusy(false);
        refreshButtons();
    });
}

TextLabel* SettingsPage::addRow(QFormLayout* form, const QString& caption) {
    auto* value = new TextLabel(TextLabel::Look::Body);
    value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    form->addRow(new TextLabel(TextLabel::Look::Quiet, caption), value);
    return value;
}

void SettingsPage::setDomain(const QString& path) {
    if (path != m_path) {
        m_path = path;
        m_isBusy = false;
        m_form->setBusy(false);
        revert();
    }
    refresh();
}

void SettingsPage::refresh() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    const client::DomainInfo& info = row->info;
    const bool isDisposable = info.kind == QLatin1String("disposable");
    const auto& templates = m_desk.templates.templates();
    const auto known = std::find_if(templates.begin(), templates.end(),
                                    [&](const auto& one) { return one.name == info.templateName; });
    m_editor->setVisible(!isDisposable);
    m_form->follow(info, known == templates.end() ? nullptr : &*known);
    say(m_kind, info.kind == QLatin1String("app")
                    ? tr("app domain: its home is kept, what it writes to the system is discarded when it stops")
                : isDisposable ? tr("disposable: nothing of it is kept")
                               : tr("standalone domain: everything it writes is kept"));
    say(m_template, info.templateVersion.isEmpty()
                        ? orElse(info.templateName, tr("none"))
                        : tr("%1, version %2").arg(shown(info.templateName, 64), shown(info.templateVersion, 16)));
    say(m_network, info.egress == QLatin1String("none") || info.egress.isEmpty() ? tr("none: it reaches no network")
                                                                                 : shown(info.egress, 64));
    say(m_running, runningInWords(info));

    const QString file = shown(info.file);
    m_file->setVisible(!file.isEmpty());
    m_file->setCommand(file);
    say(m_howTo, file.isEmpty()   ? tr("A disposable has no definition that is kept.")
                 : info.isManaged ? tr("An administrator defines this domain; only they change it, in this file.")
                                  : tr("Apply writes this file. Comments that somebody wrote into it are kept."));
    refreshButtons();
}

void SettingsPage::refreshButtons() {
    const bool isEdited = !m_form->changes().isEmpty();
    m_apply->setText(m_isBusy ? tr("Applying…") : tr("Appl&y"));
    m_apply->setEnabled(isEdited && !m_isBusy && m_desk.link.isAvailable());
    m_revert->setEnabled(isEdited && !m_isBusy);
    if (isEdited) {
        say(m_outcome, {});
    }
}

void SettingsPage::revert() {
    m_banner->setText({});
    say(m_outcome, {});
    m_form->revert();
}

void SettingsPage::apply() {
    const QVariantMap changes = m_form->changes();
    if (m_isBusy || changes.isEmpty()) {
        return;
    }
    m_banner->setText({});
    m_form->clearProblems();
    m_isBusy = true;
    m_form->setBusy(true);
    refreshButtons();
    const QPointer<SettingsPage> alive(this);
    m_desk.verbs.setDefinition(m_path, changes, [this, alive, path = m_path](client::Outcome<client::DomainInfo> info) {
        if (!alive || path != m_path) {
            return;
        }
        m_isBusy = false;
        m_form->setBusy(false);
        if (!info) {
            if (!m_form->showProblem(info.error())) {
                const QString advice = adviceFor(info.error());
                m_banner->setText(sentence(info.error()) + (advice.isEmpty() ? QString() : QLatin1Char(' ') + advice));
            }
            refreshButtons();
            return;
        }
        refresh();
        say(m_outcome, info->isRestartNeeded ? tr("Saved. It takes effect at the next start.") : tr("Saved."));
    });
}

} // namespace bulkhead::gui
