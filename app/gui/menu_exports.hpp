// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/models/session_client.hpp"

/// A domain's apps in the menu of the user's desktop. What becomes of each call is a text that says why it did not
/// work, or an empty one.
namespace bulkhead::gui {

/// Disposables cannot be: they have no name that lasts.
bool canBeInMenu(const QString& domain);
bool isInMenu(const QString& domain);
QString putIntoMenu(const QString& domain, const QList<AppEntry>& apps);
QString takeOutOfMenu(const QString& domain);

} // namespace bulkhead::gui
