// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QString>

#include <functional>

namespace bulkhead::viewer {

/// One viewer for each domain in a user's session, by a name on the session bus. Without a session bus every viewer is
/// the only one. A viewer that finds the name taken asks the one that has it to show its windows.
class SingleInstance : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.bulkhead1.Viewer")

public:
    enum class Outcome { First, Second };

    SingleInstance(const QString& domainId, QObject* parent = nullptr);

    /// Answers from the event loop, once.
    void claim(std::function<void(Outcome)> done);

    /// "org.bulkhead1.Viewer.d" and the id with "_" for "-": an element of a bus name may not begin with a digit.
    static QString busNameFor(const QString& domainId);

public Q_SLOTS:
    Q_SCRIPTABLE void Raise() { Q_EMIT raiseAsked(); }

Q_SIGNALS:
    void raiseAsked();

private:
    QString m_name;
};

} // namespace bulkhead::viewer
