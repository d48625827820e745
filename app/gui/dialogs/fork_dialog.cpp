// SPDX-License-Identifier: Apache-2.0
#include "gui/dialogs/fork_dialog.hpp"

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
#include <QVBoxLayout>

namespace bulkhead::gui {

ForkDialog::ForkDialog(Desk& desk, const QString& path, QWidget* parent)
    : QDialog(parent)
    , m_desk(desk)
    , m_path(path)
    , m_name(new QLineEdit)
    , m_nameHint(new TextLabel(TextLabel::Look::Quiet))
    , m_from(new QComboBox)
    , m_label(new LabelPicker)
    , m_banner(new Banner) {
    const auto* row = desk.domains.find(path);
    const QString source = row == nullptr ? QString() : shown(row->info.name, 64);
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Fork %1").arg(source));
    setMinimumWidth(480);
    m_name->setAccessibleName(tr("Name"));
    m_name->setMaxLength(64); // one too long is told of, not cut off unseen
    m_from->setAccessibleName(tr("Begins"));
    m_from->addItem(tr("Where %1 stands now").arg(source), QString());
    m_from->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_from->setMinimumContentsLength(24);
    m_label->choose(row == nullptr ? QString() : row->info.label);

    auto* form = new QFormLayout;
    form->setHorizontalSpacing(kSection);
    form->setVerticalSpacing(10);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->addRow(caption(tr("&Name"), m_name), withHint(m_name, m_nameHint));
    form->addRow(caption(tr("&Begins"), m_from), m_from);
    form->addRow(caption(tr("&Label"), m_label), m_label);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_create = buttons->addButton(tr("&Create domain"), QDialogButtonBox::AcceptRole);
    m_create->setAccessibleName(tr("Create domain"));
    auto* cancel = buttons->button(QDialogButtonBox::Cancel);
    cancel->setAccessibleName(tr("Cancel"));
    cancel->setAutoDefault(false);
    makeRoomy(cancel);
    makeRoomy(m_create);
    for (QWidget* field : std::initializer_list<QWidget*>{m_name, m_from, m_label}) {
        field->setMinimumHeight(kControlHeight);
    }

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, 16);
    layout->setSpacing(16);
    layout->addWidget(new TextLabel(TextLabel::Look::Heading, tr("Fork %1").arg(source)));
    layout->addWidget(new TextLabel(
        TextLabel::Look::Quiet,
        tr("A new domain with the disks and programs of %1. From there each goes its own way; %1 is not disturbed.")
            .arg(source)));
    layout->addWidget(m_banner);
    layout->addLayout(form);
    layout->addStretch();
    layout->addWidget(buttons);
    m_create->setDefault(true); // only once it is in the dialog does that know of it

    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_create, &QPushButton::clicked, this, &ForkDialog::submit);
    connect(m_name, &QLineEdit::textChanged, this, &ForkDialog::validate);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(&desk.link, &client::DaemonLink::stateChanged, this, [this] { setBusy(false); });
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& changed) {
        if (changed == m_path) {
            validate();
        }
    });
    connect(&desk.domains, &DomainModel::domainGone, this, [this](const QString& gone) {
        if (gone == m_path) {
            reject();
        }
    });
    validate();
    load();
    m_name->setFocus();
}

void ForkDialog::load() {
    const QPointer<ForkDialog> alive(this);
    m_desk.verbs.listSnapshots(m_path, [this, alive](client::Outcome<QList<client::SnapshotInfo>> snapshots) {
        if (!alive) {
            return;
        }
        if (!snapshots) {
            m_banner->setText(tr("The snapshots cannot be listed: %1").arg(sentence(snapshots.error())));
            return;
        }
        for (const auto& snapshot : *snapshots) {
            const QString what = snapshot.label.isEmpty() ? reasonInWords(snapshot.reason) : shown(snapshot.label, 80);
            m_from->addItem(tr("At the snapshot of %1 (%2)").arg(timeInWords(snapshot.createdAt), what), snapshot.id);
        }
    });
}

QString ForkDialog::problemOfName() const {
    const QString name = m_name->text();
    QString problem = client::domainNameProblem(name);
    if (problem.isEmpty() && m_desk.domains.hasName(name)) {
        problem = tr("You have a domain of that name already.");
    }
    return problem;
}

void ForkDialog::validate() {
    const QString problem = problemOfName();
    // An empty field is not a mistake yet: say what will be accepted.
    const QString hint =
        m_name->text().isEmpty() ? tr("Lower-case letters, digits and dashes; a letter first.") : problem;
    m_nameHint->setText(hint);
    m_nameHint->setAccessibleName(hint);
    m_name->setAccessibleDescription(hint);
    const auto* row = m_desk.domains.find(m_path);
    m_create->setEnabled(!m_isBusy && problem.isEmpty() && m_desk.link.isAvailable() && row != nullptr &&
                         row->task == Task::None);
}

void ForkDialog::setBusy(bool isBusy) {
    m_isBusy = isBusy;
    m_create->setText(isBusy ? tr("Creating…") : tr("&Create domain"));
    for (QWidget* field : std::initializer_list<QWidget*>{m_name, m_from, m_label}) {
        field->setEnabled(!isBusy);
    }
    validate();
}

void ForkDialog::submit() {
    if (!m_create->isEnabled()) {
        return;
    }
    m_banner->setText({});
    setBusy(true);
    client::ForkOptions options;
    options.label = m_label->label();
    const QPointer<ForkDialog> alive(this);
    m_desk.verbs.fork(m_path, m_from->currentData().toString(), m_name->text(), options,
                      [this, alive](client::Outcome<QString> path) {
                          if (!alive) {
                              return;
                          }
                          setBusy(false);
                          if (path) {
                              Q_EMIT created(*path);
                              accept();
                          } else if (path.error().code != client::code::kCancelled) {
                              const QString advice = adviceFor(path.error());
                              m_banner->setText((sentence(path.error()) + QLatin1Char(' ') + advice).trimmed());
                              m_name->setFocus();
                          }
                      });
}

} // namespace bulkhead::gui
