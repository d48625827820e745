// SPDX-License-Identifier: Apache-2.0
#include "cli/grammar/run_grammar.hpp"

#include "dbus/interfaces/exec_stream.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace bulkhead::cli::grammar {
namespace {

constexpr const char* kRunFooter = R"(Examples:
  bulkhead run -- npm install                  in a disposable domain, which is gone afterwards
  seq 9 | bulkhead run sort -rn | head -3      pipes work as with ssh
  bulkhead run --domain work -t                a shell in the domain work
  bulkhead run --from 1a2b3c4d -- make test    in a disposable that begins in a snapshot
  bulkhead run --keep -- ./agent               kept as it is at the end: bulkhead resume goes on from there

The first word that is not an option begins the command; -- says so explicitly.

Exit status: the command's own; 128 + N when signal N ended it; 124 time-out; 125 Bulkhead failed, also because of a
mistake on this command line; 126 the command cannot be executed; 127 it was not found.

--json leaves the command's output alone and writes one JSON object on one line to standard error at the end:
  {"outcome": "exited|signalled|timed-out|lost|failed|left", "exit_code": N, "domain": NAME, …}
with "error": {"code", "message", "hint"} for every outcome that is a failure of ours, and with --keep "kept": {"domain":
NAME, "suspended": true|false, …}.

With --keep the disposable is suspended when nothing runs in it any more, even if this program is gone by then. Before the
command runs nothing is kept.

Signals are passed on to the command. The third Ctrl-C within two seconds leaves it. With -t all keys are the
command's; at the beginning of a line ~. leaves it (exit status 130), and ~~ types one ~.)";

constexpr const char* kResumeFooter = R"(Examples:
  bulkhead resume disp-1a2b3c4d                 it goes on, and stays running
  bulkhead resume disp-1a2b3c4d -- ./agent      runs this in it, and suspends it again at the end

RUN is the name that run --keep said, or any suspended domain. To throw one away: bulkhead domain rm RUN

Exit status: as of run; 0 without a command.)";

/// CLI11 sees the options only (takeCommand), so it cannot know how a whole line looks.
class UsageFormatter : public HelpFormatter {
public:
    explicit UsageFormatter(std::string usage)
        : m_usage(std::move(usage)) {}
    std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override { return m_usage; }

private:
    std::string m_usage;
};

/// Where the options that stand at `from` end: at --, or at the first word that is none.
std::size_t skipOptions(const CLI::App& verb, const std::vector<std::string>& arguments, std::size_t from) {
    std::size_t at = from;
    while (at < arguments.size()) {
        const std::string& word = arguments[at];
        if (word == "--" || word.size() < 2 || word.front() != '-') {
            break;
        }
        const CLI::Option* option = verb.get_option_no_throw(word);
        const bool takesNext = option != nullptr && option->get_items_expected_min() > 0;
        at += takesNext ? 2 : 1;
    }
    return std::min(at, arguments.size());
}

/// How a program is run, wherever that is.
void addProgram(CLI::App* verb, RunArguments& run) {
    verb->add_flag("-t,--terminal", run.terminal, "Give the command a terminal; without a command, a shell");
    addDuration(verb, "--timeout", run.timeout, "End the command after this time (then exit status 124)");
    addText(verb, "--user", run.user, "USER", "As this user of the guest (default: user)");
    addText(verb, "--cwd", run.cwd, "DIR", "In this directory of the guest (default: the user's home)");
    verb->add_option("--env", run.environment, "Set NAME, or pass on the value that NAME has here")
        ->type_name("NAME[=VALUE]")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

} // namespace

bool RunGrammar::hasVerb(const std::string& word) {
    return word == "run" || word == "resume";
}

