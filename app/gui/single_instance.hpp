// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>

namespace bulkhead::gui {

/// One tray for each session of a user: the first owns a name on the session bus, later ones ask it to show its window.
/// Without a session bus everybody is the first.
class SingleInstance : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.bulkhead.Tray1")

public:
    explicit SingleInstance(QObject* parent = nullptr);

    /// Whether this process is the one. If not, the other has been asked to show its window unless `isQuiet`.
    bool claim(bool isQuiet);

public Q_SLOTS:
    Q_SCRIPTABLE void Present() { Q_EMIT presentRequested(); }

Q_SIGNALS:
    void presentRequested();
};

} // namespace bulkhead::gui
