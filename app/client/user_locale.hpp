// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace bulkhead::client {

/// The locale that this user's programs have, as LANG has it and always with UTF-8, which is all that a guest knows:
/// "de_DE.UTF-8". Empty: none is set, or it is no name of one.
QString userLocale();

/// The same for these values of LC_ALL and LANG. Pure.
QString localeFrom(const QString& lcAll, const QString& lang);

} // namespace bulkhead::client
