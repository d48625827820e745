// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bulkhead::cli {

struct RunArguments {
    std::optional<std::string> domain; ///< none: a disposable
    std::string templateName;          ///< of the disposable; empty: the default one
    bool terminal = false;
    bool json = false;
    std::optional<std::chrono::milliseconds> timeout;
    std::string size;        ///< of the disposable
    std::string from;        ///< a snapshot that the disposable begins in; empty: none
    bool isDiskOnly = false; ///< without the memory of that
    bool isKept = false;     ///< the disposable is suspended at the end, not removed
    std::string user;
    std::string cwd;
    std::vector<std::string> environment; ///< NAME=VALUE or NAME, as given
    std::vector<std::string> command;     ///< empty with terminal: the user's shell
};

struct ResumeArguments {
    RunArguments run; ///< `domain` is set; `command` may be empty without a terminal: it only goes on
};

struct DomainCreateArguments {
    std::string name;
    std::string templateName;
    std::string size;
    std::string label;
    std::string egress;
    std::string homeSize;
    std::vector<std::string> tags;
    bool json = false;
};
struct DomainListArguments {
    bool isDeleted = false; ///< those that can be restored
    bool all = false;
    bool json = false;
};
struct DomainShowArguments {
    std::string name;
    bool json = false;
};
struct DomainSetArguments {
    std::string name;
    std::vector<std::pair<std::string, std::string>> settings; ///< key and value, as given
    bool json = false;
};
struct DomainStartArguments {
    std::string name;
    bool cold = false;
    bool json = false;
};
struct DomainStopArguments {
    std::string name;
    bool force = false;
    bool isDiscarding = false;
    std::optional<std::chrono::milliseconds> grace;
    bool json = false;
};
struct DomainPauseArguments {
    std::string name;
    bool goesOn = false; ///< unpause
    bool json = false;
};
struct DomainContainArguments {
    std::string name;
    bool comparesNot = false;
    bool json = false;
};
struct DomainSuspendArguments {
    std::string name;
    bool json = false;
};
struct DomainResumeArguments {
    std::string name;
    bool json = false;
};
struct DomainRemoveArguments {
    std::string name;
    bool force = false;
    bool isForGood = false;
    bool json = false;
};
struct DomainRestoreArguments {
    std::string which; ///< name or id
    std::string otherName;
    bool json = false;
};
struct DomainAppsArguments {
    std::string name;
    bool json = false;
};
struct DomainLaunchArguments {
    std::string name; ///< empty: a disposable
    bool disposable = false;
    std::string templateName; ///< of the disposable; empty: the one with a desktop
    std::string app;
    bool noViewer = false;
    bool json = false;
};
struct DomainScreenshotArguments {
    std::string name;
    std::string file;
    unsigned head = 0;
    bool json = false;
};
struct DomainWindowsArguments {
    std::string name;
    bool json = false;
};
struct DomainExportArguments {
    std::string name;
    bool remove = false;
    bool json = false;
};
struct SnapshotCreateArguments {
    std::string domain;
    bool isDiskOnly = false;
    std::string reason;
    std::string label;
    bool json = false;
};
struct SnapshotListArguments {
    std::string domain; ///< empty: all
    bool json = false;
};
struct SnapshotTreeArguments {
    std::string domain;
    bool json = false;
};
struct SnapshotShowArguments {
    std::string id; ///< here and below: or the beginning of one
    bool json = false;
};
struct SnapshotRevertArguments {
    std::string domain;
    std::string id;
    bool isDiskOnly = false;
    bool isDiscarding = false; ///< keeps no snapshot of what is there now
    bool json = false;
};
struct SnapshotForkArguments {
    std::string from; ///< a domain's name, or an id
    std::string name;
    std::string egress;
    std::string label;
    bool isDiskOnly = false;
    bool json = false;
};
struct SnapshotDiffArguments {
    std::string domain;
    std::string from;
    std::string to; ///< or "now"
    bool isDeep = false;
    bool isAll = false; ///< lists however many there are
    bool json = false;
};
struct SnapshotPinArguments {
    std::string id;
    bool isPinned = false;
    bool json = false;
};
struct SnapshotLabelArguments {
    std::string id;
    std::string label; ///< empty: none any more
    bool json = false;
};
struct SnapshotRemoveArguments {
    std::string id;
    bool isCascade = false;
    bool json = false;
};
struct TemplateListArguments {
    bool json = false;
};
struct TemplateShowArguments {
    std::string name;
    bool packages = false;
    bool json = false;
};
struct TemplateBuildArguments {
    std::string name;
    bool force = false;
    bool json = false;
};
struct TemplateInstallArguments {
    std::string name;
    std::vector<std::string> packages;
    bool json = false;
};
struct TemplateUpdateArguments {
    std::string name; ///< empty: with `all`
    bool all = false;
    bool json = false;
};
struct TemplateWarmArguments {
    std::string name;
    std::string size; ///< empty: the default one
    bool force = false;
    bool json = false;
};
struct DoctorArguments {
    bool refresh = false;
    bool json = false;
};

using Invocation =
    std::variant<RunArguments, ResumeArguments, DomainCreateArguments, DomainListArguments, DomainShowArguments,
                 DomainSetArguments, DomainStartArguments, DomainStopArguments, DomainRemoveArguments,
                 DomainRestoreArguments, DomainAppsArguments, DomainLaunchArguments, DomainScreenshotArguments,
                 DomainWindowsArguments, DomainExportArguments, DomainPauseArguments, DomainContainArguments,
                 DomainSuspendArguments, DomainResumeArguments, SnapshotCreateArguments, SnapshotListArguments,
                 SnapshotTreeArguments, SnapshotShowArguments, SnapshotRevertArguments, SnapshotForkArguments,
                 SnapshotDiffArguments, SnapshotPinArguments, SnapshotLabelArguments, SnapshotRemoveArguments,
                 TemplateListArguments, TemplateShowArguments, TemplateBuildArguments, TemplateInstallArguments,
                 TemplateUpdateArguments, TemplateWarmArguments, DoctorArguments>;

/// A command line that is done once it is read: --help and --version (status 0, `text` for standard output), or a
/// mistake (status 2, `text` and `hint` for standard error).
struct ParseEnd {
    int status = 0;
    std::string text;
    std::string hint;
};

/// Reads the command line without argv[0]. Touches nothing outside.
std::variant<Invocation, ParseEnd> parseArguments(const std::vector<std::string>& arguments);

} // namespace bulkhead::cli
