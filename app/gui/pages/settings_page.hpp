// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

#include <QString>
#include <QWidget>

class QFormLayout;

namespace bulkhead::gui {

class CommandLine;
struct Desk;

/// What a domain is defined as, and the file that says so.
class SettingsPage : public QWidget {
    Q_OBJECT

public:
    explicit SettingsPage(Desk& desk, QWidget* parent = nullptr);
    void setDomain(const QString& path);

private:
    TextLabel* addRow(QFormLayout* form, const QString& caption);
    void refresh();

    Desk& m_desk;
    QString m_path;
    TextLabel* m_kind;
    TextLabel* m_template;
    TextLabel* m_size;
    QLabel* m_chip;
    TextLabel* m_label;
    TextLabel* m_network;
    TextLabel* m_home;
    TextLabel* m_tags;
    TextLabel* m_running;
    CommandLine* m_file;
    TextLabel* m_howTo;
    CommandLine* m_edit;
};

} // namespace bulkhead::gui
