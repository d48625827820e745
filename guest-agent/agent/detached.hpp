// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/exec.hpp"

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

namespace bulkhead::agent {

/// Programs without the session that started them: it was another machine's, see Picture. They live on, nobody hears
/// what they say, and they are reaped when they end.
class DetachedPrograms {
public:
    /// Each has descriptors here. Further ones are hung up.
    static constexpr std::size_t kMost = 256;

    void add(std::unique_ptr<Exec> program);
    /// After SIGCHLD. Adds those to `leaders` that have not ended.
    void lookForEnds(std::set<pid_t>& leaders);
    /// Removes what has ended. When none of them is on the stack.
    void tidy();
    void hangUp();
    [[nodiscard]] std::size_t count() const { return m_programs.size(); }

private:
    std::vector<std::unique_ptr<Exec>> m_programs;
};

} // namespace bulkhead::agent
