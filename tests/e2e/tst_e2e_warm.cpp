// SPDX-License-Identifier: Apache-2.0
// Warm images of real guests: what a domain that begins from one has of its own, and what happens when one is broken.
#include "e2e_support.hpp"

#include <QDateTime>
#include <QDirIterator>
#include <QFile>
#include <QSet>

#include <fcntl.h>

using namespace bulkhead::e2e;

namespace {

/// The folder of the only warm image that domains begin from. (One out of use stays until the next is made.)
QString imageFolder() {
    QDirIterator at("/var/lib/bulkhead/templates", {"memory"}, QDir::Files, QDirIterator::Subdirectories);
    while (at.hasNext()) {
        const QString folder = QFileInfo(at.next()).path();
        if (!QFile::exists(folder + "/retired")) {
            return folder;
        }
    }
    return {};
}

QByteArray digestOf(const QString& file) {
    return run({"sha256sum", file}).output.left(64);
}

/// The files of memory images that each running emulator maps.
QSet<QByteArray> mappedInodes() {
    QSet<QByteArray> found;
    for (const auto& pid : emulatorPids().split(' ')) {
        QFile maps("/proc/" + QString::fromLatin1(pid) + "/maps");
        if (maps.open(QIODevice::ReadOnly)) {
            for (const auto& line : maps.readAll().split('\n')) {
                if (line.endsWith("/memory")) {
                    found << line.simplified().split(' ').value(4);
                }
            }
        }
    }
    return found;
}

/// What each running emulator has open of a memory image: its flags as open(2) has them.
QList<int> imageFlags() {
    QList<int> found;
    for (const auto& pid : emulatorPids().split(' ')) {
        const QString process = "/proc/" + QString::fromLatin1(pid);
        for (const auto& entry : QDir(process + "/fd").entryList(QDir::Files | QDir::System)) {
            if (QFile::symLinkTarget(process + "/fd/" + entry).endsWith("/memory")) {
                QFile info(process + "/fdinfo/" + entry);
                if (info.open(QIODevice::ReadOnly)) {
                    found << QRegularExpression("flags:\\s*(\\d+)")
                                 .match(QString::fromLatin1(info.readAll()))
                                 .captured(1)
                                 .toInt(nullptr, 8);
                }
            }
        }
    }
    return found;
}

/// "failed" and why, where the command did not succeed: no answer that is expected.
QByteArray inDomain(const QString& domain, const QString& command) {
    const auto outcome = cli({"run", "--domain", domain, "--", "sh", "-c", command});
    return outcome.status == 0 ? outcome.output : "failed: " + outcome.text();
}

} // namespace

