// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/first_run_page.hpp"

#include "gui/desk.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/command_line.hpp"
#include "gui/wording.hpp"

#include <QHBoxLayout>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QStyle>
#include <QVBoxLayout>

#include <algorithm>
#include <unistd.h>

namespace bulkhead::gui {
namespace {

/// The first three, with the labels that go from least to most trusted.
const QStringList kFirst{QStringLiteral("browser"), QStringLiteral("work"), QStringLiteral("vault")};

QString labelOf(const QString& name) {
    return name == kFirst[0]   ? QStringLiteral("red")
           : name == kFirst[1] ? QStringLiteral("blue")
                               : QStringLiteral("black");
}

/// A fix is a command or advice in words; nothing but its form tells which.
bool isCommand(const QString& fix) {
    static const QRegularExpression kCommand(
        QStringLiteral("\\A(sudo|bulkhead|apt|apt-get|systemctl|modprobe|chgrp|chmod|chown|usermod) "));
    return kCommand.match(fix).hasMatch();
}

void clear(QVBoxLayout* layout) {
    while (QLayoutItem* item = layout->takeAt(0)) {
        if (QWidget* widget = item->widget()) {
            widget->hide();
            widget->deleteLater();
        }
        delete item;
    }
}

QVBoxLayout* addSection(QVBoxLayout* column, const QString& heading, const QString& text) {
    auto* section = new QVBoxLayout;
    section->setSpacing(kGap);
    section->addWidget(new TextLabel(TextLabel::Look::Heading, heading));
    if (!text.isEmpty()) {
        section->addWidget(new TextLabel(TextLabel::Look::Quiet, text));
    }
    column->addLayout(section);
    return section;
}

QVBoxLayout* addList(QVBoxLayout* section) {
    auto* list = new QVBoxLayout;
    list->setSpacing(kGap);
    section->addLayout(list);
    return list;
}

} // namespace

FirstRunPage::FirstRunPage(Desk& desk, QWidget* parent)
    : QWidget(parent)
    , m_desk(desk)
    , m_hostSummary(new TextLabel(TextLabel::Look::Quiet, tr("Not examined yet.")))
    , m_examine(new QPushButton(tr("Examine &again")))
    , m_create(new QPushButton(tr("Create browser, work and vault")))
    , m_banner(new Banner) {
    auto* content = new QWidget;
    content->setMaximumWidth(760);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(kMargin, kMargin, kMargin, kMargin);
    column->setSpacing(28);
    auto* welcome = new QVBoxLayout;
    welcome->setSpacing(kGap);
    welcome->addWidget(new TextLabel(TextLabel::Look::Title, tr("Welcome to Bulkhead")));
    welcome->addWidget(new TextLabel(TextLabel::Look::Body,
                                     tr("Each domain is a small computer of its own. What you open in one cannot "
                                        "reach your files, nor what is in another.")));
    column->addLayout(welcome);

    auto* host = addSection(column, tr("1. This computer"), {});
    host->addWidget(m_hostSummary);
    m_findings = addList(host);
    host->addWidget(m_examine, 0, Qt::AlignLeft);
    auto* templates = addSection(column, tr("2. Templates"), tr("The systems that domains start from."));
    m_templates = addList(templates);
    auto* domains =
        addSection(column, tr("3. Your first domains"),
                   tr("“browser” for the web, “work” for what matters, “vault” for what is to stay secret. In this "
                      "version none of "
                      "them reaches a network yet: a browser shows what is in its domain, and no page of the web."));
    domains->addWidget(m_banner);
    auto* own = new QPushButton(tr("New domain…"));
    own->setAccessibleName(tr("Create a domain of your own"));
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(kGap);
    buttons->addWidget(m_create);
    buttons->addWidget(own);
    buttons->addStretch();
    domains->addLayout(buttons);
    column->addStretch();
    for (QPushButton* button : {m_examine, m_create, own}) {
        makeRoomy(button);
    }
    m_create->setAccessibleName(m_create->text());
    m_create->setDefault(true);
    m_examine->setAccessibleName(tr("Examine this computer again"));

    auto* outer = new QWidget;
    auto* centre = new QHBoxLayout(outer);
    centre->setContentsMargins(0, 0, 0, 0);
    centre->addStretch(1);
    centre->addWidget(content, 100);
    centre->addStretch(1);
    auto* area = new QScrollArea;
    area->setWidget(outer);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setAccessibleName(tr("First steps"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(area);

    connect(m_examine, &QPushButton::clicked, this, &FirstRunPage::examine);
    connect(m_create, &QPushButton::clicked, this, &FirstRunPage::createFirst);
    connect(own, &QPushButton::clicked, this, &FirstRunPage::newDomainRequested);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(&desk.templates, &TemplateModel::loaded, this, &FirstRunPage::showTemplates);
    connect(&desk.verbs, &Verbs::busyChanged, this, &FirstRunPage::showVerbs);
    showTemplates();
}

void FirstRunPage::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    m_desk.templates.refresh();
    if (!m_wasExamined) {
        examine();
    }
}

void FirstRunPage::examine() {
    if (!m_desk.link.isAvailable() || m_desk.verbs.isExamining()) {
        return;
    }
    m_hostSummary->setText(tr("Looking at what it can do…"));
    m_desk.verbs.examine(m_wasExamined, [this](const client::Outcome<QVariantMap>& result) { showFindings(result); });
    m_wasExamined = true;
}

void FirstRunPage::showFindings(const client::Outcome<QVariantMap>& result) {
    clear(m_findings);
    const auto findings = result.and_then(client::findingsFrom);
    if (!findings) {
        m_hostSummary->setText(findings.error().code == client::code::kCancelled ? tr("The examination was cancelled.")
                                                                                 : sentence(findings.error()));
        return;
    }
    qsizetype notes = 0;
    for (const client::Finding& finding : *findings) {
        if (finding.status != QLatin1String("ok")) {
            addFinding(finding);
            ++notes;
        }
    }
    m_hostSummary->setText(notes == 0 ? tr("All %1 checks are well.").arg(findings->size())
                                      : tr("%1 of %2 checks are well. The rest, with what to do:")
                                            .arg(findings->size() - notes)
                                            .arg(findings->size()));
    m_hostSummary->setAccessibleName(m_hostSummary->text());
}

void FirstRunPage::addFinding(const client::Finding& finding) {
    auto* widget = new QWidget;
    auto* line = new QHBoxLayout(widget);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(10);
    const bool isWarning = finding.status == QLatin1String("warning");
    auto* icon = new QLabel;
    const int side = style()->pixelMetric(QStyle::PM_SmallIconSize);
    icon->setPixmap(style()
                        ->standardIcon(isWarning ? QStyle::SP_MessageBoxWarning : QStyle::SP_MessageBoxCritical)
                        .pixmap(side, side));
    icon->setAccessibleName(isWarning ? tr("Warning") : tr("Problem"));
    auto* words = new QVBoxLayout;
    words->setSpacing(4);
    words->addWidget(
        new TextLabel(TextLabel::Look::Body, tr("%1: %2").arg(shown(finding.check, 60), shown(finding.text))));
    const QStringList fixes = finding.fix.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    for (const QString& fix : fixes) {
        if (isCommand(fix)) {
            words->addWidget(new CommandLine(tr("What to do about %1").arg(shown(finding.check, 60)), shown(fix)));
        } else {
            words->addWidget(new TextLabel(TextLabel::Look::Quiet, shown(fix)));
        }
    }
    line->addWidget(icon, 0, Qt::AlignTop);
    line->addLayout(words, 1);
    m_findings->addWidget(widget);
}

void FirstRunPage::showTemplates() {
    clear(m_templates);
    const bool isAdministrator = ::geteuid() == 0;
    for (const client::TemplateInfo& one : m_desk.templates.templates()) {
        auto* widget = new QWidget;
        auto* column = new QVBoxLayout(widget);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(4);
        const QString name = shown(one.name, 64);
        column->addWidget(
            new TextLabel(TextLabel::Look::Body, one.built ? tr("%1: built, %2").arg(name, bytesInWords(one.sizeOnDisk))
                                                           : tr("%1: not built yet").arg(name)));
        if (!one.description.isEmpty()) {
            column->addWidget(new TextLabel(TextLabel::Look::Quiet, shown(one.description, 160)));
        }
        if (!one.built && isAdministrator) {
            auto* build = new QPushButton(tr("Build %1").arg(name));
            makeRoomy(build);
            build->setAccessibleName(tr("Build template %1").arg(name));
            connect(build, &QPushButton::clicked, this, [this, build, template_ = one.name] {
                build->setEnabled(false); // until the list comes again
                m_desk.verbs.buildTemplate(template_);
            });
            column->addWidget(build, 0, Qt::AlignLeft);
        } else if (!one.built) {
            column->addWidget(
                new CommandLine(tr("Command that builds template %1").arg(name),
                                QStringLiteral("sudo bulkhead template build %1").arg(shellWord(one.name))));
        }
        m_templates->addWidget(widget);
    }
    if (m_desk.templates.isLoaded() && m_desk.templates.templates().isEmpty()) {
        m_templates->addWidget(new TextLabel(TextLabel::Look::Body,
                                             tr("There are none: the files that describe them are not installed.")));
    }
    showVerbs();
}

void FirstRunPage::showVerbs() {
    m_examine->setEnabled(!m_desk.verbs.isExamining());
    const bool canCreate = !m_desk.templates.preferred().isEmpty();
    m_create->setEnabled(canCreate && !m_isCreating);
    m_create->setText(m_isCreating ? tr("Creating…") : tr("Create browser, work and vault"));
    m_create->setToolTip(canCreate ? QString() : tr("Build a template first"));
    m_create->setAccessibleDescription(m_create->toolTip());
}

void FirstRunPage::createFirst() {
    if (m_isCreating) {
        return;
    }
    m_isCreating = true;
    m_banner->setText({});
    showVerbs();
    createNext(kFirst);
}

void FirstRunPage::createNext(QStringList names) {
    // What is there from an attempt that stopped half-way stays as it is.
    while (!names.isEmpty() && m_desk.domains.hasName(names.front())) {
        names.removeFirst();
    }
    if (names.isEmpty()) {
        m_isCreating = false;
        showVerbs();
        return;
    }
    const QString name = names.takeFirst();
    client::CreateOptions options;
    options.templateName = m_desk.templates.preferred();
    options.label = labelOf(name);
    options.egress = QStringLiteral("none");
    m_desk.verbs.create(name, options, [this, name, names](const client::Outcome<QString>& path) {
        if (!path && path.error().code != "AlreadyExists") {
            m_isCreating = false;
            showVerbs();
            m_banner->setText(tr("%1 was not created: %2").arg(name, sentence(path.error())));
            return;
        }
        createNext(names);
    });
}

} // namespace bulkhead::gui
