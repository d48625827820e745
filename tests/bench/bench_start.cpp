// SPDX-License-Identifier: Apache-2.0
// Starts, on real guests in a private host. Medians of a few runs: the machine is shared.
#include "bench/bench_support.hpp"
#include "unit/agent/host_client.hpp"

#include <QFile>

#include <cstdio>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

namespace {

using namespace bulkhead;
using namespace bulkhead::e2e;
using namespace bulkhead::bench;

/// The same machine without the daemon: the XML of a running domain with files of its own, created by virsh; until the
/// agent has proved itself.
double bareStart() {
    must({"bulkhead", "domain", "start", "bench"});
    const auto name = QString::fromLatin1(run({"virsh", "list", "--name"}).output.trimmed());
    auto xml = QString::fromUtf8(must({"virsh", "dumpxml", "--inactive", name}).output);
    const auto id = name.mid(3);
    const QString folder = "/var/lib/bulkhead/instances/" + id;
    const QString bare = "/var/lib/bulkhead/bare";
    must({"sh", "-c", "rm -rf " + bare + " && cp -a " + folder + " " + bare});
    const auto home = QRegularExpression("/var/lib/bulkhead/homes/[^']*").match(xml).captured(0);
    must({"cp", "-a", "--sparse=always", home, bare + "/home.img"});
    const auto socket = QRegularExpression("/run/bulkhead/[^']*agent.sock").match(xml).captured(0);
    must({"bulkhead", "domain", "stop", "bench"});
    must({"qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b",
          QRegularExpression("/var/lib/bulkhead/templates/[^']*root.img").match(xml).captured(0),
          bare + "/system.qcow2"});
    must({"chown", "--reference=" + bare + "/token", bare + "/system.qcow2"});
    xml.replace(home, bare + "/home.img").replace(folder, bare).replace(socket, "/run/bulkhead/bare.sock");
    xml.replace(id, "00000000-0000-4000-8000-000000000000");
    QFile file("/run/bulkhead/bare.xml");
    QFile tokenFile(bare + "/token");
    if (!file.open(QIODevice::WriteOnly) || !tokenFile.open(QIODevice::ReadOnly)) {
        throw std::runtime_error("cannot write the bare machine's files");
    }
    file.write(xml.toUtf8());
    file.close();
    protocol::Token token{};
    tokenFile.read(reinterpret_cast<char*>(token.data()), static_cast<qint64>(token.size()));
    const double seconds = secondsOf([&] {
        must({"virsh", "create", file.fileName()});
        UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/run/bulkhead/bare.sock"};
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            throw std::runtime_error("cannot connect to the bare machine");
        }
        tests::HostClient client(std::move(fd), token);
        if (!client.begin(kPatienceMs) || !client.hello()) {
            throw std::runtime_error("the bare machine's agent does not answer");
        }
    });
    must({"virsh", "destroy", "bh-00000000-0000-4000-8000-000000000000"});
    return seconds;
}

/// Those that came with the template.
void removeImages() {
    must({"sh", "-c", "rm -rf /var/lib/bulkhead/templates/*/*/warm"});
}

/// Disposables for which an emulator waits, against those for which it is created (seconds).
void measureShells(double created) {
    constexpr int kRuns = 5;
    must({"ph-daemon", "stop"});
    must({"ph-daemon", "start", "--transport=virtio-serial", "--waiting-shells=1"});
    std::vector<double> disposable;
    double memory = 0;
    for (int i = 0; i <= kRuns; ++i) {
        const double seconds = secondsOf([] { must({"bulkhead", "run", "--disposable", "--", "true"}); });
        if (i > 0) { // for the first one none has waited
            disposable.push_back(seconds);
        }
        // The log says so; an emulator that ends looks like one that waits for a moment.
        const bool isWaiting = QTest::qWaitFor(
            [i] {
                const auto log = run({"ph-daemon", "log"}).output;
                return log.count("an emulator waits for the next start") > i && !emulatorPids().contains(' ');
            },
            kPatienceMs);
        if (!isWaiting) {
            throw std::runtime_error("no emulator waits for the next disposable");
        }
        const auto pss =
            must({"sh", "-c", "sed -n 's/^Pss: *//p' /proc/" + QString::fromLatin1(emulatorPids()) + "/smaps_rollup"})
                .output;
        memory = pss.split(' ').value(0).toDouble() / 1024;
    }
    print("warm run --disposable -- true, an emulator waits", median(disposable), "s",
          ratioTo(median(disposable), created, "the same without one"));
    print("memory (PSS) of an emulator that waits", memory, "MiB");
}

