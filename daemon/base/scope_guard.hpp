// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace bulkhead {

/// Runs an undo step at the end of the scope unless dismissed: for "act, and take it back if a later step fails".
/// The undo step must not throw.
template <class Undo> class ScopeGuard {
public:
    explicit ScopeGuard(Undo undo)
        : m_undo(std::move(undo)) {}
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;
    ~ScopeGuard() {
        if (m_armed) {
            m_undo();
        }
    }
    void dismiss() { m_armed = false; }

private:
    Undo m_undo;
    bool m_armed = true;
};

} // namespace bulkhead
