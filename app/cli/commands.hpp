// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.hpp"
#include "cli/session.hpp"

/// The verbs. Each does its work, prints, and returns the exit code of the program.
namespace bulkhead::cli {

int runCommand(const RunArguments& arguments, Interrupts& interrupts);
int resumeCommand(const ResumeArguments& arguments, Interrupts& interrupts);

int createDomain(const DomainCreateArguments& arguments, Session& session);
int listDomains(const DomainListArguments& arguments, Session& session);
int showDomain(const DomainShowArguments& arguments, Session& session);
int setDomain(const DomainSetArguments& arguments, Session& session);
int startDomain(const DomainStartArguments& arguments, Session& session);
int stopDomain(const DomainStopArguments& arguments, Session& session);
int pauseDomain(const DomainPauseArguments& arguments, Session& session);
int containDomain(const DomainContainArguments& arguments, Session& session);
int suspendDomain(const DomainSuspendArguments& arguments, Session& session);
int resumeDomain(const DomainResumeArguments& arguments, Session& session);
int listApps(const DomainAppsArguments& arguments, Session& session);
int launchApp(const DomainLaunchArguments& arguments, Session& session);
int screenshotDomain(const DomainScreenshotArguments& arguments, Session& session);
int listWindows(const DomainWindowsArguments& arguments, Session& session);
int exportApps(const DomainExportArguments& arguments, Session& session);
/// export --remove: asks nobody but the file system.
int removeExports(const DomainExportArguments& arguments);
int removeDomain(const DomainRemoveArguments& arguments, Session& session);
int restoreDomain(const DomainRestoreArguments& arguments, Session& session);

int createSnapshot(const SnapshotCreateArguments& arguments, Session& session);
int listSnapshots(const SnapshotListArguments& arguments, Session& session);
int showTree(const SnapshotTreeArguments& arguments, Session& session);
int showSnapshot(const SnapshotShowArguments& arguments, Session& session);
int revertDomain(const SnapshotRevertArguments& arguments, Session& session);
int forkDomain(const SnapshotForkArguments& arguments, Session& session);
int diffSnapshots(const SnapshotDiffArguments& arguments, Session& session);
int pinSnapshot(const SnapshotPinArguments& arguments, Session& session);
int labelSnapshot(const SnapshotLabelArguments& arguments, Session& session);
int removeSnapshot(const SnapshotRemoveArguments& arguments, Session& session);

int listTemplates(const TemplateListArguments& arguments, Session& session);
int showTemplate(const TemplateShowArguments& arguments, Session& session);
int warmTemplate(const TemplateWarmArguments& arguments, Session& session);
int buildTemplate(const TemplateBuildArguments& arguments, Session& session);
int installPackages(const TemplateInstallArguments& arguments, Session& session);
int updateTemplates(const TemplateUpdateArguments& arguments, Session& session);

/// Makes its own session, since a daemon that does not run is one of its findings.
int doctor(const DoctorArguments& arguments, Interrupts& interrupts);

} // namespace bulkhead::cli
