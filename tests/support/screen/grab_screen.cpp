// SPDX-License-Identifier: Apache-2.0
// grab_screen FILE.png: what the X server of DISPLAY shows, as a picture.
#include <QGuiApplication>
#include <QPixmap>
#include <QScreen>

#include <cstdio>

int main(int argc, char** argv) {
    const QGuiApplication application(argc, argv);
    QScreen* screen = QGuiApplication::primaryScreen();
    if (argc != 2 || screen == nullptr || !screen->grabWindow(0).save(QString::fromLocal8Bit(argv[1]))) {
        std::fprintf(stderr, "grab_screen: no picture\n");
        return 1;
    }
    return 0;
}
