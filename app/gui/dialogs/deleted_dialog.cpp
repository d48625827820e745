// SPDX-License-Identifier: Apache-2.0
#include "gui/dialogs/deleted_dialog.hpp"

#include "client/domain_name.hpp"
#include "gui/desk.hpp"
#include "gui/widgets/banner.hpp"
#include "gui/widgets/roomy_list.hpp"
#include "gui/wording.hpp"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>

namespace bulkhead::gui {
namespace {

enum Column { Name, Removed, Goes, Size };
constexpr int kIdRole = Qt::UserRole + 1;
constexpr int kLongestName = 31;

} // namespace

DeletedDialog::DeletedDialog(Desk& desk, QWidget* parent)
    : QDialog(parent)
    , m_desk(desk)
    , m_banner(new Banner)
    , m_list(new QTreeWidget)
    , m_none(new TextLabel(TextLabel::Look::Body, tr("There are no removed domains that could be brought back.")))
    , m_naming(new QWidget)
    , m_name(new QLineEdit)
    , m_hint(new TextLabel(TextLabel::Look::Quiet)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Deleted domains"));
    setAccessibleDescription(tr("Arrow keys choose a domain, Enter brings it back"));
    resize(680, 420);

    m_list->setAccessibleName(tr("Deleted domains, the last one first"));
    makeRoomyList(m_list, {tr("Name"), tr("Removed"), tr("Goes for good"), tr("Size")}, Name);
    m_none->hide();
    m_name->setAccessibleName(tr("Name when it is back"));
    m_name->setMaxLength(kLongestName);
    m_name->setMinimumHeight(kControlHeight);
    auto* naming = new QFormLayout(m_naming);
    naming->setContentsMargins(0, 0, 0, 0);
    naming->setHorizontalSpacing(kSection);
    auto* column = new QVBoxLayout;
    column->setSpacing(4);
    column->addWidget(m_name);
    column->addWidget(m_hint);
    auto* caption = new QLabel(tr("&Name when it is back"));
    caption->setBuddy(m_name);
    caption->setFixedHeight(kControlHeight);
    naming->addRow(caption, column);

    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    m_restore = buttons->addButton(tr("&Restore"), QDialogButtonBox::AcceptRole);
    m_restore->setAccessibleName(tr("Restore"));
    auto* close = buttons->button(QDialogButtonBox::Close);
    close->setAccessibleName(tr("Close"));
    close->setAutoDefault(false);
    makeRoomy(close);
    makeRoomy(m_restore);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, 16);
    layout->setSpacing(12);
    layout->addWidget(new TextLabel(TextLabel::Look::Heading, tr("Deleted domains")));
    layout->addWidget(
        new TextLabel(TextLabel::Look::Quiet,
                      tr("Each can be brought back, with its home and its snapshots, until it goes for good.")));
    layout->addWidget(m_banner);
    layout->addWidget(m_none, 1, Qt::AlignTop);
    layout->addWidget(m_list, 1);
    layout->addWidget(m_naming);
    layout->addSpacing(kGap);
    layout->addWidget(buttons);
    m_restore->setDefault(true); // only once it is in the dialog does that know of it

    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_restore, &QPushButton::clicked, this, &DeletedDialog::submit);
    connect(m_banner, &Banner::dismissed, this, [this] { m_banner->setText({}); });
    connect(m_list, &QTreeWidget::currentItemChanged, this, &DeletedDialog::proposeName);
    connect(m_list, &QTreeWidget::itemDoubleClicked, this, &DeletedDialog::submit);
    connect(m_name, &QLineEdit::textChanged, this, &DeletedDialog::refresh);
    connect(&desk.link, &client::DaemonLink::stateChanged, this, [this] {
        m_isBusy = false; // a daemon that went answers no more
        load();
        refresh();
    });
    connect(&desk.link, &client::DaemonLink::domainsChanged, this, &DeletedDialog::load);
    connect(&desk.domains, &DomainModel::loaded, this, &DeletedDialog::refresh);
    refresh();
    load();
    m_list->setFocus();
}

