// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/job_bar.hpp"

#include "gui/models/job_model.hpp"
#include "gui/widgets/style.hpp"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>

namespace bulkhead::gui {
namespace {

constexpr int kMostShown = 4; ///< jobs; further ones are scrolled to
constexpr int kSteps = 1000;

} // namespace

JobBar::JobBar(JobModel& jobs, QWidget* parent)
    : QFrame(parent)
    , m_jobs(jobs) {
    setAccessibleName(tr("Running jobs"));
    auto* list = new QWidget;
    m_layout = new QVBoxLayout(list);
    m_layout->setContentsMargins(kMargin, kGap, kMargin, kGap);
    m_layout->setSpacing(kGap);
    auto* area = new QScrollArea;
    area->setWidget(list);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    area->setAccessibleName(tr("Running jobs"));
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->setSpacing(0);
    outer->addWidget(gui::makeLine(Qt::Horizontal));
    outer->addWidget(area);
    connect(&jobs, &JobModel::rowsInserted, this,
            [this](const QModelIndex& /*parent*/, int first, int last) { insert(first, last); });
    connect(&jobs, &JobModel::rowsAboutToBeRemoved, this,
            [this](const QModelIndex& /*parent*/, int first, int last) { removeLines(first, last); });
    connect(&jobs, &JobModel::dataChanged, this, [this](const QModelIndex& first, const QModelIndex& last) {
        for (int number = first.row(); number <= last.row(); ++number) {
            update(number);
        }
    });
    if (jobs.rowCount() > 0) {
        insert(0, jobs.rowCount() - 1);
    }
    showOrHide();
}

JobBar::Line JobBar::makeLine() {
    Line line;
    line.widget = new QWidget;
    line.title = new QLabel;
    line.title->setTextFormat(Qt::PlainText);
    line.phase = new TextLabel(TextLabel::Look::Quiet);
    line.phase->setWordWrap(false);
    line.progress = new QProgressBar;
    line.progress->setTextVisible(false);
    line.progress->setFixedHeight(8);
    line.progress->setFixedWidth(200);
    line.cancel = new QPushButton(tr("Cancel"));
    auto* layout = new QHBoxLayout(line.widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(12);
    layout->addWidget(line.title);
    layout->addWidget(line.phase, 1);
    layout->addWidget(line.progress);
    layout->addWidget(line.cancel);
    QWidget* const self = line.widget;
    connect(line.cancel, &QPushButton::clicked, this, [this, self] {
        const auto found =
            std::find_if(m_lines.begin(), m_lines.end(), [&](const Line& one) { return one.widget == self; });
        if (found != m_lines.end()) {
            m_jobs.cancel(m_jobs.index(static_cast<int>(found - m_lines.begin())));
        }
    });
    return line;
}

void JobBar::insert(int first, int last) {
    for (int number = first; number <= last; ++number) {
        const Line line = makeLine();
        m_lines.insert(m_lines.begin() + number, line);
        m_layout->insertWidget(number, line.widget);
        update(number);
    }
    showOrHide();
}

void JobBar::removeLines(int first, int last) {
    for (int number = last; number >= first; --number) {
        delete m_lines[static_cast<std::size_t>(number)].widget;
        m_lines.erase(m_lines.begin() + number);
    }
    showOrHide();
}

void JobBar::update(int number) {
    const Line& line = m_lines[static_cast<std::size_t>(number)];
    const QModelIndex index = m_jobs.index(number);
    const QString title = index.data(Qt::DisplayRole).toString();
    const double fraction = index.data(JobModel::FractionRole).toDouble();
    line.title->setText(title);
    line.phase->setText(index.data(JobModel::PhaseRole).toString());
    line.progress->setRange(0, fraction < 0 ? 0 : kSteps);
    line.progress->setValue(static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kSteps));
    line.progress->setAccessibleName(tr("Progress: %1").arg(title));
    line.cancel->setAccessibleName(tr("Cancel: %1").arg(title));
    line.cancel->setEnabled(!index.data(JobModel::IsCancellingRole).toBool());
}

void JobBar::showOrHide() {
    setVisible(!m_lines.empty());
    if (!m_lines.empty()) {
        const int line = m_lines.front().widget->sizeHint().height() + kGap;
        setFixedHeight(std::min(static_cast<int>(m_lines.size()), kMostShown) * line + kGap + 1);
    }
}

} // namespace bulkhead::gui
