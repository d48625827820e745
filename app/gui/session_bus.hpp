// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDBusConnection>

namespace bulkhead::gui {

/// The session bus if there is one; not connected otherwise. (Qt would start one, which nobody else then knows of.)
QDBusConnection sessionBusIfThere();

} // namespace bulkhead::gui
