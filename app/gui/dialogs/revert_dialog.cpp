// SPDX-License-Identifier: Apache-2.0
#include "gui/dialogs/revert_dialog.hpp"

#include "client/snapshots.hpp"
#include "gui/desk.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/roomy_list.hpp"
#include "gui/wording.hpp"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QPointer>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>

namespace bulkhead::gui {
namespace {

enum Column { Taken, What, Kind, Size };
constexpr int kIdRole = Qt::UserRole + 1;

/// The user's name for it, or why it was taken; and what else is to be known before going there.
QString whatItIs(const client::SnapshotInfo& snapshot, bool isHere) {
    QStringList words{snapshot.label.isEmpty() ? reasonInWords(snapshot.reason) : shown(snapshot.label, 80)};
    if (isHere) {
        words.append(RevertDialog::tr("the present began here"));
    }
    if (snapshot.isPinned) {
        words.append(RevertDialog::tr("pinned"));
    }
    if (!snapshot.suspect.isEmpty()) {
        words.append(RevertDialog::tr("suspect"));
    }
    return words.join(QStringLiteral(", "));
}

/// A dark desktop's empty box would hardly stand out from the window.
void makeVisible(QCheckBox* box) {
    QPalette palette = box->palette();
    if (palette.color(QPalette::Window).lightness() < 128) {
        palette.setColor(QPalette::Base, palette.color(QPalette::Button).lighter(120));
        box->setPalette(palette);
    }
}

} // namespace

RevertDialog::RevertDialog(Desk& desk, const QString& path, QWidget* parent)
    : QDialog(parent)
    , m_desk(desk)
    , m_path(path)
    , m_banner(new Banner)
    , m_list(new QTreeWidget)
    , m_none(new TextLabel(TextLabel::Look::Body))
    , m_keep(new QCheckBox(tr("&Keep what is there now, as a snapshot")))
    , m_boot(new QCheckBox(tr("&Leave the memory out, so that it boots")))
    , m_effect(new TextLabel(TextLabel::Look::Quiet)) {
    const auto* row = desk.domains.find(path);
    m_name = row == nullptr ? QString() : shown(row->info.name, 64);
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Revert %1").arg(m_name));
    resize(680, 460);

    m_list->setAccessibleName(tr("Snapshots of %1, the newest first").arg(m_name));
    makeRoomyList(m_list, {tr("Taken"), tr("What it is"), tr("Holds"), tr("Size")}, What);
    m_keep->setChecked(true);
    m_keep->setAccessibleName(tr("Keep what is there now, as a snapshot"));
    m_boot->setAccessibleName(tr("Leave the memory out, so that it boots"));
    m_none->hide();
    makeVisible(m_keep);
    makeVisible(m_boot);

    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_revert = buttons->addButton(tr("&Revert"), QDialogButtonBox::AcceptRole);
    m_revert->setAccessibleName(tr("Revert %1").arg(m_name));
    auto* cancel = buttons->button(QDialogButtonBox::Cancel);
    cancel->setAccessibleName(tr("Cancel"));
    cancel->setAutoDefault(false);
    makeRoomy(cancel);
    makeRoomy(m_revert);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, 16);
    layout->setSpacing(12);
    layout->addWidget(new TextLabel(TextLabel::Look::Heading, tr("Revert %1 to a snapshot").arg(m_name)));
    layout->addWidget(m_banner);
    layout->addWidget(m_none, 1, Qt::AlignTop);
    layout->addWidget(m_list, 1);
    layout->addWidget(m_keep);
    layout->addWidget(m_boot);
    layout->addWidget(m_effect);
    layout->addSpacing(kGap);
    layout->addWidget(buttons);
    m_revert->setDefault(true); // only once it is in the dialog does that know of it

    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_revert, &QPushButton::clicked, this, &RevertDialog::submit);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(m_list, &QTreeWidget::currentItemChanged, this, &RevertDialog::refresh);
    connect(m_list, &QTreeWidget::itemDoubleClicked, this, &RevertDialog::submit);
    connect(m_keep, &QCheckBox::toggled, this, &RevertDialog::refresh);
    connect(m_boot, &QCheckBox::toggled, this, &RevertDialog::refresh);
    connect(&desk.domains, &DomainModel::domainChanged, this, [this](const QString& changed) {
        if (changed == m_path) {
            refresh();
        }
    });
    connect(&desk.domains, &DomainModel::domainGone, this, [this](const QString& gone) {
        if (gone == m_path) {
            reject();
        }
    });
    connect(&desk.link, &client::DaemonLink::snapshotsChanged, this, [this](const QString& changed) {
        if (changed == m_path) {
            load();
        }
    });
    refresh();
    load();
    m_list->setFocus();
}

