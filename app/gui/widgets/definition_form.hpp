// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"
#include "gui/widgets/style.hpp"

#include <QMap>
#include <QVariantMap>
#include <QWidget>

class QComboBox;
class QFormLayout;
class QLineEdit;
class QSpinBox;

namespace bulkhead::gui {

class LabelPicker;

/// The settings of a domain that can be changed, each with what is to be known of it and with what was wrong with it.
/// A field that the user has not touched follows the domain; one that was touched keeps what stands in it until it is
/// saved or reverted.
class DefinitionForm : public QWidget {
    Q_OBJECT

public:
    explicit DefinitionForm(QWidget* parent = nullptr);

    /// What the domain is now. `known`: its template, null when that is not known.
    void follow(const client::DomainInfo& info, const client::TemplateInfo* known);
    /// What differs from that, by the keys of the contract.
    [[nodiscard]] QVariantMap changes() const;
    /// Puts back what the domain is.
    void revert();
    /// Shows a refusal at its field and moves there. False: it is about none of them.
    bool showProblem(const client::Failure& failure);
    void clearProblems();
    void setBusy(bool isBusy);

Q_SIGNALS:
    void edited();
    /// Return in the line of the tags.
    void submitted();

private:
    struct Field {
        QWidget* input = nullptr;
        TextLabel* hint = nullptr;
        TextLabel* problem = nullptr;
    };
    void addField(QFormLayout* form, const QString& key, const QString& caption, QWidget* input);
    void setHint(const QString& key, const QString& hint);
    void setProblem(const QString& key, const QString& problem);
    void describe(const Field& field);
    void followSizes(const client::DomainInfo& info, const client::TemplateInfo* known);
    void followAudio(const client::DomainInfo& info);
    void followHome(const client::DomainInfo& info);
    void enableFields();
    [[nodiscard]] QStringList tags() const;

    QMap<QString, Field> m_fields; ///< by key of the contract
    QComboBox* m_size;
    LabelPicker* m_label;
    QSpinBox* m_home;
    QComboBox* m_audio;
    QLineEdit* m_tags;
    // What the domain is, as the fields would show it.
    QString m_ownSize;
    QString m_ownLabel;
    QString m_ownAudio;
    QStringList m_ownTags;
    int m_ownHome = 0; ///< the least of m_home
    bool m_canHomeGrow = false;
    bool m_isManaged = false;
    bool m_isBusy = false;
};

} // namespace bulkhead::gui
