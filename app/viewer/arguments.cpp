// SPDX-License-Identifier: Apache-2.0
#include "viewer/arguments.hpp"

namespace bulkhead::viewer {
namespace {

constexpr int kUsage = 2;

QString helpText() {
    return QStringLiteral("Usage: bulkhead-viewer [OPTIONS] DOMAIN\n"
                          "\n"
                          "Shows the windows of a running domain, each in a frame of the domain's colour.\n"
                          "\n"
                          "  --whole-desktop  one window with the domain's first screen instead\n"
                          "  --background     show nothing until the domain opens a window\n"
                          "  --help           this text\n"
                          "  --version        the version\n");
}

ParseEnd mistake(const QString& what) {
    return {kUsage, QStringLiteral("bulkhead-viewer: %1; see bulkhead-viewer --help\n").arg(what)};
}

} // namespace

std::variant<Invocation, ParseEnd> parseArguments(const QStringList& arguments) {
    Invocation invocation;
    bool onlyNames = false;
    for (const QString& argument : arguments) {
        if (onlyNames || !argument.startsWith(QLatin1Char('-'))) {
            if (!invocation.domain.isEmpty()) {
                return mistake(QStringLiteral("one domain at a time"));
            }
            invocation.domain = argument;
        } else if (argument == QLatin1String("--")) {
            onlyNames = true;
        } else if (argument == QLatin1String("--help") || argument == QLatin1String("-h")) {
            return ParseEnd{0, helpText()};
        } else if (argument == QLatin1String("--version")) {
            return ParseEnd{0, QStringLiteral("bulkhead-viewer " BULKHEAD_VERSION "\n")};
        } else if (argument == QLatin1String("--whole-desktop")) {
            invocation.options.wholeDesktop = true;
        } else if (argument == QLatin1String("--background")) {
            invocation.options.background = true;
        } else {
            return mistake(QStringLiteral("there is no option ") + argument);
        }
    }
    if (invocation.domain.isEmpty()) {
        return mistake(QStringLiteral("a domain's name is missing"));
    }
    return invocation;
}

} // namespace bulkhead::viewer
