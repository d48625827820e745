// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/job.hpp"

#include <QTimer>

#include <string>

namespace bulkhead::cli {

enum class ProgressStyle {
    Silent, ///< nothing at all
    Calm,   ///< on a terminal only, and only when it takes more than a second: one line, erased at the end
    Full,   ///< on a terminal a bar from the start, erased at the end; elsewhere one plain line for each phase
};

/// Shows a job's progress on standard error. Needs an event loop for its delay.
class ProgressLine {
public:
    /// `title` is safe text, such as "Starting work".
    ProgressLine(std::string title, ProgressStyle style);
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void update(const client::JobProgress& progress);
    /// Erases what was shown. Later updates are not shown.
    void clear();

private:
    void draw();

    std::string m_title;
    ProgressStyle m_style;
    bool m_onTerminal;
    bool m_started = false;
    bool m_visible = false;
    std::string m_phase;
    double m_fraction = -1;
    QTimer m_delay;
};

/// One line of at most `columns`: with a bar when `fraction` is known and `withBar`.
std::string progressText(const std::string& title, const std::string& safePhase, double fraction, bool withBar,
                         std::size_t columns);

} // namespace bulkhead::cli
