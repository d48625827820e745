// SPDX-License-Identifier: Apache-2.0
#include "gui/menu_exports.hpp"

#include "gui/wording.hpp"
#include "menu/folder.hpp"

namespace bulkhead::gui {
namespace {

QString problemIn(const client::Outcome<menu::Changes>& changes) {
    return changes ? QString() : sentence(changes.error());
}

menu::Folder userMenu() {
    return menu::Folder(menu::userFolder());
}

} // namespace

bool canBeInMenu(const QString& domain) {
    return menu::isExportableDomain(domain.toStdString());
}

bool isInMenu(const QString& domain) {
    return userMenu().hasEntries(domain.toStdString());
}

QString putIntoMenu(const QString& domain, const QList<AppEntry>& apps) {
    std::vector<menu::App> wanted;
    wanted.reserve(static_cast<std::size_t>(apps.size()));
    for (const AppEntry& app : apps) {
        wanted.push_back(
            {app.id.toStdString(), app.name.toStdString(), app.categories.join(QLatin1Char(';')).toStdString()});
    }
    return problemIn(userMenu().agree(domain.toStdString(), wanted));
}

QString takeOutOfMenu(const QString& domain) {
    return problemIn(userMenu().removeAll(domain.toStdString()));
}

} // namespace bulkhead::gui
