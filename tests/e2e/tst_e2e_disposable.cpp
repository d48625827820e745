// SPDX-License-Identifier: Apache-2.0
// A disposable that an app was opened in: it stays with its windows, over everything that is not their business, and
// goes with the last one.
#include "e2e_support.hpp"

#include <QTest>

using namespace bulkhead::e2e;

class TestE2eDisposable : public QObject {
    Q_OBJECT

    static QStringList disposables() {
        QStringList names;
        for (const auto& row : jsonRows({"domain", "ls"})) {
            if (row.toObject().value("kind").toString() == "disposable") {
                names << row.toObject().value("name").toString();
            }
        }
        return names;
    }

private slots:
    void initTestCase() { COMPARE_STATUS(run({"ph-daemon", "start"}), 0); }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
        }
    }

    void goesWithItsLastWindow() {
        const auto launched = cli({"domain", "launch", "--disposable", "org.xfce.mousepad", "--no-viewer", "--json"});
        COMPARE_STATUS(launched, 0);
        const QString name = QJsonDocument::fromJson(launched.output).object().value("domain").toString();
        QVERIFY2(name.startsWith("disp-"), launched.text().constData());
        // Who opened it has left, the daemon comes anew, a program is run in it and ends: it is there all the same.
        QCOMPARE(jsonRows({"domain", "windows", name}).size(), 1);
        COMPARE_STATUS(run({"ph-daemon", "restart"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", name, "--", "true"}), 0);
        QCOMPARE(jsonRows({"domain", "windows", name}).size(), 1);
        QCOMPARE(disposables(), QStringList{name});

        COMPARE_STATUS(cli({"run", "--domain", name, "--", "pkill", "mousepad"}), 0);
        QCOMPARE(disposables(), QStringList{name}); // another window may come
        QTRY_VERIFY_WITH_TIMEOUT(disposables().isEmpty(), 40000);
        VERIFY_NO_TRACES();
    }

    /// One that shows nothing goes with who opened it.
    void unknownApp_leavesNothing() {
        COMPARE_STATUS(cli({"domain", "launch", "--disposable", "no-such-app", "--no-viewer"}), 4);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eDisposable)
#include "tst_e2e_disposable.moc"