class TestE2eWarm : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        // Others may have left images beside the template that this host got.
        for (QString folder = imageFolder(); !folder.isEmpty(); folder = imageFolder()) {
            QVERIFY(QDir(folder).removeRecursively());
        }
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "two", "--home-size", "1GiB", "--label", "red"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
        }
    }

    void withoutImage_domainsBoot() {
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        QCOMPARE(imageFlags(), QList<int>());
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo kept > ~/kept"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
    }

    void makingThatIsKilled_leavesNothing() {
        Running making({"bulkhead", "template", "warm", "minimal"});
        QTRY_VERIFY_WITH_TIMEOUT(!emulatorPids().isEmpty(), 60'000);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        making.wait();
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        VERIFY_NO_TRACES();
        QCOMPARE(imageFolder(), QString());
        COMPARE_STATUS(cli({"template", "warm", "minimal"}), 0);
        VERIFY_NO_TRACES();
        const auto shown = QJsonDocument::fromJson(cli({"template", "show", "minimal", "--json"}).output).object();
        const auto images = shown.value("warm_images").toArray();
        QCOMPARE(images.size(), 1);
        QCOMPARE(images.first().toObject().value("size").toString(), QString("small"));
    }

    void domains_haveTheirOwn() {
        const auto before = digestOf(imageFolder() + "/memory");
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "two"}), 0);
        // Both began from the image, and neither emulator could write to it.
        const auto flags = imageFlags();
        QCOMPARE(flags.size(), 2);
        for (const int flag : flags) {
            QCOMPARE(flag & O_ACCMODE, O_RDONLY);
        }
        // They have labels of their own, so they share no page.
        QCOMPARE(mappedInodes().size(), 2);
        // The homes are theirs, with what was in them, and of their size.
        QCOMPARE(inDomain("one", "cat ~/kept"), QByteArray("kept\n"));
        QCOMPARE(inDomain("two", "ls ~"), QByteArray());
        const auto size = [](const QString& domain) {
            return inDomain(domain, "df --output=size -B1M /home | tail -n 1").trimmed().toInt();
        };
        QVERIFY2(size("one") > 3500 && size("two") > 900 && size("two") < 1100,
                 qPrintable(QString("%1 %2").arg(size("one")).arg(size("two"))));
        // What tells machines apart, and what no two may share.
        for (const char* what : {"cat /etc/machine-id", "cat /proc/sys/kernel/random/boot_id",
                                 "head -c 16 /dev/urandom | od -A n -t x1"}) {
            const auto one = inDomain("one", what);
            const auto two = inDomain("two", what);
            QVERIFY2(one.size() > 30 && one.size() < 60 && one.size() == two.size(), (one + two).constData());
            QVERIFY2(one != two, what);
        }
        // The image is many seconds old by now; the clocks are right but for what their setting took on its way.
        for (const char* domain : {"one", "two"}) {
            const auto earliest = QDateTime::currentMSecsSinceEpoch();
            const auto guest = inDomain(domain, "date +%s%3N").toLongLong();
            const auto latest = QDateTime::currentMSecsSinceEpoch();
            QVERIFY2(guest > earliest - 500 && guest < latest + 100,
                     qPrintable(QString("%1 not in %2..%3").arg(guest).arg(earliest).arg(latest)));
        }
        // They write to memory and disk; the image stays what it was, and a third begins from it.
        for (const char* domain : {"one", "two"}) {
            COMPARE_STATUS(
                cli({"run", "--domain", domain, "--user", "root", "--", "sh", "-c",
                     "dd if=/dev/urandom of=/dev/shm/noise bs=1M count=64; dd if=/dev/urandom of=/noise bs=1M "
                     "count=32; sync"}),
                0);
        }
        QCOMPARE(digestOf(imageFolder() + "/memory"), before);
        const auto third = cli({"run", "--disposable", "--", "sh", "-c", "ls /noise /dev/shm; id -un"});
        COMPARE_STATUS(third, 0);
        QCOMPARE(third.output, QByteArray("/dev/shm:\nuser\n"));
        for (const char* domain : {"one", "two"}) {
            COMPARE_STATUS(cli({"domain", "stop", domain}), 0);
        }
        VERIFY_NO_TRACES();
        QStringList labels;
        const auto shown = QJsonDocument::fromJson(cli({"template", "show", "minimal", "--json"}).output).object();
        for (const auto image : shown.value("warm_images").toArray()) {
            labels << image.toObject().value("label").toString();
        }
        labels.sort();
        QCOMPARE(labels, QStringList({"gray", "red"}));
        // Only that of "one" is needed from here on.
        QDirIterator at("/var/lib/bulkhead/templates", {"manifest.toml"}, QDir::Files, QDirIterator::Subdirectories);
        while (at.hasNext()) {
            QFile manifest(at.next());
            if (manifest.open(QIODevice::ReadOnly) && manifest.readAll().contains("label = 'red'")) {
                QVERIFY(QFileInfo(manifest).dir().removeRecursively());
            }
        }
        // Stopped in order, so that the home's file system is whole.
        COMPARE_STATUS(cli({"domain", "start", "--cold", "one"}), 0);
        QCOMPARE(imageFlags(), QList<int>());
        QCOMPARE(inDomain("one", "cat ~/kept"), QByteArray("kept\n"));
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
    }

    void firstRandomBytes_areNobodyElses() {
        QSet<QByteArray> seen;
        for (int i = 0; i < 4; ++i) {
            const auto drawn =
                cli({"run", "--disposable", "--", "python3", "-c", "import os; print(os.getrandom(16).hex())"});
            COMPARE_STATUS(drawn, 0);
            seen.insert(drawn.output);
        }
        QCOMPARE(seen.size(), 4);
    }

    void brokenImage_isRemoved_andTheDomainBoots() {
        // The state of the devices is cut off: the emulator cannot take it.
        const QString devices = imageFolder() + "/devices";
        QFile file(devices);
        QVERIFY(file.open(QIODevice::ReadWrite));
        const auto size = file.size();
        QVERIFY(file.resize(size / 2) && file.resize(size));
        file.close();
        const auto booted = cli({"run", "--domain", "one", "--", "cat", "kept"});
        COMPARE_STATUS(booted, 0);
        QVERIFY2(booted.error.contains("it did not start from its warm image"), booted.text().constData());
        QCOMPARE(imageFlags(), QList<int>());
        QCOMPARE(imageFolder(), QString());
        QVERIFY(run({"ph-daemon", "log"}).output.contains("did not bring a guest to life"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "two"}), 0);
        VERIFY_NO_TRACES();
    }

    void unasked_anImageIsMadeAfterABoot() {
        COMPARE_STATUS(run({"ph-daemon", "stop"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start", "--warm-images=auto"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "three"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "three"}), 0);
        QCOMPARE(imageFlags(), QList<int>());
        QTRY_VERIFY_WITH_TIMEOUT(imageFolder().contains("/warm/") && !imageFolder().contains("/.new-"), 120'000);
        COMPARE_STATUS(cli({"domain", "stop", "three"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "three"}), 0);
        QCOMPARE(imageFlags().size(), 1);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "three"}), 0);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eWarm)
#include "tst_e2e_warm.moc"
