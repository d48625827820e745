// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress_line.hpp"

#include "client/terminal_text.hpp"

#include <QObject>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace bulkhead::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};

std::size_t terminalColumns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80U;
}

void print(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
}

} // namespace

std::string progressText(const std::string& title, const std::string& safePhase, double fraction, bool withBar,
                         std::size_t columns) {
    constexpr std::size_t kBar = 24;
    std::string line = title;
    if (withBar && fraction >= 0) {
        const double part = std::min(fraction, 1.0);
        const auto full = static_cast<std::size_t>(part * static_cast<double>(kBar));
        line += fmt::format("  [{}{}] {:3d} %", std::string(full, '#'), std::string(kBar - full, '.'),
                            static_cast<int>(part * 100));
        line += safePhase.empty() ? std::string() : "  " + safePhase;
    } else {
        line += safePhase.empty() ? "…" : " (" + safePhase + ")…";
    }
    // The last column stays free: some terminals wrap when it is filled.
    return client::cutToWidth(line, columns > 1 ? columns - 1 : columns);
}

ProgressLine::ProgressLine(std::string title, ProgressStyle style)
    : m_title(std::move(title))
    , m_style(style)
    , m_onTerminal(::isatty(STDERR_FILENO) == 1) {
    if (m_style == ProgressStyle::Silent || (m_style == ProgressStyle::Calm && !m_onTerminal)) {
        m_style = ProgressStyle::Silent;
        return;
    }
    if (m_onTerminal) {
        m_delay.setSingleShot(true);
        QObject::connect(&m_delay, &QTimer::timeout, &m_delay, [this] {
            m_started = true;
            draw();
        });
        m_delay.start(m_style == ProgressStyle::Calm ? kPatience : std::chrono::milliseconds(0));
    }
}

void ProgressLine::update(const client::JobProgress& progress) {
    if (m_style == ProgressStyle::Silent) {
        return;
    }
    const std::string phase = client::terminalSafe(progress.phase);
    const bool newPhase = phase != m_phase;
    if (!newPhase && progress.fraction == m_fraction) {
        return;
    }
    m_phase = phase;
    m_fraction = progress.fraction;
    if (m_onTerminal) {
        draw();
    } else if (newPhase && !phase.empty()) {
        print(m_title + ": " + phase + "\n");
    }
}

void ProgressLine::draw() {
    if (!m_started) {
        return;
    }
    m_visible = true;
    print("\r\x1b[K" + progressText(m_title, m_phase, m_fraction, m_style == ProgressStyle::Full, terminalColumns()));
}

void ProgressLine::clear() {
    m_delay.stop();
    m_style = ProgressStyle::Silent;
    if (m_visible) {
        m_visible = false;
        print("\r\x1b[K");
    }
}

} // namespace bulkhead::cli