void DeletedDialog::load() {
    const QPointer<DeletedDialog> alive(this);
    m_desk.verbs.listDeleted([this, alive](client::Outcome<QList<client::DeletedInfo>> domains) {
        if (!alive) {
            return;
        }
        if (domains) {
            fill(*domains);
        } else {
            m_banner->setText(tr("The deleted domains cannot be listed: %1").arg(sentence(domains.error())));
        }
    });
}

void DeletedDialog::fill(const QList<client::DeletedInfo>& domains) {
    const auto* before = chosen();
    const QString wanted = before == nullptr ? QString() : before->id;
    const QString typed = m_name->text();
    {
        const QSignalBlocker quiet(m_list);
        m_list->clear();
        m_domains = domains;
        for (const auto& domain : m_domains) {
            auto* item = new QTreeWidgetItem({shown(domain.name, 64), timeInWords(domain.deletedAt),
                                              timeInWords(domain.goesAt), bytesInWords(domain.sizeOnDisk)});
            item->setData(Name, kIdRole, domain.id);
            item->setTextAlignment(Size, Qt::AlignRight | Qt::AlignVCenter);
            m_list->addTopLevelItem(item);
            if (domain.id == wanted) {
                m_list->setCurrentItem(item);
            }
        }
        if (m_list->currentItem() == nullptr) {
            m_list->setCurrentItem(m_list->topLevelItem(0));
        }
    }
    const auto* now = chosen();
    if (now == nullptr || now->id != wanted) {
        proposeName();
    } else {
        m_name->setText(typed);
    }
    m_none->setVisible(m_domains.isEmpty());
    refresh();
}

const client::DeletedInfo* DeletedDialog::chosen() const {
    const auto* item = m_list->currentItem();
    const QString id = item == nullptr ? QString() : item->data(Name, kIdRole).toString();
    const auto found = std::find_if(m_domains.begin(), m_domains.end(), [&](const auto& one) { return one.id == id; });
    return found == m_domains.end() ? nullptr : &*found;
}

void DeletedDialog::proposeName() {
    const auto* domain = chosen();
    m_name->setText(domain == nullptr ? QString() : shown(domain->name, kLongestName));
    refresh();
}

void DeletedDialog::refresh() {
    const auto* domain = chosen();
    const QString name = m_name->text();
    QString problem;
    if (domain != nullptr) {
        problem = client::domainNameProblem(name);
        if (problem.isEmpty() && m_desk.domains.hasName(name)) {
            problem = tr("You have a domain of that name by now; give this one another.");
        }
    }
    m_hint->setText(problem);
    m_hint->setVisible(!problem.isEmpty());
    m_name->setAccessibleDescription(problem);
    m_name->setEnabled(!m_isBusy);
    m_list->setVisible(!m_domains.isEmpty() || !m_none->isVisibleTo(this));
    m_naming->setVisible(domain != nullptr);
    m_restore->setText(m_isBusy ? tr("Restoring…") : tr("&Restore"));
    m_restore->setEnabled(domain != nullptr && problem.isEmpty() && !m_isBusy && m_desk.link.isAvailable());
}

void DeletedDialog::submit() {
    const auto* domain = chosen();
    if (domain == nullptr || !m_restore->isEnabled()) {
        return;
    }
    m_banner->setText({});
    m_isBusy = true;
    refresh();
    const QPointer<DeletedDialog> alive(this);
    const QString name = m_name->text();
    m_desk.verbs.restore(domain->id, name == domain->name ? QString() : name,
                         [this, alive](client::Outcome<QString> path) {
                             if (!alive) {
                                 return;
                             }
                             m_isBusy = false;
                             refresh();
                             if (!path) {
                                 const QString advice = adviceFor(path.error());
                                 m_banner->setText(tr("%1 %2").arg(sentence(path.error()), advice).trimmed());
                                 return;
                             }
                             Q_EMIT restored(*path);
                             accept();
                         });
}

} // namespace bulkhead::gui