/// Starts from a warm image, against the cold start of the same template in the same run.
void measureImages(double coldStart) {
    constexpr int kRuns = 5;
    const double making = secondsOf([] { must({"bulkhead", "template", "warm", "minimal"}); });
    print("making the warm image of minimal", making, "s", ratioTo(making, coldStart, "the cold start"));
    std::vector<double> start;
    std::vector<double> disposable;
    std::vector<double> memory;
    for (int i = 0; i < kRuns; ++i) {
        start.push_back(secondsOf([] { must({"bulkhead", "domain", "start", "bench"}); }));
        // What one more idle domain costs: pages that it shares with others count for their part only.
        const auto pss =
            must({"sh", "-c", "sed -n 's/^Pss: *//p' /proc/" + QString::fromLatin1(emulatorPids()) + "/smaps_rollup"})
                .output;
        memory.push_back(pss.split(' ').value(0).toDouble() / 1024);
        must({"bulkhead", "domain", "stop", "bench"});
        disposable.push_back(secondsOf([] { must({"bulkhead", "run", "--disposable", "--", "true"}); }));
    }
    print("warm start of minimal to agent ready", median(start), "s",
          ratioTo(median(start), coldStart, "the cold start"));
    print("warm run --disposable -- true, start to exit", median(disposable), "s",
          ratioTo(median(disposable), coldStart, "the cold start"));
    constexpr double kBar = 64;
    print("memory (PSS) of an idle minimal domain that began warm", median(memory), "MiB",
          ratioTo(median(memory), kBar, "the bar of 64 MiB"));
    measureShells(median(disposable));
}

void measure() {
    constexpr int kRuns = 5;
    // The bare machine is spoken to over its socket.
    must({"ph-daemon", "start", "--transport=virtio-serial"});
    must({"bulkhead", "domain", "create", "bench"});
    must({"bulkhead", "run", "--disposable", "--", "true"}); // libvirt's and the page cache's first time

    removeImages();
    std::vector<double> cold;
    std::vector<double> bare;
    std::vector<double> disposable;
    for (int i = 0; i < kRuns; ++i) {
        cold.push_back(secondsOf([] { must({"bulkhead", "domain", "start", "bench"}); }));
        must({"bulkhead", "domain", "stop", "bench"});
        bare.push_back(bareStart());
        disposable.push_back(secondsOf([] { must({"bulkhead", "run", "--disposable", "--", "true"}); }));
    }
    const double coldStart = median(cold);
    const double bareMedian = median(bare);
    print("cold start of minimal to agent ready", coldStart, "s",
          ratioTo(coldStart, bareMedian, "a bare libvirt start"));
    print("bare libvirt start of the same XML to agent ready", bareMedian, "s");
    print("daemon's own share of a start", (coldStart - bareMedian) * 1000, "ms");
    print("run --disposable -- true, start to exit", median(disposable), "s",
          ratioTo(median(disposable), coldStart, "the cold start"));

    must({"bulkhead", "domain", "start", "bench"});
    std::vector<double> warm;
    for (int i = 0; i < kRuns; ++i) {
        warm.push_back(secondsOf([] { must({"bulkhead", "run", "--domain", "bench", "--", "true"}); }));
    }
    print("run in a running domain -- true", median(warm) * 1000, "ms",
          ratioTo(median(warm), coldStart, "the cold start"));

    must({"bulkhead", "domain", "stop", "bench"});
    measureImages(coldStart);
    must({"bulkhead", "domain", "rm", "--now", "--force", "bench"});
}

} // namespace

int main() {
    try {
        measure();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_start: %s\n", error.what());
        return 1;
    }
}
