// SPDX-License-Identifier: Apache-2.0
// The channel's throughput over each transport that this host has (tests/rig has all), as a share of a pipe inside the
// same guest. bench_channel [MIBYTES [RUNS]]: the median of RUNS.
#include "bench/bench_support.hpp"

#include <QFile>

#include <cstdlib>

namespace {

using namespace bulkhead::e2e;
using namespace bulkhead::bench;

/// Both ways, over each transport that this host has, in the same run.
void measureChannel(unsigned mebibytes, unsigned runs) {
    const auto throughput = [&](const QString& command) {
        std::vector<double> rates;
        for (unsigned i = 0; i < runs; ++i) {
            rates.push_back(mebibytes / secondsOf([&] { must({"sh", "-c", command}); }));
        }
        return median(rates);
    };
    const auto zeroes = QString("head -c %1M /dev/zero").arg(mebibytes);
    QStringList transports{"virtio-serial"};
    // Opening it loads the kernel's module.
    if (QFile device("/dev/vhost-vsock");
        device.open(QIODevice::ReadWrite | QIODevice::ExistingOnly | QIODevice::Unbuffered)) {
        transports << "vsock";
    }
    must({"ph-daemon", "start"});
    must({"bulkhead", "domain", "create", "bench-channel"});
    for (const auto& transport : transports) {
        run({"ph-daemon", "stop"});
        must({"ph-daemon", "start", "--transport=" + transport});
        must({"bulkhead", "domain", "start", "bench-channel"});
        const double inside =
            throughput("bulkhead run --domain bench-channel -- sh -c '" + zeroes + " | cat >/dev/null'");
        const double out = throughput("bulkhead run --domain bench-channel -- " + zeroes + " >/dev/null");
        const double in = throughput(zeroes + " | bulkhead run --domain bench-channel -- sh -c 'cat >/dev/null'");
        const auto name = transport.toStdString();
        print(("channel over " + name + ", guest to host").c_str(), out, "MiB/s",
              ratioTo(out, inside, "a pipe inside the guest"));
        print(("channel over " + name + ", host to guest").c_str(), in, "MiB/s",
              ratioTo(in, inside, "a pipe inside the guest"));
        must({"bulkhead", "domain", "stop", "bench-channel"});
    }
    must({"bulkhead", "domain", "rm", "--now", "--force", "bench-channel"});
}

} // namespace

int main(int argc, char** argv) {
    try {
        const auto argument = [&](int index, unsigned otherwise) {
            return argc > index ? static_cast<unsigned>(std::strtoul(argv[index], nullptr, 10)) : otherwise;
        };
        measureChannel(argument(1, 200), argument(2, 3));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_channel: %s\n", error.what());
        return 1;
    }
}