void RevertDialog::load() {
    const QPointer<RevertDialog> alive(this);
    m_desk.verbs.listSnapshots(m_path, [this, alive](client::Outcome<QList<client::SnapshotInfo>> snapshots) {
        if (!alive) {
            return;
        }
        if (snapshots) {
            fill(*snapshots);
        } else {
            m_banner->setText(tr("The snapshots cannot be listed: %1").arg(sentence(snapshots.error())));
        }
    });
}

void RevertDialog::fill(const QList<client::SnapshotInfo>& snapshots) {
    const auto* before = chosen();
    const QString wanted = before == nullptr ? QString() : before->id;
    const auto* row = m_desk.domains.find(m_path);
    const QString head = row == nullptr ? QString() : row->info.head;
    const QSignalBlocker quiet(m_list);
    m_list->clear();
    m_snapshots = snapshots;
    for (const auto& snapshot : m_snapshots) {
        auto* item = new QTreeWidgetItem({timeInWords(snapshot.createdAt), whatItIs(snapshot, snapshot.id == head),
                                          snapshotKindInWords(snapshot), bytesInWords(snapshot.sizeOnDisk)});
        item->setData(Taken, kIdRole, snapshot.id);
        item->setTextAlignment(Size, Qt::AlignRight | Qt::AlignVCenter);
        item->setToolTip(What, tr("Snapshot %1").arg(shown(client::shortId(snapshot.id), 16)));
        m_list->addTopLevelItem(item);
        if (snapshot.id == wanted) {
            m_list->setCurrentItem(item);
        }
    }
    if (m_list->currentItem() == nullptr) {
        m_list->setCurrentItem(m_list->topLevelItem(0));
    }
    m_none->setText(tr("%1 has no snapshots yet. “Take a snapshot” under More takes one.").arg(m_name));
    m_none->setVisible(m_snapshots.isEmpty());
    refresh();
}

const client::SnapshotInfo* RevertDialog::chosen() const {
    const auto* item = m_list->currentItem();
    const QString id = item == nullptr ? QString() : item->data(Taken, kIdRole).toString();
    const auto found =
        std::find_if(m_snapshots.begin(), m_snapshots.end(), [&](const auto& one) { return one.id == id; });
    return found == m_snapshots.end() ? nullptr : &*found;
}

QString RevertDialog::effect() const {
    const auto* snapshot = chosen();
    const auto* row = m_desk.domains.find(m_path);
    if (snapshot == nullptr || row == nullptr) {
        return {};
    }
    QStringList said;
    if (!snapshot->suspect.isEmpty()) {
        said.append(tr("This snapshot is suspect: %1").arg(sentence({{}, snapshot->suspect.toStdString()})));
    }
    const bool goesOn = snapshot->isFull() && !m_boot->isChecked();
    const bool isRunning = row->info.state == QLatin1String("running") || row->info.state == QLatin1String("paused");
    if (isRunning) {
        said.append(goesOn ? tr("%1 goes on from there, with the programs that ran then.").arg(m_name)
                           : tr("%1 boots again, with its disks of then.").arg(m_name));
    } else {
        said.append(goesOn ? tr("%1 is suspended there: Resume goes on with the programs that ran then.").arg(m_name)
                           : tr("%1 stays stopped, with its disks of then.").arg(m_name));
    }
    if (!m_keep->isChecked()) {
        said.append(tr("What is there now is lost."));
    }
    return said.join(QLatin1Char(' '));
}

void RevertDialog::refresh() {
    const auto* snapshot = chosen();
    const auto* row = m_desk.domains.find(m_path);
    const bool isFree = row != nullptr && row->task == Task::None;
    m_boot->setEnabled(snapshot != nullptr && snapshot->isFull());
    m_revert->setEnabled(snapshot != nullptr && isFree);
    m_list->setVisible(!m_snapshots.isEmpty() || !m_none->isVisibleTo(this));
    for (QWidget* widget : std::initializer_list<QWidget*>{m_keep, m_boot, m_effect}) {
        widget->setVisible(!m_none->isVisibleTo(this));
    }
    m_effect->setText(isFree || row == nullptr ? effect() : tr("%1 is busy with something else.").arg(m_name));
    setAccessibleDescription(m_effect->text());
}

void RevertDialog::submit() {
    const auto* snapshot = chosen();
    if (snapshot == nullptr || !m_revert->isEnabled()) {
        return;
    }
    m_desk.verbs.revert(m_path, snapshot->id, {m_keep->isChecked(), snapshot->isFull() && m_boot->isChecked()});
    accept();
}

} // namespace bulkhead::gui
