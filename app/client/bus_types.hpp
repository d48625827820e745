// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDBusObjectPath>
#include <QList>
#include <QMap>
#include <QMetaType>
#include <QVariantMap>

/// The compound types of the contract that QtDBus does not know by itself.
namespace bulkhead::client {

using VariantMapList = QList<QVariantMap>;                     ///< aa{sv}
using ObjectDescriptions = QMap<QDBusObjectPath, QVariantMap>; ///< a{oa{sv}}

/// Makes them known to QtDBus. Call once, before the first call on a proxy.
void registerBusTypes();

} // namespace bulkhead::client

Q_DECLARE_METATYPE(bulkhead::client::VariantMapList)
Q_DECLARE_METATYPE(bulkhead::client::ObjectDescriptions)
