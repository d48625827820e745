// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QHash>
#include <QObject>
#include <QString>
#include <QStringList>

namespace bulkhead::gui {

/// Starts bulkhead-viewer, one for each domain, as a process of its own that outlives us.
class ViewerLauncher : public QObject {
    Q_OBJECT

public:
    /// `program`: the viewer's path; empty: the one beside this program, or else that of PATH.
    explicit ViewerLauncher(QString program = {}, QObject* parent = nullptr);
    ~ViewerLauncher() override;

    /// Starts the viewer of that domain unless one that we started runs; it shows nothing until the domain opens a
    /// window. Returns what went wrong, for people; empty when nothing did. (Of two viewers of a domain the second
    /// leaves by itself.)
    QString ensure(const QString& domainName);
    /// Shows what there is, and brings it to the front: a viewer that finds another running asks that one to.
    QString present(const QString& domainName);

private:
    QString start(const QString& domainName, const QStringList& arguments);

    QString m_program;
    QHash<QString, QObject*> m_running; ///< by domain: watches the process's pidfd
};

} // namespace bulkhead::gui
