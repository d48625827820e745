// SPDX-License-Identifier: Apache-2.0
#include "gui/app_icon.hpp"
#include "gui/desk.hpp"
#include "gui/main_window.hpp"
#include "gui/single_instance.hpp"
#include "gui/tray_icon.hpp"

#include <QApplication>
#include <QCommandLineParser>

using namespace bulkhead::gui;

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("bulkhead-tray"));
    QApplication::setApplicationDisplayName(QStringLiteral("Bulkhead"));
    QApplication::setApplicationVersion(QStringLiteral(BULKHEAD_VERSION));
    QGuiApplication::setDesktopFileName(QStringLiteral("org.bulkhead.Tray"));
    QApplication::setWindowIcon(appIcon());
    // What closing the window means depends on the tray, below.
    QApplication::setQuitOnLastWindowClosed(false);

    QCommandLineParser parser;
    parser.setApplicationDescription(QApplication::translate("main", "Bulkhead’s domains: a window and a tray icon."));
    parser.addHelpOption();
    parser.addVersionOption();
    const QCommandLineOption background(QStringLiteral("background"),
                                        QApplication::translate("main", "Show the tray icon only (for the login)."));
    parser.addOption(background);
    parser.process(application);

    SingleInstance instance;
    if (!instance.claim(parser.isSet(background))) {
        return 0;
    }
    Desk desk;
    MainWindow window(desk);
    TrayIcon tray(desk);
    const auto leave = [] { QApplication::quit(); };
    QObject::connect(&instance, &SingleInstance::presentRequested, &window, &MainWindow::present);
    QObject::connect(&tray, &TrayIcon::openRequested, &window, &MainWindow::present);
    QObject::connect(&tray, &TrayIcon::domainRequested, &window, [&window](const QString& path) {
        window.chooseDomain(path);
        window.present();
    });
    QObject::connect(&tray, &TrayIcon::quitRequested, &application, leave);
    QObject::connect(&window, &MainWindow::quitRequested, &application, leave);
    QObject::connect(&window, &MainWindow::closed, &application, [&tray, leave] {
        if (!tray.hasHost()) {
            leave(); // nobody could open it again
        }
    });
    desk.link.open();
    if (!parser.isSet(background)) {
        window.present();
    }
    return QApplication::exec();
}
