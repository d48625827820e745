// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include "cli/exit_code.hpp"
#include "cli/grammar/run_grammar.hpp"
#include "cli/grammar/snapshot_grammar.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace bulkhead::cli {
namespace {

using grammar::addDuration;
using grammar::addText;
using grammar::addVerb;
using grammar::HelpFormatter;
using grammar::mistake;

constexpr const char* kInstallFooter = R"(Example:
  sudo bulkhead template install desktop gimp

A new version of the template is built. Domains get it when they start the next time; running ones keep theirs. When the
build fails, nothing has changed. What was added stands in /etc/bulkhead/templates.d/NAME.d/50-installed.toml.)";

constexpr const char* kUpdateFooter =
    "A new version is made when Debian has newer packages than the one that there is. Domains get it when they start\n"
    "the next time; running ones keep theirs (bulkhead domain ls says which could be restarted).";

constexpr const char* kMainFooter =
    R"(Exit status of every verb but run and resume: 0 done, 1 failed, 2 usage, 3 denied by policy, 4 no such thing, 5 not authorised.
With --json, results go to standard output as JSON and errors to standard error as {"error": {"code", "message", "hint"}}.
Start with: bulkhead doctor)";

constexpr const char* kSetFooter = R"(Settings:
  size=SIZE        one of the template's sizes; a domain that runs has it from its next start on
  label=LABEL      the label on its windows: red, orange, yellow, green, gray, blue, purple or black
  home-size=BYTES  the size of its home disk, such as 8GiB; it can only grow, while the domain is stopped
  tags=TAG,TAG     all its tags; tags= for none
  egress=PROFILE   what it may reach on the network (so far: none)
  audio=out|off    whether it can be heard, from its next start on; it never hears (no microphone yet)
  snapshot-on-stop=true|false
                   each stop but a forced one leaves a snapshot of its home, the last 20 of which are kept
  idle-suspend=TIME
                   suspended after so long without use, from 1m to 7d (m, h or d), or off. In use it is while a program
                   runs that was begun with "bulkhead run", or while it has a window open

Examples:
  bulkhead domain set work label=blue size=large
  bulkhead domain set work tags=mail,private
  bulkhead domain set work snapshot-on-stop=true idle-suspend=30m

All of it is changed, or nothing. The definition's file keeps its comments; "domain show" names it.)";

/// The whole grammar, with the places its values go to. Holds references to itself: neither copied nor moved.
struct Grammar {
    CLI::App app{"Runs what you distrust in microVMs of their own.", "bulkhead"};
    bool version = false;

    DomainCreateArguments domainCreate;
    DomainListArguments domainList;
    DomainShowArguments domainShow;
    DomainSetArguments domainSet;
    DomainStartArguments domainStart;
    DomainStopArguments domainStop;
    DomainPauseArguments domainPause;
    DomainContainArguments domainContain;
    DomainPauseArguments domainUnpause{.name = {}, .goesOn = true, .json = false};
    DomainSuspendArguments domainSuspend;
    DomainResumeArguments domainResume;
    DomainRemoveArguments domainRemove;
    DomainRestoreArguments domainRestore;
    DomainAppsArguments domainApps;
    DomainLaunchArguments domainLaunch;
    DomainWindowsArguments domainWindows;
    DomainScreenshotArguments domainScreenshot;
    DomainExportArguments domainExport;
    TemplateListArguments templateList;
    TemplateShowArguments templateShow;
    TemplateBuildArguments templateBuild;
    TemplateInstallArguments templateInstall;
    TemplateUpdateArguments templateUpdate;
    TemplateWarmArguments templateWarm;
    DoctorArguments doctor;
    grammar::RunGrammar run;
    grammar::SnapshotGrammar snapshot;

    CLI::Option* launchDisposable = nullptr;
    CLI::App* launchVerb = nullptr;
    grammar::Verbs verbs;

