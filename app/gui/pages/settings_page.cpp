// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/settings_page.hpp"

#include "gui/desk.hpp"
#include "gui/widgets/command_line.hpp"
#include "gui/wording.hpp"
#include "widgets/label_paint.hpp"

#include <QDateTime>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLocale>
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
    , m_chip(new QLabel)
    , m_file(new CommandLine(tr("Path of the definition"), {}))
    , m_howTo(new TextLabel(TextLabel::Look::Quiet))
    , m_edit(new CommandLine(tr("Command that edits the definition"), {})) {
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(kMargin, 16, kMargin, kMargin);
    column->setSpacing(kSection);

    auto* form = new QFormLayout;
    form->setHorizontalSpacing(kSection);
    form->setVerticalSpacing(10);
    form->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    form->setFormAlignment(Qt::AlignLeft | Qt::AlignTop);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_kind = addRow(form, tr("Kind"));
    m_template = addRow(form, tr("Template"));
    m_size = addRow(form, tr("Size"));
    m_label = new TextLabel(TextLabel::Look::Body);
    auto* label = new QWidget;
    auto* labelLine = new QHBoxLayout(label);
    labelLine->setContentsMargins(0, 0, 0, 0);
    labelLine->setSpacing(kGap);
    labelLine->addWidget(m_chip);
    labelLine->addWidget(m_label, 1);
    form->addRow(new TextLabel(TextLabel::Look::Quiet, tr("Label")), label);
    m_network = addRow(form, tr("Network"));
    m_home = addRow(form, tr("Home"));
    m_tags = addRow(form, tr("Tags"));
    m_running = addRow(form, tr("Running"));
    column->addLayout(form);

    auto* definition = new QVBoxLayout;
    definition->setSpacing(kGap);
    definition->addWidget(new TextLabel(TextLabel::Look::Heading, tr("Definition")));
    definition->addWidget(m_file);
    definition->addWidget(m_howTo);
    definition->addWidget(m_edit);
    column->addLayout(definition);
    column->addStretch();

    auto* area = new QScrollArea;
    area->setWidget(content);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setAccessibleName(tr("Settings"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(area);
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& path) {
        if (path == m_path) {
            refresh();
        }
    });
    connect(&desk.templates, &TemplateModel::loaded, this, &SettingsPage::refresh);
}

TextLabel* SettingsPage::addRow(QFormLayout* form, const QString& caption) {
    auto* value = new TextLabel(TextLabel::Look::Body);
    value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    form->addRow(new TextLabel(TextLabel::Look::Quiet, caption), value);
    return value;
}

void SettingsPage::setDomain(const QString& path) {
    m_path = path;
    refresh();
}

void SettingsPage::refresh() {
    const auto* row = m_desk.domains.find(m_path);
    if (row == nullptr) {
        return;
    }
    const client::DomainInfo& info = row->info;
    const auto& templates = m_desk.templates.templates();
    const auto known = std::find_if(templates.begin(), templates.end(),
                                    [&](const auto& one) { return one.name == info.templateName; });
    const QString sizeName = info.size.isEmpty() && known != templates.end() ? known->defaultSize : info.size;
    QString size = orElse(sizeName, tr("the template's own"));
    if (known != templates.end() && known->sizes.contains(sizeName)) {
        size = sizeInWords(sizeName, known->sizes[sizeName]);
    }
    const client::Label& label = client::labelNamed(info.label.toStdString());
    m_chip->setPixmap(widgets::chipPixmap(label, widgets::themeOf(palette()), font(), devicePixelRatioF()));
    m_chip->setAccessibleName(tr("Label %1").arg(shown(info.label, 32)));
    say(m_kind, info.kind == QLatin1String("app")
                    ? tr("app domain: its home is kept, what it writes to the system is discarded when it stops")
                : info.kind == QLatin1String("disposable") ? tr("disposable: nothing of it is kept")
                                                           : tr("standalone domain: everything it writes is kept"));
    say(m_template, info.templateVersion.isEmpty()
                        ? orElse(info.templateName, tr("none"))
                        : tr("%1, version %2").arg(shown(info.templateName, 64), shown(info.templateVersion, 16)));
    say(m_size, size);
    say(m_label, orElse(info.label, tr("none")));
    say(m_network, info.egress == QLatin1String("none") || info.egress.isEmpty() ? tr("none: it reaches no network")
                                                                                 : shown(info.egress, 64));
    say(m_home, info.kind == QLatin1String("disposable") ? tr("none that is kept")
                : info.homeSize == 0                     ? tr("the template's own size")
                                                         : bytesInWords(info.homeSize));
    say(m_tags, info.tags.isEmpty() ? tr("none") : shown(info.tags.join(QStringLiteral(", "))));
    say(m_running, runningInWords(info));

    const QString file = shown(info.file);
    m_file->setVisible(!file.isEmpty());
    m_file->setCommand(file);
    m_edit->setVisible(!file.isEmpty());
    m_edit->setCommand(QStringLiteral("sudoedit %1 && sudo systemctl restart bulkheadd").arg(shellWord(info.file)));
    say(m_howTo, file.isEmpty() ? tr("A disposable has no definition that is kept.")
                                : tr("This version cannot change it from here. An administrator edits the file; the "
                                     "service reads it when it starts, and running domains go on meanwhile:"));
}

} // namespace bulkhead::gui
