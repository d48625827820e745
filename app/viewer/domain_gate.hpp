// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"
#include "client/failure.hpp"

#include <QObject>
#include <QString>

namespace bulkhead::viewer {

/// What the viewer needs to know of the domain itself.
struct DomainFacts {
    QString id;
    QString name;
    QString label;
    QString state;         ///< as in org.bulkhead1.Domain
    QString reason;        ///< why, when it failed
    bool hasSound = false; ///< it may be heard
    bool operator==(const DomainFacts&) const = default;
};

/// The way to one domain: the daemon's D-Bus object, or something else in tests. Everything calls back from the event
/// loop of the GUI thread; nothing blocks.
class DomainGate : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// Tells the facts through factsChanged(), now and at each change.
    virtual void watch() = 0;
    /// One SPICE channel for each call.
    virtual void openDisplay(client::Callback<client::Descriptor> done) = 0;
    virtual void openSession(client::Callback<client::Descriptor> done) = 0;

Q_SIGNALS:
    void factsChanged(const bulkhead::viewer::DomainFacts& facts);
    /// The daemon does not answer; it may come back, and then facts follow.
    void unreachable(const QString& why);
    /// There is no such domain any more.
    void removed();
};

} // namespace bulkhead::viewer
