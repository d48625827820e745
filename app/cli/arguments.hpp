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
    std::string size; ///< of the disposable
    std::string user;
    std::string cwd;
    std::vector<std::string> environment; ///< NAME=VALUE or NAME, as given
    std::vector<std::string> command;     ///< empty with terminal: the user's shell
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
    std::optional<std::chrono::milliseconds> grace;
    bool json = false;
};
struct DomainRemoveArguments {
    std::string name;
    bool force = false;
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
    std::variant<RunArguments, DomainCreateArguments, DomainListArguments, DomainShowArguments, DomainSetArguments,
                 DomainStartArguments, DomainStopArguments, DomainRemoveArguments, DomainAppsArguments,
                 DomainLaunchArguments, DomainScreenshotArguments, DomainWindowsArguments, DomainExportArguments,
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
