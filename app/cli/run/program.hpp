// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.hpp"
#include "cli/run/outcome.hpp"
#include "cli/session.hpp"
#include "client/domain.hpp"

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

/// What `run` and `resume` have in common: a command of the user's in a domain, with our standard streams.
namespace bulkhead::cli {

/// A running domain and what to call it.
struct Place {
    std::unique_ptr<client::Domain> domain;
    std::string name; ///< empty: a disposable that nobody needs to call anything
};

/// Progress is for somebody who looks on; --json is for a program.
ProgressStyle styleFor(const RunArguments& arguments);

/// Before anything is started: the command's environment, or the exit status after a mistake that was said.
tl::expected<std::vector<std::string>, int> prepareProgram(const RunArguments& arguments, const std::string& verb);
/// Runs the command to its end.
RunOutcome runIn(Session& session, Place& place, const RunArguments& arguments,
                 const std::vector<std::string>& environment);
/// Whatever can be said of the domain, soon: the daemon may be gone.
std::string stateOf(Session& session, Place& place);
/// Says how it ended; the exit status.
int finish(const RunOutcome& outcome, const RunArguments& arguments);
/// Says a mistake of the user's, before anything was started; the exit status.
int refuse(const RunArguments& arguments, const std::string& what, const std::string& hint);

} // namespace bulkhead::cli
