// SPDX-License-Identifier: Apache-2.0
#include "agent/exec_request.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <unistd.h>

namespace bulkhead::agent {
namespace {

bool hasNul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

bool isWellFormed(const ExecRequest& request) {
    const auto& argv = request.argv();
    const auto& environment = request.environment();
    if (argv.empty() || static_cast<std::size_t>(argv.size()) > protocol::kMaxArguments ||
        static_cast<std::size_t>(environment.size()) > protocol::kMaxEnvironment) {
        return false;
    }
    // The kernel would silently end a text at a NUL, and something else than what was judged would run.
    if (std::any_of(argv.begin(), argv.end(), hasNul) || hasNul(request.cwd()) || hasNul(request.user()) ||
        hasNul(request.term())) {
        return false;
    }
    if (!request.cwd().empty() && request.cwd().front() != '/') {
        return false;
    }
    return std::all_of(environment.begin(), environment.end(), [](const std::string& entry) {
        const std::size_t equals = entry.find('=');
        return !hasNul(entry) && equals != std::string::npos && equals > 0;
    });
}

/// Whom the domain belongs to.
const std::string kDomainUser = "user";

unsigned short windowPart(std::uint32_t value, unsigned short fallback) {
    constexpr std::uint32_t kMost = std::numeric_limits<unsigned short>::max();
    return value == 0 ? fallback : static_cast<unsigned short>(std::min(value, kMost));
}

} // namespace

tl::expected<ChildPlan, ExecFailed::Reason> planFor(const ExecRequest& request, bool changeAccount) {
    if (!isWellFormed(request)) {
        return tl::unexpected(ExecFailed::BAD_REQUEST);
    }
    const std::string wanted = changeAccount && request.user().empty() ? kDomainUser : request.user();
    auto account = wanted.empty() ? systemAccount(::getuid()) : systemAccount(wanted);
    if (!account || (!changeAccount && account->uid != ::getuid())) {
        return tl::unexpected(ExecFailed::NO_SUCH_USER);
    }
    ChildPlan plan;
    plan.argv.assign(request.argv().begin(), request.argv().end());
    plan.terminal = request.terminal();
    std::optional<std::string> term;
    if (plan.terminal) {
        term = request.term().empty() ? "dumb" : request.term();
        plan.rows = windowPart(request.window().rows(), 24);
        plan.columns = windowPart(request.window().columns(), 80);
    }
    std::vector<std::string> extra;
    if (changeAccount && account->name == kDomainUser) {
        extra = sessionEnvironment();
    }
    extra.insert(extra.end(), request.environment().begin(), request.environment().end());
    plan.environment = loginEnvironment(*account, extra, term);
    plan.cwdMayBeMissing = request.cwd().empty();
    plan.cwd = request.cwd().empty() ? account->home : request.cwd();
    plan.limitProcesses = request.limit_processes();
    if (changeAccount) {
        plan.groups = systemGroupsOf(*account);
        plan.account = std::move(account);
    }
    return plan;
}

} // namespace bulkhead::agent
