// SPDX-License-Identifier: Apache-2.0
#include "client/domain_name.hpp"

#include <QStringList>

#include <algorithm>

namespace bulkhead::client {
namespace {

constexpr qsizetype kLongestName = 31;

bool isLower(QChar c) {
    return c >= QLatin1Char('a') && c <= QLatin1Char('z');
}

bool isAllowed(QChar c) {
    return isLower(c) || (c >= QLatin1Char('0') && c <= QLatin1Char('9')) || c == QLatin1Char('-');
}

} // namespace

QString domainNameProblem(const QString& name) {
    if (name.isEmpty()) {
        return QStringLiteral("Give it a name.");
    }
    if (!isLower(name.front())) {
        return QStringLiteral("A name begins with a lower-case letter, a to z.");
    }
    if (!std::all_of(name.begin(), name.end(), isAllowed)) {
        return QStringLiteral("Use lower-case letters, digits and dashes only.");
    }
    if (name.size() > kLongestName) {
        return QStringLiteral("A name has at most %1 characters.").arg(kLongestName);
    }
    if (QStringList{QStringLiteral("host"), QStringLiteral("dom0"), QStringLiteral("now")}.contains(name)) {
        return QStringLiteral("“%1” is a reserved word.").arg(name);
    }
    if (name.startsWith(QLatin1String("disp-"))) {
        return QStringLiteral("Names that begin with “disp-” belong to disposables.");
    }
    return {};
}

} // namespace bulkhead::client
