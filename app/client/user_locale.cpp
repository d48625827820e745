// SPDX-License-Identifier: Apache-2.0
#include "client/user_locale.hpp"

#include <QRegularExpression>

namespace bulkhead::client {

QString localeFrom(const QString& lcAll, const QString& lang) {
    const QString& name = lcAll.isEmpty() ? lang : lcAll;
    if (name == QLatin1String("C") || name == QLatin1String("POSIX")) {
        return QStringLiteral("C.UTF-8");
    }
    static const QRegularExpression kForm(
        QStringLiteral("\\A([A-Za-z]{1,8}(?:_[A-Za-z0-9]{1,8})?)(?:\\.[A-Za-z0-9-]{1,16})?(@[A-Za-z0-9]{1,16})?\\z"));
    const auto match = kForm.match(name);
    if (!match.hasMatch()) {
        return {};
    }
    // "@euro" only ever chose a character set without it.
    const QString modifier = match.captured(2) == QLatin1String("@euro") ? QString() : match.captured(2);
    return match.captured(1) + QStringLiteral(".UTF-8") + modifier;
}

QString userLocale() {
    return localeFrom(qEnvironmentVariable("LC_ALL"), qEnvironmentVariable("LANG"));
}

} // namespace bulkhead::client
