// SPDX-License-Identifier: Apache-2.0
// How long the tray's window takes to open with 200 domains, a tenth of them running: from nothing to the first picture
// with the list in it, connection to the bus and questions to the daemon included. The daemon's double is a process of
// its own, as the daemon is. bench_tray [RUNS]: the median of RUNS.
#include "fake_bulkhead.hpp"
#include "private_bus.hpp"

#include "gui/desk.hpp"
#include "gui/main_window.hpp"

#include <QApplication>
#include <QElapsedTimer>
#include <QEvent>
#include <QListView>
#include <QProcess>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace bulkhead;

constexpr int kDomains = 200;

/// Notes the first picture of the list that has rows in it.
class FirstPicture : public QObject {
public:
    FirstPicture(QListView& list, const gui::DomainModel& domains)
        : m_domains(domains) {
        list.viewport()->installEventFilter(this);
    }
    bool eventFilter(QObject* /*watched*/, QEvent* event) override {
        isThere = isThere || (event->type() == QEvent::Paint && m_domains.rowCount() == kDomains);
        return false;
    }
    bool isThere = false;

private:
    const gui::DomainModel& m_domains;
};

int playDaemon(int argc, char** argv) {
    QCoreApplication application(argc, argv);
    FakeBulkhead fake(QString::fromLocal8Bit(argv[2]));
    for (int number = 0; number < kDomains; ++number) {
        FakeDomain& domain = fake.addDomain(QStringLiteral("domain%1").arg(number, 3, 10, QLatin1Char('0')));
        domain.description["state"] = number % 10 == 0 ? "running" : "stopped";
        domain.description["label"] = number % 2 == 0 ? "blue" : "red";
    }
    std::puts("ready");
    std::fflush(stdout);
    return QCoreApplication::exec();
}

double openOnce() {
    QElapsedTimer elapsed;
    elapsed.start();
    gui::Desk desk;
    gui::MainWindow window(desk);
    FirstPicture picture(*window.findChild<QListView*>(QStringLiteral("domains")), desk.domains);
    desk.link.open();
    window.present();
    while (!picture.isThere) {
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        if (elapsed.elapsed() > 60'000) {
            std::fputs("the window never showed its domains\n", stderr);
            std::exit(1);
        }
    }
    return static_cast<double>(elapsed.nsecsElapsed()) / 1e6;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--daemon") == 0) {
        return playDaemon(argc, argv);
    }
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    const tests::PrivateBus bus;
    qputenv("BULKHEAD_BUS_ADDRESS", bus.address().toUtf8());
    QProcess daemon;
    daemon.start(QCoreApplication::applicationFilePath(), {"--daemon", bus.address()});
    if (!daemon.waitForReadyRead(30'000)) {
        std::fputs("the double of the daemon does not start\n", stderr);
        return 1;
    }
    const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
    std::vector<double> times;
    for (int run = 0; run < runs; ++run) {
        times.push_back(openOnce());
    }
    std::printf("main window open, first of the process: %.0f ms\n", times.front());
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf("main window open with %d domains: %.0f ms (ratio to the bar of 100 ms: %.2f)\n", kDomains, median,
                median / 100);
    daemon.kill();
    daemon.waitForFinished();
    return 0;
}
