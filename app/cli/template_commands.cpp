// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/terminal_text.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

int report(const std::string& name, const client::Failure& failure, bool json) {
    printFailure("template " + name, failure, json);
    return exitCodeFor(failure);
}

/// Printed once where there is a new version.
constexpr const char* kNextStart = "Domains get it when they start the next time; running ones keep theirs.\n";

struct Built {
    std::string version; ///< safe to print
    bool built = false;  ///< false: it was up to date
};

Json builtJson(const std::string& name, const Built& made) {
    return Json{{"name", name}, {"version", made.version}, {"built", made.built}};
}

client::Outcome<Built> build(const std::string& name, const client::BuildOptions& options, bool json,
                             Session& session) {
    const auto job = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().buildTemplate(qt(name), options, std::move(done)); });
    if (!job) {
        return tl::unexpected(job.error());
    }
    const auto result = session.follow(*job, "Building " + client::terminalSafe(name),
                                       json ? ProgressStyle::Silent : ProgressStyle::Full);
    if (!result) {
        return tl::unexpected(result.error());
    }
    return Built{client::terminalSafe(result->value(QStringLiteral("version")).toString().toStdString()),
                 result->value(QStringLiteral("built")).toBool()};
}

client::Outcome<std::vector<std::string>> builtTemplates(Session& session) {
    const auto templates = session.await<QList<client::TemplateInfo>>(
        [&](auto done) { session.manager().listTemplates(std::move(done)); });
    if (!templates) {
        return tl::unexpected(templates.error());
    }
    std::vector<std::string> names;
    for (const auto& info : *templates) {
        if (info.built) {
            names.push_back(info.name.toStdString());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

client::Outcome<Built> update(const std::string& name, bool json, Session& session) {
    return build(name, {.force = false, .update = true, .packages = {}}, json, session);
}

std::string updateText(const std::string& name, const Built& made) {
    return "Template " + client::terminalSafe(name) + (made.built ? " is updated" : " is up to date") + ": version " +
           made.version + ".\n";
}

int updateOne(const std::string& name, bool json, Session& session) {
    const auto made = update(name, json, session);
    if (!made) {
        return report(name, made.error(), json);
    }
    return printOut(json ? jsonText(builtJson(name, *made))
                         : updateText(name, *made) + (made->built ? kNextStart : ""));
}

/// One that fails is no reason to leave the others without their security updates.
int updateAll(bool json, Session& session) {
    const auto names = builtTemplates(session);
    if (!names) {
        printFailure("cannot list the templates", names.error(), json);
        return exitCodeFor(names.error());
    }
    int code = exit_code::kDone;
    bool isAnyBuilt = false;
    Json results = Json::array();
    for (const std::string& name : *names) {
        const auto made = update(name, json, session);
        if (made) {
            isAnyBuilt = isAnyBuilt || made->built;
            results.push_back(builtJson(name, *made));
            if (!json) {
                printOut(updateText(name, *made));
            }
            continue;
        }
        code = exitCodeFor(made.error());
        results.push_back(Json{{"name", name}, {"error", jsonOf(made.error(), {})}});
        if (!json) {
            report(name, made.error(), json);
        }
        if (made.error().code == client::code::kInterrupted || made.error().code == client::code::kCancelled) {
            break; // whoever stops one does not want the next
        }
    }
    std::string text;
    if (json) {
        text = jsonText(results);
    } else if (names->empty()) {
        text = "No template is built. Build one: sudo bulkhead template build NAME\n";
    } else if (isAnyBuilt) {
        text = kNextStart;
    }
    const int printed = printOut(text);
    return code == exit_code::kDone ? printed : code;
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
    const auto made =
        build(arguments.name, {.force = arguments.force, .update = false, .packages = {}}, arguments.json, session);
    if (!made) {
        return report(arguments.name, made.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(builtJson(arguments.name, *made)));
    }
    const std::string name = client::terminalSafe(arguments.name);
    return printOut(made->built ? "Template " + name + " is built: version " + made->version + ".\n"
                                : "Template " + name + " is up to date: version " + made->version +
                                      ". (--force builds it all the same.)\n");
}

int installPackages(const TemplateInstallArguments& arguments, Session& session) {
    client::BuildOptions options;
    std::string packages;
    for (const std::string& package : arguments.packages) {
        options.packages.append(qt(package));
        packages += (packages.empty() ? "" : ", ") + client::terminalSafe(package);
    }
    const auto made = build(arguments.name, options, arguments.json, session);
    if (!made) {
        return report(arguments.name, made.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(builtJson(arguments.name, *made)));
    }
    const std::string name = client::terminalSafe(arguments.name);
    return printOut(
        made->built ? "Template " + name + " has " + packages + " now: version " + made->version + ".\n" + kNextStart
                    : "Template " + name + " has " + packages + " already: version " + made->version + ".\n");
}

int updateTemplates(const TemplateUpdateArguments& arguments, Session& session) {
    return arguments.all ? updateAll(arguments.json, session) : updateOne(arguments.name, arguments.json, session);
}

int warmTemplate(const TemplateWarmArguments& arguments, Session& session) {
    const auto job = session.await<QDBusObjectPath>([&](auto done) {
        session.manager().makeWarmImage(qt(arguments.name), qt(arguments.size), arguments.force, std::move(done));
    });
    if (!job) {
        return report(arguments.name, job.error(), arguments.json);
    }
    const std::string name = client::terminalSafe(arguments.name);
    const auto result =
        session.follow(*job, "Warming " + name, arguments.json ? ProgressStyle::Silent : ProgressStyle::Full);
    if (!result) {
        return report(arguments.name, result.error(), arguments.json);
    }
    const std::string size = result->value(QStringLiteral("size")).toString().toStdString();
    const bool made = result->value(QStringLiteral("made")).toBool();
    if (arguments.json) {
        return printOut(jsonText(Json{{"name", arguments.name}, {"size", size}, {"made", made}}));
    }
    const std::string shown = "Template " + name + ", size " + client::terminalSafe(size);
    return printOut(made ? shown + ": its domains start from a warm image now.\n"
                         : shown + ": there is a warm image. (--force makes another.)\n");
}

} // namespace bulkhead::cli
