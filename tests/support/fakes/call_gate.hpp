// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bulkhead::tests {

/// Between a daemon and its world: counts the calls of its ports, and cuts them off at one of them. Thread-safe.
class CallGate {
public:
    enum class Cut {
        Never,
        Before, ///< the n-th call does not happen, nor does any after it: the daemon was killed just before
        After,  ///< the n-th call happens, but nobody hears of it, and none after it: killed just after
        Once,   ///< the n-th call alone fails; the daemon lives on
        Disk,   ///< from the n-th call on all stores and repositories fail; the daemon and its emulators live on
    };

    /// Counts anew, from 1.
    void arm(Cut cut, unsigned at, Error error = {ErrorCode::Unavailable, "the daemon was killed"}) {
        const std::lock_guard lock(m_mutex);
        m_cut = cut;
        m_at = at;
        m_error = std::move(error);
        m_isDead = false;
        m_names.clear();
        m_cutAt.clear();
    }
    /// The world is well again; what was counted stays.
    void heal() {
        const std::lock_guard lock(m_mutex);
        m_cut = Cut::Never;
        m_isDead = false;
    }
    /// Which calls came since it was armed.
    std::vector<std::string> calls() {
        const std::lock_guard lock(m_mutex);
        return m_names;
    }
    /// The call that was cut; empty: none was.
    std::string cutAt() {
        const std::lock_guard lock(m_mutex);
        return m_cutAt;
    }

    /// Makes the call, or does not. What returns nothing gives no answer to lose either.
    template <class Call> auto pass(const char* name, Call&& call) -> std::invoke_result_t<Call> {
        using Answer = std::invoke_result_t<Call>;
        const Way way = enter(name);
        if constexpr (std::is_void_v<Answer>) {
            if (way != Way::Closed) {
                call();
            }
        } else {
            if (way == Way::Closed) {
                return fail(m_error);
            }
            auto answer = call();
            if (way == Way::Lost) {
                return fail(m_error);
            }
            return answer;
        }
    }

private:
    enum class Way { Open, Closed, Lost };
    Way enter(const char* name) {
        const std::lock_guard lock(m_mutex);
        if (m_isDead) {
            return Way::Closed;
        }
        m_names.emplace_back(name);
        if (m_cut == Cut::Disk) {
            const bool isOnDisk = m_names.back().find("Store::") != std::string::npos ||
                                  m_names.back().find("Repository::") != std::string::npos;
            if (m_names.size() < m_at || !isOnDisk) {
                return Way::Open;
            }
            m_cutAt = m_cutAt.empty() ? m_names.back() : m_cutAt;
            return Way::Closed;
        }
        if (m_cut == Cut::Never || m_names.size() != m_at) {
            return Way::Open;
        }
        m_cutAt = name;
        m_isDead = m_cut != Cut::Once;
        return m_cut == Cut::After ? Way::Lost : Way::Closed;
    }

    std::mutex m_mutex;
    Cut m_cut = Cut::Never;
    unsigned m_at = 0;
    Error m_error{ErrorCode::Unavailable, {}};
    bool m_isDead = false;
    std::vector<std::string> m_names;
    std::string m_cutAt;
};

} // namespace bulkhead::tests
