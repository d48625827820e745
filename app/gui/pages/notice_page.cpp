// SPDX-License-Identifier: Apache-2.0
#include "gui/pages/notice_page.hpp"

#include "gui/widgets/command_line.hpp"

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>

namespace bulkhead::gui {

NoticePage::NoticePage(QWidget* parent)
    : QWidget(parent)
    , m_title(new TextLabel(TextLabel::Look::Heading))
    , m_text(new TextLabel(TextLabel::Look::Quiet))
    , m_command(new CommandLine(tr("Command"), {}))
    , m_button(new QPushButton) {
    auto* column = new QVBoxLayout;
    column->setSpacing(12);
    m_command->setMinimumWidth(460);
    column->addStretch(2);
    m_title->setAlignment(Qt::AlignHCenter);
    m_text->setAlignment(Qt::AlignHCenter);
    column->addWidget(m_title);
    column->addWidget(m_text);
    column->addWidget(m_command, 0, Qt::AlignHCenter);
    column->addWidget(m_button, 0, Qt::AlignHCenter);
    column->addStretch(3);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, kMargin);
    layout->addStretch(1);
    layout->addLayout(column, 6);
    layout->addStretch(1);
    connect(m_button, &QPushButton::clicked, this, &NoticePage::buttonClicked);
}

void NoticePage::show(const QString& title, const QString& text, const QString& command, const QString& button) {
    m_title->setText(title);
    m_title->setAccessibleName(title);
    m_text->setText(text);
    m_text->setAccessibleName(text);
    m_command->setCommand(command);
    m_command->setVisible(!command.isEmpty());
    m_button->setText(button);
    m_button->setAccessibleName(button);
    m_button->setMinimumSize(0, 0);
    makeRoomy(m_button);
    m_button->setVisible(!button.isEmpty());
}

} // namespace bulkhead::gui
