// SPDX-License-Identifier: Apache-2.0
#include "gui/models/template_model.hpp"

#include "gui/wording.hpp"

#include <algorithm>

namespace bulkhead::gui {

TemplateModel::TemplateModel(client::DaemonLink& link, QObject* parent)
    : QAbstractListModel(parent)
    , m_link(link) {
    connect(&link, &client::DaemonLink::stateChanged, this, [this] {
        if (m_link.isAvailable()) {
            refresh();
        } else {
            m_isLoaded = false;
        }
    });
}

int TemplateModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_templates.size());
}

QVariant TemplateModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    const client::TemplateInfo& one = m_templates[index.row()];
    if (role == Qt::DisplayRole) {
        return one.built ? shown(one.name, 64) : tr("%1 (not built)").arg(shown(one.name, 64));
    }
    if (role == Qt::ToolTipRole) {
        return shown(one.description);
    }
    return {};
}

QString TemplateModel::preferred() const {
    QString best;
    for (const client::TemplateInfo& one : m_templates) {
        if (one.built && (best.isEmpty() || one.name == QLatin1String("desktop"))) {
            best = one.name;
        }
    }
    return best;
}

void TemplateModel::refresh() {
    if (!m_link.isAvailable()) {
        return;
    }
    m_link.manager()->listTemplates([this](client::Outcome<QList<client::TemplateInfo>> templates) {
        if (!templates) {
            Q_EMIT listFailed(templates.error());
            return;
        }
        beginResetModel();
        m_templates = *templates;
        std::stable_partition(m_templates.begin(), m_templates.end(), [](const auto& one) { return one.built; });
        m_isLoaded = true;
        endResetModel();
        Q_EMIT loaded();
    });
}

} // namespace bulkhead::gui
