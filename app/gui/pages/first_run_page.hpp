// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"
#include "gui/widgets/style.hpp"

#include <QWidget>

class QPushButton;
class QVBoxLayout;

namespace bulkhead::gui {

class Banner;
struct Desk;

/// What somebody sees who has no domain: whether this host can do it, whether there are templates, and a first three
/// domains at one click. Each part says what to do when it is not ready.
class FirstRunPage : public QWidget {
    Q_OBJECT

public:
    explicit FirstRunPage(Desk& desk, QWidget* parent = nullptr);

    /// Examines the host; again when it was examined before.
    void examine();

Q_SIGNALS:
    void newDomainRequested();

protected:
    void showEvent(QShowEvent* event) override;

private:
    void showFindings(const client::Outcome<QVariantMap>& result);
    void addFinding(const client::Finding& finding);
    void showTemplates();
    void showVerbs();
    void createFirst();
    void createNext(QStringList names);

    Desk& m_desk;
    TextLabel* m_hostSummary;
    QVBoxLayout* m_findings;
    QPushButton* m_examine;
    QVBoxLayout* m_templates;
    QPushButton* m_create;
    Banner* m_banner;
    bool m_wasExamined = false;
    bool m_isCreating = false;
};

} // namespace bulkhead::gui
