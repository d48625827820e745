// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <string>
#include <string_view>

namespace bulkhead::cli {

/// Writes to standard output and makes sure that it got there: 0, or 1 after saying on standard error why not. A
/// reader that has seen enough (a closed pipe) is no failure worth words.
int printOut(const std::string& text);

/// "bulkhead: what: why" and, when there is one, the hint on a line of its own; made safe for the terminal.
void printFailure(const std::string& what, const client::Failure& failure, bool json);
void printMistake(const std::string& what, const std::string& hint);

/// What the user can do about it; empty when we know nothing better than the message. `subject`: a domain's or
/// template's name, or empty.
std::string hintFor(const client::Failure& failure, std::string_view what);

} // namespace bulkhead::cli