    Grammar() {
        app.formatter(std::make_shared<HelpFormatter>());
        app.set_help_flag("-h,--help", "Show this help");
        app.add_flag("--version", version, "Show the version");
        app.require_subcommand(0, 1);
        run.addTo(app, verbs);
        addDomain();
        snapshot.addTo(app, verbs);
        addTemplate();
        CLI::App* verb =
            addVerb(&app, "doctor", "Examine what this host can do, each problem with its fix", doctor.json);
        verb->add_flag("--refresh", doctor.refresh,
                       "Boot the self-test guest again instead of using what it said last");
        verb->footer("Exit status: 0 when there is no problem (warnings are none), else 1.");
        app.footer(kMainFooter); // last: verbs made after it would inherit it
        verbs.emplace_back(verb, [this] { return Invocation(doctor); });
    }
    Grammar(const Grammar&) = delete;
    Grammar& operator=(const Grammar&) = delete;

    void addDomain() {
        CLI::App* noun =
            app.add_subcommand("domain", "Create, see, start, stop and remove domains, and open their apps");
        noun->require_subcommand(0, 1);

        CLI::App* verb = addVerb(noun, "create", "Create a domain whose home is kept", domainCreate.json);
        addText(verb, "NAME", domainCreate.name, "", "Its name: a-z, 0-9 and -, beginning with a letter")->required();
        addText(verb, "--template", domainCreate.templateName, "TEMPLATE", "The template that its system comes from");
        addText(verb, "--size", domainCreate.size, "SIZE", "One of the template's sizes");
        addText(verb, "--label", domainCreate.label, "LABEL", "The label on its windows");
        addText(verb, "--egress", domainCreate.egress, "PROFILE", "What it may reach on the network (default: none)");
        addText(verb, "--home-size", domainCreate.homeSize, "BYTES", "Size of its home disk, such as 2GiB");
        verb->add_option("--tag", domainCreate.tags, "A tag for policy; may be repeated")
            ->type_name("TAG")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        verbs.emplace_back(verb, [this] { return Invocation(domainCreate); });

        verb = addVerb(noun, "ls", "List your domains", domainList.json);
        verb->add_flag("--all", domainList.all, "Everybody's domains (root)");
        verb->add_flag("--deleted", domainList.isDeleted, "Those that were removed and can be restored");
        verbs.emplace_back(verb, [this] { return Invocation(domainList); });

        verb = addVerb(noun, "show", "Show one domain", domainShow.json);
        addText(verb, "NAME", domainShow.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainShow); });

        verb = addVerb(noun, "set", "Change the definition of a domain", domainSet.json);
        addText(verb, "NAME", domainSet.name, "", "The domain")->required();
        verb->add_option_function<std::vector<std::string>>(
                "KEY=VALUE", [this](const std::vector<std::string>& words) { takeSettings(words); },
                "What to change, and to what")
            ->type_name("")
            ->required();
        verb->footer(kSetFooter);
        verbs.emplace_back(verb, [this] { return Invocation(domainSet); });

        verb = addVerb(noun, "start", "Start a domain", domainStart.json);
        addText(verb, "NAME", domainStart.name, "", "The domain")->required();
        verb->add_flag("--cold", domainStart.cold, "Boot it, although there is a warm image of its template");
        verbs.emplace_back(verb, [this] { return Invocation(domainStart); });

        verb = addVerb(noun, "stop", "Stop a domain; what is outside its home is discarded", domainStop.json);
        addText(verb, "NAME", domainStop.name, "", "The domain")->required();
        CLI::Option* force = verb->add_flag("--force", domainStop.force, "Cut the power at once");
        CLI::Option* grace = addDuration(verb, "--grace", domainStop.grace, "Time to shut down before the power is cut")
                                 ->excludes(force);
        verb->add_flag("--discard", domainStop.isDiscarding,
                       "Cut the power and throw away all that it did since its last snapshot, its home too")
            ->excludes(force)
            ->excludes(grace);
        verbs.emplace_back(verb, [this] { return Invocation(domainStop); });

        verb = addVerb(noun, "pause", "Let a domain stand still, with all that it has in memory", domainPause.json);
        addText(verb, "NAME", domainPause.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainPause); });

        verb = addVerb(noun, "unpause", "Let a paused domain go on", domainUnpause.json);
        addText(verb, "NAME", domainUnpause.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainUnpause); });

        verb = addVerb(noun, "contain", "After an incident: pause a domain and keep what it is now as evidence",
                       domainContain.json);
        addText(verb, "NAME", domainContain.name, "", "The domain")->required();
        verb->add_flag("--no-diff", domainContain.comparesNot, "Do not compare it with the snapshot before");
        verbs.emplace_back(verb, [this] { return Invocation(domainContain); });

        verb =
            addVerb(noun, "suspend", "Stop a domain so that its next start goes on where it was", domainSuspend.json);
        addText(verb, "NAME", domainSuspend.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainSuspend); });

        verb = addVerb(noun, "resume", "Start a suspended domain: it goes on where it was", domainResume.json);
        addText(verb, "NAME", domainResume.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainResume); });

        verb = addVerb(noun, "rm", "Remove a domain; for a time \"restore\" brings it back", domainRemove.json);
        addText(verb, "NAME", domainRemove.name, "", "The domain")->required();
        verb->add_flag("--force", domainRemove.force, "Even while it runs");
        verb->add_flag("--now", domainRemove.isForGood, "For good, with its home; also one that was removed already");
        verbs.emplace_back(verb, [this] { return Invocation(domainRemove); });

        verb = addVerb(noun, "restore", "Bring a removed domain back, stopped", domainRestore.json);
        addText(verb, "NAME", domainRestore.which, "", "The domain, or its id; \"ls --deleted\" lists both")
            ->required();
        addText(verb, "--as", domainRestore.otherName, "OTHER", "Another name, where its own is taken by now");
        verbs.emplace_back(verb, [this] { return Invocation(domainRestore); });

        verb = addVerb(noun, "apps", "List the apps of a domain, which is started if it does not run", domainApps.json);
        addText(verb, "NAME", domainApps.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainApps); });

        verb = addVerb(noun, "launch", "Start an app in a domain and show its windows", domainLaunch.json);
        addText(verb, "NAME", domainLaunch.name, "", "The domain; left out with --disposable")->required();
        addText(verb, "APP", domainLaunch.app, "", "The app, as \"apps\" lists it");
        // A flag, so that only --disposable=TEMPLATE takes a value.
        launchDisposable =
            verb->add_flag("--disposable{}", domainLaunch.templateName,
                           "In a new disposable domain, of TEMPLATE if given (default: desktop), which is "
                           "gone some seconds after its last window is closed");
        verb->add_flag("--no-viewer", domainLaunch.noViewer, "Do not show its windows");
        launchVerb = verb;
        verbs.emplace_back(verb, [this] { return Invocation(domainLaunch); });

        verb = addVerb(noun, "windows", "List the windows that are open in a domain", domainWindows.json);
        addText(verb, "NAME", domainWindows.name, "", "The domain")->required();
        verbs.emplace_back(verb, [this] { return Invocation(domainWindows); });

        verb = addVerb(noun, "screenshot", "Save a picture of what a domain shows", domainScreenshot.json);
        addText(verb, "NAME", domainScreenshot.name, "", "The domain")->required();
        addText(verb, "FILE", domainScreenshot.file, "", "The new file, as PNG")->required();
        verb->add_option("--head", domainScreenshot.head, "Which head, as \"windows\" lists it (default: 0)")
            ->type_name("N");
        verbs.emplace_back(verb, [this] { return Invocation(domainScreenshot); });

        verb = addVerb(noun, "export", "Put the apps of a domain into the menu of your desktop", domainExport.json);
        addText(verb, "NAME", domainExport.name, "", "The domain, which is started if it does not run")->required();
        verb->add_flag("--remove", domainExport.remove, "Take them out again; the domain need not be there any more");
        verbs.emplace_back(verb, [this] { return Invocation(domainExport); });
    }

    void takeSettings(const std::vector<std::string>& words) {
        for (const std::string& word : words) {
            const std::size_t sign = word.find('=');
            if (sign == std::string::npos || sign == 0) {
                throw CLI::ValidationError("'" + word + "' is not KEY=VALUE, as in label=blue");
            }
            std::string key = word.substr(0, sign);
            std::ranges::replace(key, '_', '-'); // as the definition's file writes it
            if (std::ranges::any_of(domainSet.settings, [&](const auto& known) { return known.first == key; })) {
                throw CLI::ValidationError("'" + key + "' is given twice");
            }
            domainSet.settings.emplace_back(key, word.substr(sign + 1));
        }
    }

    void addTemplate() {
        CLI::App* noun = app.add_subcommand("template", "See, build and update the templates that domains start from");
        noun->require_subcommand(0, 1);

        CLI::App* verb = addVerb(noun, "ls", "List the templates", templateList.json);
        verbs.emplace_back(verb, [this] { return Invocation(templateList); });

        verb = addVerb(noun, "build", "Build a template and install it (root)", templateBuild.json);
        addText(verb, "NAME", templateBuild.name, "", "The template")->required();
        verb->add_flag("--force", templateBuild.force, "Even when it is up to date");
        verbs.emplace_back(verb, [this] { return Invocation(templateBuild); });

        verb = addVerb(noun, "install", "Add packages to a template for good (root)", templateInstall.json);
        addText(verb, "NAME", templateInstall.name, "", "The template")->required();
        verb->add_option("PKG", templateInstall.packages, "Debian packages")->required()->type_name("");
        verb->footer(kInstallFooter);
        verbs.emplace_back(verb, [this] { return Invocation(templateInstall); });

        verb = addVerb(noun, "update", "Build a template with today's packages (root)", templateUpdate.json);
        CLI::Option* one = addText(verb, "NAME", templateUpdate.name, "", "The template");
        verb->add_flag("--all", templateUpdate.all, "All templates that are built")->excludes(one);
        verb->footer(kUpdateFooter);
        verbs.emplace_back(verb, [this] { return Invocation(templateUpdate); });

        verb = addVerb(noun, "warm", "Boot a template once and keep its memory, for quick starts (root)",
                       templateWarm.json);
        addText(verb, "NAME", templateWarm.name, "", "The template")->required();
        addText(verb, "--size", templateWarm.size, "SIZE", "One of its sizes, as `bulkhead template show` lists them");
        verb->add_flag("--force", templateWarm.force, "Even when there is a warm image");
        verbs.emplace_back(verb, [this] { return Invocation(templateWarm); });

        verb = addVerb(noun, "show", "Show one template", templateShow.json);
        addText(verb, "NAME", templateShow.name, "", "The template")->required();
        verb->add_flag("--packages", templateShow.packages, "Its packages, one a line");
        verbs.emplace_back(verb, [this] { return Invocation(templateShow); });
    }

    /// How the deepest verb of the command line is called, for hints.
    std::string pathOfUsed() const {
        std::string path = "bulkhead";
        const CLI::App* at = &app;
        while (true) {
            const auto used = at->get_subcommands();
            if (used.empty()) {
                return path;
            }
            at = used.front();
            path += " " + at->get_name();
        }
    }
};

