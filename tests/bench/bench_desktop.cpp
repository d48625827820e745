// SPDX-License-Identifier: Apache-2.0
// A desktop domain as a user waits for it: from the click to the window, and what a viewer costs while nothing happens.
// On real guests, with an X server in memory as the user's screen.
#include "bench/bench_support.hpp"

#include <QProcess>

#include <cstdio>
#include <stdexcept>
#include <unistd.h>

namespace {

using namespace bulkhead::e2e;
using namespace bulkhead::bench;

constexpr int kWindowMs = 180'000;
constexpr const char* kEditor = "org.xfce.mousepad";

class Screen {
public:
    Screen() {
        m_server.start("Xvfb", {"-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"});
        if (!m_server.waitForReadyRead(20'000)) {
            throw std::runtime_error("no X server");
        }
        qputenv("DISPLAY", ":" + m_server.readLine().trimmed());
        qputenv("QT_QPA_PLATFORM", "xcb");
        m_windowManager.start("openbox", QStringList());
        m_windowManager.waitForStarted();
    }
    ~Screen() {
        for (QProcess* process : {&m_windowManager, &m_server}) {
            process->kill();
            process->waitForFinished();
        }
    }

private:
    QProcess m_server;
    QProcess m_windowManager;
};

/// Waits until the host shows so many windows of the guest: their titles have more than the domain's name.
void waitForWindows(int count) {
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < kWindowMs) {
        const auto found = run({"xdotool", "search", "--onlyvisible", "--name", "^\\[bench\\] ."}).output;
        if (found.count('\n') == count) {
            return;
        }
        QTest::qWait(20);
    }
    throw std::runtime_error("the window did not come (or go)");
}

double launchSeconds() {
    const double seconds = secondsOf([] {
        must({"bulkhead", "domain", "launch", "bench", kEditor});
        waitForWindows(1);
    });
    return seconds;
}

void closeEditor() {
    must({"bulkhead", "run", "--domain", "bench", "--", "pkill", "mousepad"});
    waitForWindows(0);
}

/// Seconds of processor time that a process has used.
double processorSeconds(const QByteArray& pid) {
    const auto stat = must({"cat", "/proc/" + QString::fromLatin1(pid) + "/stat"}).output;
    const auto fields = stat.mid(stat.lastIndexOf(')') + 2).split(' ');
    constexpr int kUser = 11;
    constexpr int kSystem = 12;
    return (fields.value(kUser).toDouble() + fields.value(kSystem).toDouble()) /
           static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void measure() {
    const Screen screen;
    must({"ph-daemon", "start"});
    must({"bulkhead", "template", "warm", "desktop"});
    must({"bulkhead", "domain", "create", "bench", "--template", "desktop"});

    const double cold = secondsOf([] { must({"bulkhead", "domain", "start", "--cold", "bench"}); });
    print("cold start of desktop to agent ready", cold, "s");
    must({"bulkhead", "domain", "stop", "bench"});
    const double warm = secondsOf([] { must({"bulkhead", "domain", "start", "bench"}); });
    print("warm start of desktop to agent ready", warm, "s", ratioTo(warm, cold, "the cold start"));
    const auto pss =
        must({"sh", "-c", "sed -n 's/^Pss: *//p' /proc/" + QString::fromLatin1(emulatorPids()) + "/smaps_rollup"})
            .output;
    print("memory (PSS) of an idle desktop domain that began warm", pss.split(' ').value(0).toDouble() / 1024, "MiB",
          ratioTo(pss.split(' ').value(0).toDouble() / 1024, 128, "the bar of 128 MiB"));
    const double running = launchSeconds();
    print("click to window, running domain, first time", running, "s");
    closeEditor();
    const double again = launchSeconds();
    print("click to window, running domain, again", again, "s", ratioTo(again, running, "the first time"));

    const auto viewer = pidsOf("bulkhead-viewer");
    constexpr int kIdleMs = 10'000;
    QTest::qWait(3000); // it draws itself
    const double before = processorSeconds(viewer);
    QTest::qWait(kIdleMs);
    print("viewer's processor use while the guest is idle", (processorSeconds(viewer) - before) * 100'000 / kIdleMs,
          "%", ratioTo((processorSeconds(viewer) - before) * 1000 / kIdleMs, 1, "one processor"));
    closeEditor();

    must({"bulkhead", "domain", "stop", "bench"});
    const double stopped = launchSeconds();
    print("click to window, stopped domain", stopped, "s", ratioTo(stopped, cold, "the cold start without a window"));
    must({"bulkhead", "domain", "rm", "--now", "--force", "bench"});
}

} // namespace

int main() {
    try {
        measure();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_desktop: %s\n", error.what());
        return 1;
    }
}
