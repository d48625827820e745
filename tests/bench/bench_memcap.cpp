// SPDX-License-Identifier: Apache-2.0
// What a capture of 380 MiB of private memory in a guest of 1 GiB costs: in the pause and after it, cold and against a
// parent image of which 1 MiB differs; and what it costs to make an image of it. Ratios are to one memcpy() of as much.
#include "bench/bench_support.hpp"
#include "memory/memory_capture.hpp"
#include "memory/memory_image.hpp"
#include "unit/memcap/stopped_process.hpp"

#include <QTemporaryDir>

#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::memory;

namespace {

constexpr Bytes kRam = kGiB;
constexpr Bytes kPrivate = 380 * kMiB;
constexpr std::uint64_t kChanged = 256;
constexpr int kRounds = 3;

template <class T> T must(Result<T> result) {
    if (!result) {
        throw std::runtime_error(result.error().message);
    }
    return std::move(*result);
}

/// Runs of 16 pages with different bytes all over the memory, as a guest has them.
void dirty(char* memory) {
    constexpr std::uint64_t kRun = 16;
    const std::uint64_t runs = kPrivate / kPage / kRun;
    for (std::uint64_t i = 0; i < runs; ++i) {
        const std::uint64_t page = i * (kRam / kPage) / runs;
        for (std::uint64_t inside = 0; inside < kRun; ++inside) {
            std::memset(memory + (page + inside) * kPage, static_cast<int>(1 + (page + inside) % 250), kPage);
        }
    }
}

/// As emulators ask for it, with all of it in use: the kernel has fewer pages to find.
void dirtyHuge(char* memory) {
    ::madvise(memory, kRam, MADV_HUGEPAGE);
    for (std::uint64_t page = 0; page < kPrivate / kPage; ++page) {
        std::memset(memory + page * kPage, static_cast<int>(1 + page % 250), kPage);
    }
}

void change(char* memory) {
    for (std::uint64_t i = 0; i < kChanged; ++i) {
        memory[i * (kRam / kChanged) + 77] = 'c';
    }
}

double memcpySeconds() {
    std::vector<char> from(kPrivate, 'a');
    std::vector<char> to(kPrivate, 'b');
    std::vector<double> all;
    for (int round = 0; round < kRounds; ++round) {
        all.push_back(bench::secondsOf([&] {
            std::memcpy(to.data(), from.data(), from.size());
            asm volatile("" : : "r"(to.data()) : "memory"); // it is needed
        }));
    }
    return bench::median(all);
}

class Bench {
public:
    explicit Bench(double reference)
        : m_reference(reference) {}

    MemoryImage run(const char* name, const test::StoppedProcess& process, const std::optional<MemoryImage>& parent,
                    bool isMapped) {
        std::vector<double> prepared;
        std::vector<double> captured;
        std::vector<double> finished;
        CaptureSpec spec;
        spec.helper = BULKHEAD_MEMCAP;
        spec.emulator = process.pid();
        spec.ram = kRam;
        spec.output = path(name);
        if (parent) {
            spec.parent = CaptureParent{parent->file, parent->digest};
        }
        if (isMapped) {
            spec.mappedImage = parent->file;
        }
        FinishedCapture result;
        for (int round = 0; round < kRounds; ++round) {
            std::filesystem::remove(spec.output);
            auto capture = must(MemoryCapture::start(spec));
            prepared.push_back(bench::secondsOf([&] { must(capture.prepare()); }));
            captured.push_back(bench::secondsOf([&] { must(capture.capture()); }));
            finished.push_back(bench::secondsOf([&] { result = must(capture.finish()); }));
        }
        print(name, "prepare", bench::median(prepared));
        print(name, "capture, in the pause", bench::median(captured));
        print(name, "finish", bench::median(finished));
        bench::print((std::string("memcap ") + name + ", stored").c_str(),
                     static_cast<double>(result.delta.size) / static_cast<double>(kMiB), "MiB");
        ComposeSpec compose;
        compose.ram = kRam;
        if (parent) {
            compose.parent = parent->file;
            compose.parentDigest = parent->digest;
        }
        compose.deltas = {{spec.output, parent ? parent->digest : std::string(zeroParent())}};
        compose.folder = m_folder.path().toStdString();
        compose.access = {0444, ::getuid(), ::getgid()};
        MemoryImage image;
        print(name, "compose", bench::secondsOf([&] { image = must(composeImage(compose)); }));
        print(name, "verify", bench::secondsOf([&] {
                  if (const auto good = verifyImage(image.file, image.digest, kRam); !good) {
                      throw std::runtime_error(good.error().message);
                  }
              }));
        return image;
    }

private:
    std::string path(const char* name) const { return m_folder.filePath(QString(name) + ".delta").toStdString(); }
    void print(const char* name, const char* phase, double seconds) const {
        bench::print((std::string("memcap ") + name + ", " + phase).c_str(), seconds * 1000, "ms",
                     bench::ratioTo(seconds, m_reference, "memcpy of 380 MiB"));
    }

    double m_reference;
    QTemporaryDir m_folder{QStringLiteral("/var/tmp/bulkhead-bench-XXXXXX")};
};

} // namespace

int main() {
    try {
        const double reference = memcpySeconds();
        bench::print("memcpy of 380 MiB", reference * 1000, "ms");
        Bench bench(reference);
        std::optional<MemoryImage> image;
        {
            // Small pages all over the memory are the worst case.
            test::StoppedProcess source(kRam, std::nullopt, {dirty, change});
            source.change();
            image = bench.run("cold, scattered pages", source, std::nullopt, false);
            source.change();
            bench.run("again, 1 MiB changed", source, image, false);
        }
        {
            test::StoppedProcess source(kRam, std::nullopt, {dirtyHuge});
            source.change();
            bench.run("cold, huge pages", source, std::nullopt, false);
        }
        test::StoppedProcess child(kRam, image->file, {change});
        child.change();
        bench.run("child with 1 MiB private", child, image, true);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
