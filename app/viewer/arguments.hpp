// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/viewer.hpp"

#include <QString>
#include <QStringList>

#include <variant>

namespace bulkhead::viewer {

struct Invocation {
    QString domain; ///< name
    ViewerOptions options;
};

/// Nothing to run: help, version, or a mistake.
struct ParseEnd {
    int status = 0;
    QString text;
};

/// `arguments` without the program's name.
std::variant<Invocation, ParseEnd> parseArguments(const QStringList& arguments);

} // namespace bulkhead::viewer
