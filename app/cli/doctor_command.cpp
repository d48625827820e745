// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/bus.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

using client::Finding;
using client::Outcome;

Finding finding(const char* check, const char* status, const std::string& text, const std::string& fix = {}) {
    return {QString::fromLatin1(check), QString::fromLatin1(status), QString::fromStdString(text),
            QString::fromStdString(fix)};
}

/// What the daemon finds; before it, what can be seen from here.
Outcome<QList<Finding>> examine(const DoctorArguments& arguments, Interrupts& interrupts) {
    namespace code = client::code;
    QList<Finding> findings;
    const auto stop = [&](const char* check, const client::Failure& failure) -> Outcome<QList<Finding>> {
        if (failure.code == code::kInterrupted) {
            return tl::unexpected<client::Failure>(failure);
        }
        findings.append(finding(check, "problem", failure.message, hintFor(failure, {})));
        return findings;
    };
    const auto session = openSession(interrupts);
    if (!session) {
        return stop("message bus", session.error());
    }
    findings.append(finding("message bus", "ok", client::busDescription() + " answers"));
    client::Manager& manager = (*session)->manager();
    const auto info = (*session)->await<client::ManagerInfo>([&](auto done) { manager.describe(std::move(done)); });
    if (!info) {
        return stop("daemon", info.error());
    }
    const std::string version = info->version.toStdString();
    findings.append(version == BULKHEAD_VERSION
                        ? finding("daemon", "ok", "bulkheadd " + version + " answers")
                        : finding("daemon", "warning",
                                  "bulkheadd is version " + version + ", this program is " BULKHEAD_VERSION,
                                  "sudo systemctl restart bulkheadd"));
    const auto job =
        (*session)->await<QDBusObjectPath>([&](auto done) { manager.doctor(arguments.refresh, std::move(done)); });
    if (!job) {
        return stop("examination", job.error());
    }
    const auto result =
        (*session)->follow(*job, "Examining this host", arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!result) {
        return stop("examination", result.error());
    }
    const auto found = client::findingsFrom(*result);
    if (!found) {
        return stop("examination", found.error());
    }
    return findings + *found;
}

} // namespace

int doctor(const DoctorArguments& arguments, Interrupts& interrupts) {
    const auto findings = examine(arguments, interrupts);
    if (!findings) {
        printFailure("doctor", findings.error(), arguments.json);
        return exitCodeFor(findings.error());
    }
    // A word that this program does not know counts as a problem rather than as none.
    const bool good = std::all_of(findings->begin(), findings->end(), [](const Finding& one) {
        return one.status == QLatin1String("ok") || one.status == QLatin1String("warning");
    });
    const int printed = printOut(arguments.json ? jsonText(jsonOf(*findings)) : findingsText(*findings));
    return good ? printed : exit_code::kFailed;
}

} // namespace bulkhead::cli
