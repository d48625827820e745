// SPDX-License-Identifier: Apache-2.0
#include "agent/detached.hpp"

#include <utility>

namespace bulkhead::agent {

void DetachedPrograms::add(std::unique_ptr<Exec> program) {
    program->detach();
    if (m_programs.size() >= kMost) {
        program->hangUp();
    }
    m_programs.push_back(std::move(program));
}

void DetachedPrograms::lookForEnds(std::set<pid_t>& leaders) {
    for (const auto& program : m_programs) {
        program->lookForEnd();
        if (program->pid() > 0) {
            leaders.insert(program->pid());
        }
    }
}

void DetachedPrograms::tidy() {
    std::erase_if(m_programs, [](const auto& program) { return program->isOver(); });
}

void DetachedPrograms::hangUp() {
    for (const auto& program : m_programs) {
        program->hangUp();
    }
}

} // namespace bulkhead::agent
