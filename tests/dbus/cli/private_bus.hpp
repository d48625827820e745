// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QProcess>
#include <QString>
#include <QTemporaryDir>

namespace bulkhead::tests {

/// A dbus-daemon of its own, for as long as the object lives.
class PrivateBus {
public:
    /// Throws std::runtime_error when it does not come up.
    PrivateBus();
    ~PrivateBus();
    [[nodiscard]] const QString& address() const { return m_address; }

private:
    QTemporaryDir m_dir;
    QProcess m_daemon;
    QString m_address;
};

} // namespace bulkhead::tests
