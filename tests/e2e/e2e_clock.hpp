// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "e2e_support.hpp"

#include <QDateTime>

namespace bulkhead::e2e {

/// Puts a guest's clock far from the host's.
inline Outcome setClockWrong(const QString& domain) {
    return cli({"run", "--domain", domain, "--user", "root", "--", "date", "--set=@1577836800"});
}

/// Seconds that a guest's clock is off, at least: 0 while it is within what the question took.
inline qint64 clockIsOffBy(const QString& domain) {
    const qint64 before = QDateTime::currentSecsSinceEpoch();
    const qint64 guest = cli({"run", "--domain", domain, "--", "date", "+%s"}).output.trimmed().toLongLong();
    const qint64 after = QDateTime::currentSecsSinceEpoch();
    constexpr qint64 kRounding = 2;
    if (guest < before - kRounding) {
        return before - guest;
    }
    return guest > after + kRounding ? guest - after : 0;
}

} // namespace bulkhead::e2e
