// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

#include <QString>
#include <QWidget>

class QFormLayout;
class QPushButton;

namespace bulkhead::gui {

class Banner;
class CommandLine;
class DefinitionForm;
struct Desk;

/// What a domain is defined as, a form to change it, and the file that says so.
class SettingsPage : public QWidget {
    Q_OBJECT

public:
    explicit SettingsPage(Desk& desk, QWidget* parent = nullptr);
    /// What was edited and not applied is dropped.
    void setDomain(const QString& path);

private:
    TextLabel* addRow(QFormLayout* form, const QString& caption);
    void refresh();
    void refreshButtons();
    void apply();
    void revert();

    Desk& m_desk;
    QString m_path;
    TextLabel* m_kind;
    TextLabel* m_template;
    TextLabel* m_network;
    TextLabel* m_running;
    QWidget* m_editor; ///< the form with its buttons
    Banner* m_banner;
    DefinitionForm* m_form;
    QPushButton* m_apply;
    QPushButton* m_revert;
    TextLabel* m_outcome;
    CommandLine* m_file;
    TextLabel* m_howTo;
    bool m_isBusy = false;
};

} // namespace bulkhead::gui
