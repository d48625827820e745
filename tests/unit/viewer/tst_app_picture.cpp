// SPDX-License-Identifier: Apache-2.0
#include "widgets/app_picture.hpp"
#include "widgets/label_paint.hpp"

#include <QDir>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::widgets;

/// The pictures that guests' apps get: the host's own, by a name, or none.
class TestAppPicture : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    void draw(const QString& name, Qt::GlobalColor colour) {
        QImage image(48, 48, QImage::Format_ARGB32);
        image.fill(colour);
        QVERIFY(image.save(m_folder.filePath("test/48x48/apps/" + name + ".png")));
    }

private Q_SLOTS:
    void initTestCase() {
        QVERIFY(QDir(m_folder.path()).mkpath("test/48x48/apps"));
        QFile index(m_folder.filePath("test/index.theme"));
        QVERIFY(index.open(QIODevice::WriteOnly));
        index.write("[Icon Theme]\nName=test\nDirectories=48x48/apps\n\n"
                    "[48x48/apps]\nSize=48\nType=Fixed\nContext=Applications\n");
        index.close();
        draw("mousepad", Qt::green);
        draw("web-browser", Qt::blue);
        QIcon::setThemeSearchPaths({m_folder.path()});
        QIcon::setThemeName("test");
    }

    void names_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("isFine");
        QTest::newRow("plain") << "firefox-esr" << true;
        QTest::newRow("reverse domain") << "org.xfce.mousepad" << true;
        QTest::newRow("longest") << QString(128, 'a') << true;
        QTest::newRow("too long") << QString(129, 'a') << false;
        QTest::newRow("empty") << "" << false;
        QTest::newRow("path") << "/etc/passwd" << false;
        QTest::newRow("upwards") << "../../x" << false;
        QTest::newRow("folder") << "a/b" << false;
        QTest::newRow("hidden") << ".x" << false;
        QTest::newRow("option") << "-x" << false;
        QTest::newRow("resource") << ":/x.svg" << false;
        QTest::newRow("zero byte") << QString::fromLatin1("a\0b", 3) << false;
        QTest::newRow("another script") << QString::fromUtf8("fïrefox") << false;
        QTest::newRow("newline") << "a\n" << false;
    }
    void names() {
        QFETCH(QString, name);
        QTEST(isIconName(name), "isFine");
        if (!isIconName(name)) {
            QVERIFY(hostIconFor({name}, {}).isNull());
        }
    }

    void icon_isTheHostsByNameThenByKind() {
        QCOMPARE(hostIconFor({"org.xfce.mousepad", "mousepad"}, {}).name(), QString("mousepad"));
        QCOMPARE(hostIconFor({"Mousepad"}, {}).name(), QString("mousepad")); // as window classes are spelt
        QCOMPARE(hostIconFor({"some.browser"}, {"Network", "WebBrowser"}).name(), QString("web-browser"));
        QVERIFY(hostIconFor({"unknown"}, {"Game"}).isNull());
        QVERIFY(hostIconFor({}, {}).isNull());
    }

    /// A guest may call its program like one of the host's; its icon must not look the same.
    void mark_isOverTheIcon() {
        const client::Label& label = client::labelNamed("red");
        const QImage marked = markedPixmap(hostIconFor({"mousepad"}, {}), label, client::Theme::Light, 64, 1).toImage();
        QCOMPARE(marked.size(), QSize(64, 64));
        QCOMPARE(marked.pixelColor(20, 20), QColor(Qt::green));
        const QImage mark = swatchPixmap(label, client::Theme::Light, 28, 1).toImage();
        QCOMPARE(marked.pixelColor(64 - 14, 64 - 14), mark.pixelColor(14, 14));
        QVERIFY(marked.pixelColor(64 - 14, 64 - 14) != QColor(Qt::green));
    }
};

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QGuiApplication application(argc, argv);
    TestAppPicture subject;
    return QTest::qExec(&subject, argc, argv);
}
#include "tst_app_picture.moc"
