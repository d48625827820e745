// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/terminal_text.hpp"

namespace bulkhead::cli {
namespace {

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

int report(const std::string& name, const client::Failure& failure, bool json) {
    printFailure("template " + name, failure, json);
    return exitCodeFor(failure);
}

} // namespace

int listTemplates(const TemplateListArguments& arguments, Session& session) {
    const auto templates = session.await<QList<client::TemplateInfo>>(
        [&](auto done) { session.manager().listTemplates(std::move(done)); });
    if (!templates) {
        printFailure("cannot list the templates", templates.error(), arguments.json);
        return exitCodeFor(templates.error());
    }
    return printOut(arguments.json ? jsonText(jsonOf(*templates)) : templateTable(*templates));
}

int showTemplate(const TemplateShowArguments& arguments, Session& session) {
    const auto info = session.await<client::TemplateInfo>(
        [&](auto done) { session.manager().describeTemplate(qt(arguments.name), std::move(done)); });
    if (!info) {
        return report(arguments.name, info.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(jsonOf(*info, true)));
    }
    return printOut(arguments.packages ? packagesText(*info) : templateText(*info));
}

int buildTemplate(const TemplateBuildArguments& arguments, Session& session) {
    const auto job = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().buildTemplate(qt(arguments.name), arguments.force, std::move(done)); });
    if (!job) {
        return report(arguments.name, job.error(), arguments.json);
    }
    const std::string name = client::terminalSafe(arguments.name);
    const auto result =
        session.follow(*job, "Building " + name, arguments.json ? ProgressStyle::Silent : ProgressStyle::Full);
    if (!result) {
        return report(arguments.name, result.error(), arguments.json);
    }
    const std::string version = result->value(QStringLiteral("version")).toString().toStdString();
    const bool built = result->value(QStringLiteral("built")).toBool();
    if (arguments.json) {
        return printOut(jsonText(Json{{"name", arguments.name}, {"version", version}, {"built", built}}));
    }
    const std::string shown = client::terminalSafe(version);
    return printOut(built ? "Template " + name + " is built: version " + shown + ".\n"
                          : "Template " + name + " is up to date: version " + shown +
                                ". (--force builds it all the same.)\n");
}

} // namespace bulkhead::cli
