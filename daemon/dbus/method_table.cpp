// SPDX-License-Identifier: Apache-2.0
#include "dbus/method_table.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace bulkhead::dbus {
namespace {

constexpr std::string_view kManager = "org.bulkhead1.Manager";
constexpr std::string_view kDomain = "org.bulkhead1.Domain";
constexpr std::string_view kJob = "org.bulkhead1.Job";

constexpr std::array kTable{
    MethodRow{kManager, "Describe", Action::View},
    MethodRow{kManager, "ListDomains", Action::View},
    MethodRow{kManager, "FindDomain", Action::View},
    MethodRow{kManager, "CreateDomain", Action::Create},
    MethodRow{kManager, "StartDisposable", Action::Create},
    MethodRow{kManager, "Inspect", Action::Create},
    MethodRow{kManager, "ListDeleted", Action::View},
    MethodRow{kManager, "RestoreDomain", Action::Create},
    MethodRow{kManager, "PurgeDomain", Action::UseOwn},
    MethodRow{kManager, "ListSnapshots", Action::View},
    MethodRow{kManager, "SetSnapshot", Action::UseOwn},
    MethodRow{kManager, "RemoveSnapshot", Action::UseOwn},
    MethodRow{kManager, "Revert", Action::UseOwn},
    MethodRow{kManager, "ForkSnapshot", Action::Create},
    MethodRow{kManager, "ListTemplates", Action::View},
    MethodRow{kManager, "DescribeTemplate", Action::View},
    MethodRow{kManager, "BuildTemplate", Action::Administer},
    MethodRow{kManager, "MakeWarmImage", Action::Administer},
    MethodRow{kManager, "Doctor", Action::View},
    MethodRow{kDomain, "Describe", Action::UseOwn},
    MethodRow{kDomain, "SetDefinition", Action::UseOwn},
    MethodRow{kDomain, "Start", Action::UseOwn},
    MethodRow{kDomain, "Stop", Action::UseOwn},
    MethodRow{kDomain, "Remove", Action::UseOwn},
    MethodRow{kDomain, "Snapshot", Action::UseOwn},
    MethodRow{kDomain, "Suspend", Action::UseOwn},
    MethodRow{kDomain, "Pause", Action::UseOwn},
    MethodRow{kDomain, "Contain", Action::UseOwn},
    MethodRow{kDomain, "Unpause", Action::UseOwn},
    MethodRow{kDomain, "Fork", Action::UseOwn},
    MethodRow{kDomain, "Exec", Action::UseOwn},
    MethodRow{kDomain, "Status", Action::UseOwn},
    MethodRow{kDomain, "OpenDisplay", Action::UseOwn},
    MethodRow{kDomain, "Screenshot", Action::UseOwn},
    MethodRow{kDomain, "OpenSession", Action::UseOwn},
    MethodRow{kJob, "Describe", Action::UseOwn},
    MethodRow{kJob, "Cancel", Action::UseOwn},
};

} // namespace

std::span<const MethodRow> methodTable() {
    return kTable;
}

Status mayCall(const core::Caller& caller, std::string_view interface, std::string_view method) {
    const auto row = std::find_if(kTable.begin(), kTable.end(), [&](const MethodRow& candidate) {
        return candidate.interface == interface && candidate.method == method;
    });
    if (row == kTable.end()) {
        return fail(ErrorCode::NotAuthorized, "the method is not open to anybody");
    }
    switch (row->action) {
    case Action::View:
    case Action::Create:
    case Action::UseOwn:
        return {};
    case Action::Administer:
        if (caller.isRoot()) {
            return {};
        }
        return fail(ErrorCode::NotAuthorized, std::string(method) + " needs root (use sudo)");
    }
    return fail(ErrorCode::NotAuthorized, "the method is not open to anybody");
}

} // namespace bulkhead::dbus
