// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"

#include <QObject>
#include <QSocketNotifier>
#include <QString>

#include <memory>

namespace bulkhead::viewer {

/// One viewer for each domain of a user: two would take the display from each other for ever. Kept by a local socket in
/// the kernel's own name space, which is there with and without a session bus and goes with its process. Who comes
/// second asks the first to show its windows. Where there is a session bus, the first can be asked there, too.
class SingleInstance : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.bulkhead1.Viewer")

public:
    enum class Outcome { First, Second };

    SingleInstance(const QString& domainId, QObject* parent = nullptr);

    /// Asks nobody and waits for nobody.
    Outcome claim();

    /// "org.bulkhead1.Viewer.d" and the id with "_" for "-": an element of a bus name may not begin with a digit.
    static QString busNameFor(const QString& domainId);

public Q_SLOTS:
    Q_SCRIPTABLE void Raise() { Q_EMIT raiseAsked(); }

Q_SIGNALS:
    void raiseAsked();

private:
    bool listen();
    void answer();
    void offerOnBus();

    QString m_domainId;
    client::Descriptor m_socket;
    std::unique_ptr<QSocketNotifier> m_visitors;
};

} // namespace bulkhead::viewer
