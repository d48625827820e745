// SPDX-License-Identifier: Apache-2.0
#include "client/bus_types.hpp"

#include <QDBusMetaType>

namespace bulkhead::client {

void registerBusTypes() {
    qDBusRegisterMetaType<VariantMapList>();
    qDBusRegisterMetaType<ObjectDescriptions>();
}

} // namespace bulkhead::client
