// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/command_line.hpp"

#include "gui/widgets/style.hpp"

#include <QClipboard>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>

namespace bulkhead::gui {

CommandLine::CommandLine(const QString& what, const QString& command, QWidget* parent)
    : QWidget(parent)
    , m_line(new QLineEdit) {
    m_line->setReadOnly(true);
    m_line->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_line->setAccessibleName(what);
    auto* copy = new QPushButton(tr("Copy"));
    makeRoomy(copy);
    m_line->setMinimumHeight(kControlHeight);
    m_line->setTextMargins(4, 0, 4, 0);
    copy->setAccessibleName(tr("Copy: %1").arg(what));
    connect(copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(m_line->text()); });
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(kGap);
    layout->addWidget(m_line, 1);
    layout->addWidget(copy);
    setCommand(command);
}

void CommandLine::setCommand(const QString& command) {
    m_line->setText(command);
    m_line->setCursorPosition(0);
}

} // namespace bulkhead::gui
