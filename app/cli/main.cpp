// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/report.hpp"

#include <QCoreApplication>

#include <csignal>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace bulkhead;
using namespace bulkhead::cli;

/// A program started with one of 0, 1, 2 closed would open a socket under that number and print into it.
bool completeStandardDescriptors() {
    for (int fd = 0; fd <= 2; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) {
            return false;
        }
    }
    return true;
}

template <class Verb, class Arguments> int withSession(Verb verb, const Arguments& arguments, Interrupts& interrupts) {
    const auto session = openSession(interrupts);
    if (!session) {
        printFailure({}, session.error(), arguments.json);
        return exitCodeFor(session.error());
    }
    return verb(arguments, **session);
}

struct Dispatch {
    Interrupts& interrupts;

    int operator()(const RunArguments& a) const { return runCommand(a, interrupts); }
    int operator()(const ResumeArguments& a) const { return resumeCommand(a, interrupts); }
    int operator()(const DoctorArguments& a) const { return doctor(a, interrupts); }
    int operator()(const DomainCreateArguments& a) const { return withSession(createDomain, a, interrupts); }
    int operator()(const DomainListArguments& a) const { return withSession(listDomains, a, interrupts); }
    int operator()(const DomainShowArguments& a) const { return withSession(showDomain, a, interrupts); }
    int operator()(const DomainSetArguments& a) const { return withSession(setDomain, a, interrupts); }
    int operator()(const DomainStartArguments& a) const { return withSession(startDomain, a, interrupts); }
    int operator()(const DomainStopArguments& a) const { return withSession(stopDomain, a, interrupts); }
    int operator()(const DomainRemoveArguments& a) const { return withSession(removeDomain, a, interrupts); }
    int operator()(const DomainRestoreArguments& a) const { return withSession(restoreDomain, a, interrupts); }
    int operator()(const DomainAppsArguments& a) const { return withSession(listApps, a, interrupts); }
    int operator()(const DomainLaunchArguments& a) const { return withSession(launchApp, a, interrupts); }
    int operator()(const DomainScreenshotArguments& a) const { return withSession(screenshotDomain, a, interrupts); }
    int operator()(const DomainWindowsArguments& a) const { return withSession(listWindows, a, interrupts); }
    int operator()(const DomainExportArguments& a) const {
        return a.remove ? removeExports(a) : withSession(exportApps, a, interrupts);
    }
    int operator()(const DomainPauseArguments& a) const { return withSession(pauseDomain, a, interrupts); }
    int operator()(const DomainContainArguments& a) const { return withSession(containDomain, a, interrupts); }
    int operator()(const DomainSuspendArguments& a) const { return withSession(suspendDomain, a, interrupts); }
    int operator()(const DomainResumeArguments& a) const { return withSession(resumeDomain, a, interrupts); }
    int operator()(const SnapshotCreateArguments& a) const { return withSession(createSnapshot, a, interrupts); }
    int operator()(const SnapshotListArguments& a) const { return withSession(listSnapshots, a, interrupts); }
    int operator()(const SnapshotTreeArguments& a) const { return withSession(showTree, a, interrupts); }
    int operator()(const SnapshotShowArguments& a) const { return withSession(showSnapshot, a, interrupts); }
    int operator()(const SnapshotRevertArguments& a) const { return withSession(revertDomain, a, interrupts); }
    int operator()(const SnapshotForkArguments& a) const { return withSession(forkDomain, a, interrupts); }
    int operator()(const SnapshotDiffArguments& a) const { return withSession(diffSnapshots, a, interrupts); }
    int operator()(const SnapshotPinArguments& a) const { return withSession(pinSnapshot, a, interrupts); }
    int operator()(const SnapshotLabelArguments& a) const { return withSession(labelSnapshot, a, interrupts); }
    int operator()(const SnapshotRemoveArguments& a) const { return withSession(removeSnapshot, a, interrupts); }
    int operator()(const TemplateListArguments& a) const { return withSession(listTemplates, a, interrupts); }
    int operator()(const TemplateShowArguments& a) const { return withSession(showTemplate, a, interrupts); }
    int operator()(const TemplateWarmArguments& a) const { return withSession(warmTemplate, a, interrupts); }
    int operator()(const TemplateBuildArguments& a) const { return withSession(buildTemplate, a, interrupts); }
    int operator()(const TemplateInstallArguments& a) const { return withSession(installPackages, a, interrupts); }
    int operator()(const TemplateUpdateArguments& a) const { return withSession(updateTemplates, a, interrupts); }
};

int run(int argc, char** argv) {
    const auto parsed = parseArguments({argv + std::min(argc, 1), argv + argc});
    if (const auto* end = std::get_if<ParseEnd>(&parsed)) {
        if (end->status == exit_code::kDone) {
            return printOut(end->text);
        }
        printMistake(end->text, end->hint);
        return end->status;
    }
    const Invocation& invocation = std::get<Invocation>(parsed);
    const bool isRun =
        std::holds_alternative<RunArguments>(invocation) || std::holds_alternative<ResumeArguments>(invocation);
    try {
        // Before Qt's and D-Bus's threads are there, so that they inherit the handlers and nothing is lost early.
        Interrupts interrupts{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
        int noArguments = 1; // Qt must not eat options of the guest's command
        char* name[] = {argv[0], nullptr};
        const QCoreApplication application(noArguments, name);
        return std::visit(Dispatch{interrupts}, invocation);
    } catch (const std::exception& fault) {
        printFailure({}, {client::code::kHostFailure, std::string("internal fault: ") + fault.what()}, false);
        return isRun ? exit_code::kOurs : exit_code::kFailed;
    }
}

} // namespace

int main(int argc, char** argv) {
    if (!completeStandardDescriptors()) {
        return exit_code::kFailed;
    }
    return run(argc, argv);
}
