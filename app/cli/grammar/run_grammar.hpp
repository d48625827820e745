// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/grammar/parts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bulkhead::cli::grammar {

/// The verbs `run` and `resume`, behind whose options a command of the guest's stands. Neither copied nor moved once
/// they are in an app.
class RunGrammar {
public:
    RunGrammar() = default;
    RunGrammar(const RunGrammar&) = delete;
    RunGrammar& operator=(const RunGrammar&) = delete;

    static bool hasVerb(const std::string& word);
    void addTo(CLI::App& app, Verbs& verbs);
    /// Takes the command off a line whose word number `verb` is the verb; nothing for other verbs. CLI11 cannot be told
    /// that a positional ends the options, so it sees the options only.
    void takeCommand(std::vector<std::string>& arguments, std::size_t verb);
    /// After the options of `verb` are read: what is wrong with them. None: nothing, or it is another verb.
    std::optional<ParseEnd> complete(const CLI::App& verb);

private:
    CLI::App* m_runVerb = nullptr;
    CLI::App* m_resumeVerb = nullptr;
    RunArguments m_run;
    std::string m_domain;
    ResumeArguments m_resume;
    std::string m_resumed;
};

} // namespace bulkhead::cli::grammar
