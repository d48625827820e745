// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace bulkhead::client {

/// What is wrong with `name` as the name of a new domain, as a sentence for people; empty when nothing is. The daemon
/// decides; this is to say it while somebody types.
QString domainNameProblem(const QString& name);

} // namespace bulkhead::client
