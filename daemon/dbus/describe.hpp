// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/model/snapshot.hpp"
#include "core/model/warm_image.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"
#include "core/services/template_service.hpp"
#include "core/services/trash_service.hpp"
#include "dbus/options.hpp"

#include <map>
#include <optional>
#include <string>

/// Core values as the dictionaries of the D-Bus contract. Pure.
namespace bulkhead::dbus {

sdbus::ObjectPath domainPath(const DomainId& id);
sdbus::ObjectPath jobPath(const JobId& id);

/// `newestVersion`: what its template would start it with now; none: nothing is built.
Options describeDomain(const core::DomainEntry& entry, unsigned runningExecs,
                       const std::optional<std::string>& newestVersion);
/// `isFull`: with what DescribeTemplate adds.
Options describeTemplate(const core::TemplateInfo& info, bool isFull);
/// For DescribeTemplate.
Options describeTemplate(const core::TemplateInfo& info, const std::vector<core::WarmImage>& images);
Options describeSnapshot(const core::SnapshotRecord& record);
Options describeDeleted(const core::DeletedDomain& domain);
Options describeJob(const core::JobInfo& info);
Options describeStatus(const core::GuestStatus& status);

} // namespace bulkhead::dbus