void RunGrammar::addTo(CLI::App& app, Verbs& verbs) {
    m_runVerb = addVerb(&app, "run", "Run a command in a domain, as ssh would", m_run.json);
    m_runVerb->formatter(std::make_shared<UsageFormatter>("Usage: bulkhead run [OPTIONS] [--] COMMAND [ARGUMENT...]\n"
                                                          "       bulkhead run -t [OPTIONS]\n"));
    CLI::Option* domain =
        addText(m_runVerb, "--domain", m_domain, "NAME", "In this domain, which is started if it does not run");
    // A flag, so that only --disposable=TEMPLATE takes a value and "--disposable ls" runs ls.
    CLI::Option* disposable = m_runVerb->add_flag("--disposable{}", m_run.templateName,
                                                  "In a new disposable domain, of TEMPLATE if given (the default)");
    disposable->excludes(domain);
    CLI::Option* from =
        addText(m_runVerb, "--from", m_run.from, "ID", "In a new disposable domain that begins in this snapshot")
            ->excludes(domain)
            ->excludes(disposable);
    m_runVerb->add_flag("--disk", m_run.isDiskOnly, "With --from: the disks alone, without the memory: it boots")
        ->needs(from);
    m_runVerb->add_flag("--keep", m_run.isKept, "Suspend the disposable at the end, do not remove it (see: resume)")
        ->excludes(domain);
    addText(m_runVerb, "--size", m_run.size, "SIZE", "One of the template's sizes, for the disposable")
        ->excludes(domain)
        ->excludes(from);
    addProgram(m_runVerb, m_run);
    m_runVerb->footer(kRunFooter);
    verbs.emplace_back(m_runVerb, [this] { return Invocation(m_run); });

    RunArguments& resumed = m_resume.run;
    m_resumeVerb = addVerb(&app, "resume", "Go on with what run --keep kept, or with a suspended domain", resumed.json);
    m_resumeVerb->formatter(
        std::make_shared<UsageFormatter>("Usage: bulkhead resume [OPTIONS] RUN\n"
                                         "       bulkhead resume [OPTIONS] RUN [--] COMMAND [ARGUMENT...]\n"
                                         "       bulkhead resume -t [OPTIONS] RUN\n"));
    addText(m_resumeVerb, "RUN", m_resumed, "", "Its name")->required();
    addProgram(m_resumeVerb, resumed);
    m_resumeVerb->footer(kResumeFooter);
    verbs.emplace_back(m_resumeVerb, [this] { return Invocation(m_resume); });
}

void RunGrammar::takeCommand(std::vector<std::string>& arguments, std::size_t verb) {
    if (!hasVerb(arguments[verb])) {
        return;
    }
    const bool isResume = arguments[verb] == "resume";
    const CLI::App& app = isResume ? *m_resumeVerb : *m_runVerb;
    std::size_t at = skipOptions(app, arguments, verb + 1);
    if (isResume && at < arguments.size() && arguments[at] != "--") {
        at = skipOptions(app, arguments, at + 1); // behind the name
    }
    const bool isMarked = at < arguments.size() && arguments[at] == "--";
    std::vector<std::string>& command = isResume ? m_resume.run.command : m_run.command;
    command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at + (isMarked ? 1 : 0)), arguments.end());
    arguments.resize(at);
}

std::optional<ParseEnd> RunGrammar::complete(const CLI::App& verb) {
    const bool isResume = &verb == m_resumeVerb;
    if (!isResume && &verb != m_runVerb) {
        return std::nullopt;
    }
    RunArguments& run = isResume ? m_resume.run : m_run;
    const std::string& name = isResume ? m_resumed : m_domain;
    if (!name.empty()) {
        run.domain = name;
    }
    const std::string hint = "see: bulkhead " + verb.get_name() + " --help";
    if (run.command.empty() && !run.terminal) {
        if (!isResume) {
            return mistake("no command given", "as in: bulkhead run -- uname -a; or: bulkhead run -t, for a shell");
        }
        if (run.timeout || !run.user.empty() || !run.cwd.empty() || !run.environment.empty()) {
            return mistake("no command given that the options could be for", hint);
        }
    }
    if (run.timeout && run.timeout->count() > exec_stream::kLongestTimeoutMs) {
        return mistake("--timeout: the longest is 30d", hint);
    }
    if (!run.command.empty() && run.command.front().empty()) {
        return mistake("the command's name is empty", hint);
    }
    return std::nullopt;
}

} // namespace bulkhead::cli::grammar
