// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "children.hpp"

#include <QTemporaryDir>

#include <memory>

namespace bulkhead::test {

/// QEMU with a SPICE server and no guest: the firmware's text is its picture.
class ScreenWithoutGuest {
public:
    explicit ScreenWithoutGuest(int heads);
    void restart();
    void stop() { m_qemu.reset(); }
    /// A connected socket; -1 when it does not listen.
    [[nodiscard]] int connectOnce() const;
    /// What the devices saw of the user: lines of QEMU's trace.
    [[nodiscard]] QByteArray inputTrace() const;

private:
    QTemporaryDir m_folder;
    QStringList m_argv;
    std::unique_ptr<Child> m_qemu;
};

} // namespace bulkhead::test
