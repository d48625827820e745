// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSize>

#include <chrono>
#include <optional>

/// Rules about time, without a clock of their own: callers say what time it is.
namespace bulkhead::viewer {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;

inline constexpr std::chrono::milliseconds kResizeDelay{150};
inline constexpr std::chrono::milliseconds kResizePatience{3000};

/// When to tell the guest how large a window is to be: once the size has been the same for kResizeDelay, and once more
/// when the guest has not followed within kResizePatience (a command may be lost in a reconnect).
class ResizePlan {
public:
    /// The host window now has this many pixels.
    void want(QSize size, Instant now);
    /// The guest's surface has this size.
    void arrived(QSize size);
    /// What is to be asked of the guest now, once.
    std::optional<QSize> take(Instant now);
    /// When to call take() next; nullopt: not before another want().
    [[nodiscard]] std::optional<Instant> due() const;
    /// The guest has not followed yet.
    [[nodiscard]] bool pending() const { return m_wanted.isValid() && m_wanted != m_actual; }
    /// What was asked is to be asked again: the guest side has forgotten it.
    void forget();

private:
    QSize m_wanted;
    QSize m_actual;
    std::optional<Instant> m_due;
    int m_asked = 0;
};

/// Waiting times between attempts to connect again: 250 ms, doubled up to 5 s.
class Backoff {
public:
    std::chrono::milliseconds next();
    void reset() { m_attempts = 0; }
    [[nodiscard]] int attempts() const { return m_attempts; }

private:
    int m_attempts = 0;
};

/// A bucket of permits that refills: `burst` at once, then `perSecond`. Bounds how fast a guest can make windows pop
/// up.
class RateLimit {
public:
    RateLimit(int burst, int perSecond)
        : m_burst(burst)
        , m_perSecond(perSecond)
        , m_permits(burst) {}
    /// Takes a permit if there is one.
    bool take(Instant now);
    /// How long until there is one.
    [[nodiscard]] std::chrono::milliseconds wait(Instant now) const;

private:
    [[nodiscard]] double permitsAt(Instant now) const;

    double m_burst;
    double m_perSecond;
    double m_permits;
    Instant m_since{};
};

} // namespace bulkhead::viewer
