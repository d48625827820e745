// SPDX-License-Identifier: Apache-2.0
// Snapshots, revert and forks of real guests in a private host. Medians of a few runs: the machine is shared.
#include "bench/bench_support.hpp"

#include <cstdio>
#include <vector>

namespace {

using namespace bulkhead::e2e;
using namespace bulkhead::bench;

struct Taken {
    QString id;
    double pauseMs = 0;
    double seconds = 0;
    double mebibytes = 0;
};

QJsonObject objectOf(const Outcome& outcome) {
    return QJsonDocument::fromJson(outcome.output).object();
}

Taken take(const QStringList& more = {}) {
    Taken taken;
    QJsonObject said;
    taken.seconds = secondsOf([&] {
        said = objectOf(must(QStringList{"bulkhead", "snapshot", "create", "bench", "--json"} + more));
    });
    taken.id = said.value("id").toString();
    taken.pauseMs = said.value("pause_ms").toDouble();
    const auto shown = objectOf(must({"bulkhead", "snapshot", "show", taken.id, "--json"}));
    taken.mebibytes = shown.value("size_on_disk").toDouble() / (1024 * 1024);
    return taken;
}

/// The guest writes to so much of its memory, and keeps it.
void fill(int mebibytes) {
    must({"bulkhead", "run", "--domain", "bench", "--", "sh", "-c",
          QString("setsid python3 -c 'import os, time\nkept = os.urandom(%1 << 20)\nopen(\"/tmp/filled\", \"w\")\n"
                  "time.sleep(100000)' </dev/null >/dev/null 2>&1 & "
                  "while [ ! -e /tmp/filled ]; do sleep 0.2; done; rm /tmp/filled")
              .arg(mebibytes)});
}

/// Pauses of an otherwise idle guest with so much private memory.
std::vector<double> pauses(std::vector<double>& seconds, std::vector<double>& sizes) {
    constexpr int kRuns = 5;
    std::vector<double> found;
    for (int i = 0; i < kRuns; ++i) {
        const auto taken = take();
        found.push_back(taken.pauseMs);
        seconds.push_back(taken.seconds);
        sizes.push_back(taken.mebibytes);
        must({"bulkhead", "snapshot", "rm", taken.id});
    }
    return found;
}

/// The median pause.
double measurePause(const char* size, const char* what, int extra, double bar) {
    must({"bulkhead", "domain", "set", "bench", QString("size=") + size});
    must({"bulkhead", "domain", "start", "bench"});
    if (extra > 0) {
        fill(extra);
    }
    std::vector<double> seconds;
    std::vector<double> sizes;
    const double pause = median(pauses(seconds, sizes));
    print((std::string("pause of a full snapshot, ") + what).c_str(), pause, "ms",
          bar > 0 ? ratioTo(pause, bar, "the bar") : std::string());
    print((std::string("full snapshot from call to stored, ") + what).c_str(), median(seconds), "s");
    print((std::string("full snapshot on disk, ") + what).c_str(), median(sizes), "MiB");
    must({"bulkhead", "domain", "stop", "bench", "--force"});
    return pause;
}

void measure() {
    constexpr int kRuns = 5;
    constexpr double kPauseBar = 80;
    constexpr double kLargePauseBar = 150;
    must({"ph-daemon", "start"});
    for (const char* const size : {"small", "medium", "large"}) {
        must({"bulkhead", "template", "warm", "minimal", "--size", size});
    }
    must({"bulkhead", "domain", "create", "bench"});
    const double idle = measurePause("small", "idle minimal domain of 512 MiB", 0, kPauseBar);
    const double large = measurePause("large", "idle minimal domain of 4 GiB", 0, kPauseBar);
    print("growth of the pause from 512 MiB to 4 GiB", large / idle, "times",
          ratioTo(large / idle, 1.3, "the bar of 1.3"));
    measurePause("small", "64 MiB private", 64, kPauseBar);
    measurePause("medium", "400 MiB private", 400, kLargePauseBar);

    must({"bulkhead", "domain", "set", "bench", "size=small"});
    const double cold = secondsOf([] { must({"bulkhead", "domain", "start", "bench", "--cold"}); });
    must({"bulkhead", "domain", "stop", "bench"});
    must({"bulkhead", "domain", "start", "bench"});
    const auto node = take();
    std::vector<double> reverts;
    std::vector<double> keeping;
    std::vector<double> forks;
    std::vector<double> memory;
    for (int i = 0; i < kRuns; ++i) {
        reverts.push_back(secondsOf([&] { must({"bulkhead", "snapshot", "revert", "bench", node.id, "--no-keep"}); }));
        keeping.push_back(secondsOf([&] { must({"bulkhead", "snapshot", "revert", "bench", node.id}); }));
        forks.push_back(secondsOf([&] {
            must({"bulkhead", "snapshot", "fork", "bench", "fork"});
            must({"bulkhead", "domain", "start", "fork"});
        }));
        const auto pids = QString::fromLatin1(emulatorPids()).split(' ');
        const auto pss = must({"sh", "-c", "sed -n 's/^Pss: *//p' /proc/" + pids.back() + "/smaps_rollup"}).output;
        memory.push_back(pss.split(' ').value(0).toDouble() / 1024);
        must({"bulkhead", "domain", "rm", "--now", "--force", "fork"});
    }
    print("revert to running", median(reverts), "s",
          ratioTo(median(reverts), 1, "the bar of 1 s") + ", " + ratioTo(median(reverts), cold, "a cold start"));
    print("revert to running, the present kept", median(keeping), "s", ratioTo(median(keeping), cold, "a cold start"));
    print("fork of a running domain, and its start", median(forks), "s",
          ratioTo(median(forks), 1, "the bar of 1 s") + ", " + ratioTo(median(forks), cold, "a cold start"));
    constexpr double kMemoryBar = 64;
    print("memory (PSS) of an idle fork", median(memory), "MiB",
          ratioTo(median(memory), kMemoryBar, "the bar of 64 MiB"));
    std::vector<double> suspends;
    std::vector<double> resumes;
    for (int i = 0; i < kRuns; ++i) {
        suspends.push_back(secondsOf([] { must({"bulkhead", "domain", "suspend", "bench"}); }));
        resumes.push_back(secondsOf([] { must({"bulkhead", "domain", "resume", "bench"}); }));
    }
    print("suspend", median(suspends), "s", ratioTo(median(suspends), cold, "a cold start"));
    print("resume", median(resumes), "s", ratioTo(median(resumes), cold, "a cold start"));
    must({"bulkhead", "domain", "rm", "--now", "--force", "bench"});
}

} // namespace

int main() {
    try {
        measure();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_snapshot: %s\n", error.what());
        return 1;
    }
}
