// SPDX-License-Identifier: Apache-2.0
#include "gui/dialogs/create_dialog.hpp"

#include "client/domain_name.hpp"
#include "gui/desk.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/form_parts.hpp"
#include "gui/widgets/label_picker.hpp"
#include "gui/wording.hpp"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace bulkhead::gui {
namespace {

constexpr int kLargestHomeGiB = 4096;

} // namespace

CreateDialog::CreateDialog(Desk& desk, QWidget* parent)
    : QDialog(parent)
    , m_desk(desk)
    , m_name(new QLineEdit)
    , m_nameHint(new TextLabel(TextLabel::Look::Quiet))
    , m_template(new QComboBox)
    , m_templateHint(new TextLabel(TextLabel::Look::Quiet))
    , m_size(new QComboBox)
    , m_label(new LabelPicker)
    , m_home(new QSpinBox)
    , m_banner(new Banner) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("New domain"));
    setMinimumWidth(480);
    m_name->setAccessibleName(tr("Name"));
    m_name->setPlaceholderText(tr("work"));
    m_name->setMaxLength(64); // one too long is told of, not cut off unseen
    m_template->setAccessibleName(tr("Template"));
    m_size->setAccessibleName(tr("Size"));
    m_home->setAccessibleName(tr("Size of the home disk"));
    m_home->setRange(0, kLargestHomeGiB);
    m_home->setSuffix(tr(" GiB"));
    m_home->setSpecialValueText(tr("The template's own size"));
    m_label->choose(QStringLiteral("blue"));

    auto* form = new QFormLayout;
    form->setHorizontalSpacing(kSection);
    form->setVerticalSpacing(10);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->addRow(caption(tr("&Name"), m_name), withHint(m_name, m_nameHint));
    form->addRow(caption(tr("&Template"), m_template), withHint(m_template, m_templateHint));
    form->addRow(caption(tr("&Size"), m_size), m_size);
    form->addRow(caption(tr("&Label"), m_label), m_label);
    form->addRow(caption(tr("&Home"), m_home), m_home);
    auto* network = new TextLabel(TextLabel::Look::Quiet, tr("None. In this version no domain reaches a network."));
    form->addRow(new QLabel(tr("Network")), network);

    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_create = buttons->addButton(tr("&Create domain"), QDialogButtonBox::AcceptRole);
    m_create->setAccessibleName(tr("Create domain"));
    auto* cancel = buttons->button(QDialogButtonBox::Cancel);
    cancel->setAccessibleName(tr("Cancel"));
    cancel->setAutoDefault(false);
    makeRoomy(cancel);
    makeRoomy(m_create);
    for (QWidget* field : std::initializer_list<QWidget*>{m_name, m_template, m_size, m_label, m_home}) {
        field->setMinimumHeight(kControlHeight);
    }

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, 16);
    layout->setSpacing(16);
    layout->addWidget(new TextLabel(TextLabel::Look::Heading, tr("New domain")));
    layout->addWidget(m_banner);
    layout->addLayout(form);
    layout->addStretch();
    layout->addWidget(buttons);
    // Only once it is in the dialog does that know of it.
    m_create->setDefault(true);

    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_create, &QPushButton::clicked, this, &CreateDialog::submit);
    connect(m_name, &QLineEdit::textChanged, this, &CreateDialog::validate);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(m_template, &QComboBox::currentIndexChanged, this, &CreateDialog::showSizes);
    connect(&desk.templates, &TemplateModel::loaded, this, &CreateDialog::showTemplates);
    connect(&desk.templates, &TemplateModel::listFailed, this,
            [this](const client::Failure& failure) { m_banner->setText(sentence(failure)); });
    connect(&desk.link, &client::DaemonLink::stateChanged, this, [this] {
        setBusy(false);
        validate();
    });
    showTemplates();
    desk.templates.refresh();
    m_name->setFocus();
}

void CreateDialog::showTemplates() {
    const QString before = m_template->currentData().toString();
    const QSignalBlocker quiet(m_template);
    m_template->clear();
    for (const client::TemplateInfo& one : m_desk.templates.templates()) {
        m_template->addItem(one.built ? shown(one.name, 64) : tr("%1 (not built yet)").arg(shown(one.name, 64)),
                            one.name);
    }
    const int kept = m_template->findData(before);
    m_template->setCurrentIndex(kept >= 0 ? kept : std::max(0, m_template->findData(m_desk.templates.preferred())));
    showSizes();
}

void CreateDialog::showSizes() {
    m_size->clear();
    const int chosen = m_template->currentIndex();
    if (chosen < 0) {
        m_templateHint->setText(tr("There are no templates."));
        validate();
        return;
    }
    const client::TemplateInfo& one = m_desk.templates.templates()[chosen];
    for (auto size = one.sizes.begin(); size != one.sizes.end(); ++size) {
        m_size->addItem(sizeInWords(size.key(), *size), size.key());
    }
    m_size->setCurrentIndex(std::max(0, m_size->findData(one.defaultSize)));
    QString hint = shown(one.description, 160);
    if (!one.built) {
        hint += (hint.isEmpty() ? QString() : QStringLiteral("\n")) +
                tr("It starts once it is built: sudo bulkhead template build %1").arg(shellWord(one.name));
    }
    m_templateHint->setText(hint);
    m_templateHint->setVisible(!hint.isEmpty());
    validate();
}

QString CreateDialog::problemOfName() const {
    const QString name = m_name->text();
    QString problem = client::domainNameProblem(name);
    if (problem.isEmpty() && m_desk.domains.hasName(name)) {
        problem = tr("You have a domain of that name already.");
    }
    return problem;
}

void CreateDialog::validate() {
    const QString problem = problemOfName();
    // An empty field is not a mistake yet: say what will be accepted.
    const QString hint =
        m_name->text().isEmpty() ? tr("Lower-case letters, digits and dashes; a letter first.") : problem;
    m_nameHint->setText(hint);
    m_nameHint->setAccessibleName(hint);
    m_name->setAccessibleDescription(hint);
    m_create->setEnabled(!m_isBusy && problem.isEmpty() && m_template->currentIndex() >= 0 &&
                         m_desk.link.isAvailable());
}

void CreateDialog::setBusy(bool isBusy) {
    m_isBusy = isBusy;
    m_create->setText(isBusy ? tr("Creating…") : tr("&Create domain"));
    for (QWidget* field : std::initializer_list<QWidget*>{m_name, m_template, m_size, m_label, m_home}) {
        field->setEnabled(!isBusy);
    }
    validate();
}

void CreateDialog::submit() {
    if (m_isBusy || !problemOfName().isEmpty()) {
        return;
    }
    client::CreateOptions options;
    options.templateName = m_template->currentData().toString();
    options.size = m_size->currentData().toString();
    options.label = m_label->label();
    if (m_home->value() > 0) {
        options.homeSize = QStringLiteral("%1GiB").arg(m_home->value());
    }
    m_banner->setText({});
    setBusy(true);
    const QPointer<CreateDialog> alive(this);
    m_desk.verbs.create(m_name->text(), options, [this, alive](client::Outcome<QString> path) {
        if (!alive) {
            return;
        }
        setBusy(false);
        if (!path) {
            const QString advice = adviceFor(path.error());
            m_banner->setText(advice.isEmpty() ? sentence(path.error())
                                               : sentence(path.error()) + QLatin1Char(' ') + advice);
            m_name->setFocus();
            return;
        }
        Q_EMIT created(*path);
        accept();
    });
}

} // namespace bulkhead::gui