std::string namesOf(const CLI::App& noun) {
    std::string names;
    for (const CLI::App* verb : noun.get_subcommands([](const CLI::App*) { return true; })) {
        names += (names.empty() ? "" : ", ") + verb->get_name();
    }
    return names;
}

ParseEnd mistake(const Grammar& grammar, std::string text) {
    return mistake(std::move(text), "see: " + grammar.pathOfUsed() + " --help");
}

std::optional<ParseEnd> completeLaunch(Grammar& grammar) {
    DomainLaunchArguments& launch = grammar.domainLaunch;
    launch.disposable = grammar.launchDisposable->count() > 0;
    if (!launch.disposable) {
        return launch.app.empty() ? std::optional(mistake(grammar, "APP is required")) : std::nullopt;
    }
    if (!launch.app.empty()) {
        return mistake(grammar, "--disposable takes no NAME, only APP");
    }
    launch.app = std::exchange(launch.name, {});
    return std::nullopt;
}

/// The verb (or noun): only options can stand before it, and none of them takes a value.
std::vector<std::string>::const_iterator firstWordOf(const std::vector<std::string>& arguments) {
    return std::find_if(arguments.begin(), arguments.end(),
                        [](const std::string& word) { return word.empty() || word.front() != '-'; });
}

std::variant<Invocation, ParseEnd> parse(const std::vector<std::string>& given) {
    Grammar grammar;
    std::vector<std::string> arguments = given;
    const auto first = firstWordOf(arguments);
    if (first != arguments.end()) {
        grammar.run.takeCommand(arguments, static_cast<std::size_t>(first - arguments.cbegin()));
    }
    try {
        std::reverse(arguments.begin(), arguments.end()); // CLI11 takes them from the back
        grammar.app.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
        const CLI::App* at = &grammar.app;
        std::string path;
        while (!at->get_subcommands().empty()) {
            path += (path.empty() ? "" : " ") + at->get_name();
            at = at->get_subcommands().front();
        }
        return ParseEnd{exit_code::kDone, at->help(path), {}};
    } catch (const CLI::ExtrasError&) {
        const auto extras = grammar.app.remaining(true);
        const bool unknownVerb =
            grammar.verbs.end() == std::find_if(grammar.verbs.begin(), grammar.verbs.end(),
                                                [](const auto& verb) { return verb.first->parsed(); });
        const std::string word = extras.empty() ? std::string() : extras.front();
        if (unknownVerb && !word.starts_with("-")) {
            const CLI::App* noun =
                grammar.app.get_subcommands().empty() ? &grammar.app : grammar.app.get_subcommands().front();
            return mistake("there is no '" + grammar.pathOfUsed() + " " + word + "'", "there is: " + namesOf(*noun));
        }
        return mistake(grammar, (word.starts_with("-") ? "unknown option " : "unexpected argument ") + word);
    } catch (const CLI::ArgumentMismatch& error) {
        const std::string text = error.what();
        return mistake(grammar, text.substr(0, text.find(':')) + " needs one value");
    } catch (const CLI::ParseError& error) {
        std::string text = error.what();
        while (!text.empty() && (text.back() == '\n' || text.back() == '.')) {
            text.pop_back();
        }
        return mistake(grammar, text);
    }
    if (grammar.version) {
        return ParseEnd{exit_code::kDone, "bulkhead " BULKHEAD_VERSION "\n", {}};
    }
    for (const auto& [verb, invocation] : grammar.verbs) {
        if (!verb->parsed()) {
            continue;
        }
        if (auto end = grammar.run.complete(*verb)) {
            return *end;
        }
        if (verb->get_name() == "update" && grammar.templateUpdate.name.empty() && !grammar.templateUpdate.all) {
            return mistake(grammar, "name a template, or give --all");
        }
        if (verb == grammar.launchVerb) {
            if (auto end = completeLaunch(grammar)) {
                return *end;
            }
        }
        return invocation();
    }
    const CLI::App* noun = grammar.app.get_subcommands().empty() ? &grammar.app : grammar.app.get_subcommands().front();
    return mistake("say what to do after '" + grammar.pathOfUsed() + "'", "there is: " + namesOf(*noun));
}

} // namespace

std::variant<Invocation, ParseEnd> parseArguments(const std::vector<std::string>& given) {
    auto parsed = parse(given);
    const auto first = firstWordOf(given);
    if (auto* const end = std::get_if<ParseEnd>(&parsed); end != nullptr && end->status == exit_code::kUsage &&
                                                          first != given.end() &&
                                                          grammar::RunGrammar::hasVerb(*first)) {
        end->status = exit_code::kOurs; // 2 would be taken for the command's own
    }
    return parsed;
}

} // namespace bulkhead::cli
