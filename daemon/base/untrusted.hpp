// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace bulkhead {

/// A value whose bytes came from a guest. There is one way out: a validator that returns a clean value or refuses.
/// Reject, never repair.
template <class T> class Untrusted {
public:
    explicit Untrusted(T value)
        : m_value(std::move(value)) {}

    /// Calls `validator(const T&)` and returns what it returns (a Result or an optional of a clean type).
    template <class Validator> [[nodiscard]] auto validate(Validator&& validator) const {
        return std::forward<Validator>(validator)(m_value);
    }

private:
    T m_value;
};

} // namespace bulkhead
