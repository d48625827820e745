// SPDX-License-Identifier: Apache-2.0
#include "widgets/app_picture.hpp"

#include "widgets/label_paint.hpp"

#include <QPainter>

#include <algorithm>
#include <array>
#include <utility>

namespace bulkhead::widgets {
namespace {

constexpr qsizetype kLongestName = 128;

/// Names of the Icon Naming Specification, and one that all themes have beside it.
constexpr std::array<std::pair<const char*, const char*>, 8> kByCategory{{
    {"WebBrowser", "web-browser"},
    {"TextEditor", "accessories-text-editor"},
    {"TerminalEmulator", "utilities-terminal"},
    {"FileManager", "system-file-manager"},
    {"Calculator", "accessories-calculator"},
    {"Dictionary", "accessories-dictionary"},
    {"Monitor", "utilities-system-monitor"},
    {"Viewer", "x-office-document"},
}};

} // namespace

bool isIconName(const QString& name) {
    const auto isPlain = [](QChar c) {
        return (c >= u'a' && c <= u'z') || (c >= u'A' && c <= u'Z') || (c >= u'0' && c <= u'9');
    };
    return !name.isEmpty() && name.size() <= kLongestName && isPlain(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](QChar c) { return isPlain(c) || c == u'.' || c == u'_' || c == u'-'; });
}

QIcon hostIconFor(const QStringList& names, const QStringList& categories) {
    for (const QString& name : names) {
        for (const QString& spelling : {name, name.toLower()}) {
            if (isIconName(spelling) && QIcon::hasThemeIcon(spelling)) {
                return QIcon::fromTheme(spelling);
            }
        }
    }
    for (const auto& [category, icon] : kByCategory) {
        if (categories.contains(QLatin1String(category)) && QIcon::hasThemeIcon(QLatin1String(icon))) {
            return QIcon::fromTheme(QLatin1String(icon));
        }
    }
    return {};
}

QPixmap markedPixmap(const QIcon& icon, const client::Label& label, client::Theme theme, int side,
                     qreal devicePixelRatio) {
    QPixmap pixmap((QSizeF(side, side) * devicePixelRatio).toSize());
    pixmap.setDevicePixelRatio(devicePixelRatio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    icon.paint(&painter, QRect(0, 0, side, side));
    const int mark = std::max(8, side * 7 / 16);
    painter.drawPixmap(QPointF(side - mark, side - mark), swatchPixmap(label, theme, mark, devicePixelRatio));
    return pixmap;
}

} // namespace bulkhead::widgets
