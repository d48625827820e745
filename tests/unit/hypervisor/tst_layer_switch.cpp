// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/layer_switch.hpp"

#include <QTest>
#include <QXmlStreamReader>

using namespace bulkhead;
using core::Machines;

class LayerSwitchTest : public QObject {
    Q_OBJECT

private slots:
    void xml_data() {
        QTest::addColumn<QString>("system");
        QTest::addColumn<QString>("home");
        QTest::addColumn<QString>("expected");
        const QString begin = "<domainsnapshot>\n  <memory snapshot='no'/>\n  <disks>\n";
        const QString end = "  </disks>\n</domainsnapshot>\n";
        const auto disk = [](const QString& name, const QString& file) {
            return "    <disk name='" + name + "' snapshot='external' type='file'>\n      <driver type='qcow2'/>\n" +
                   "      <source file='" + file + "'>\n        <seclabel model='dac' relabel='no'/>\n" +
                   "      </source>\n    </disk>\n";
        };
        const auto none = [](const QString& name) { return "    <disk name='" + name + "' snapshot='no'/>\n"; };
        QTest::newRow("both") << "/s/a.qcow2"
                              << "/h/b.qcow2" << begin + disk("vda", "/s/a.qcow2") + disk("vdb", "/h/b.qcow2") + end;
        QTest::newRow("system alone") << "/s/a.qcow2"
                                      << "" << begin + disk("vda", "/s/a.qcow2") + none("vdb") + end;
        QTest::newRow("home alone") << ""
                                    << "/h/b.qcow2" << begin + none("vda") + disk("vdb", "/h/b.qcow2") + end;
        QTest::newRow("hostile") << "/a'/>&\"<b"
                                 << "" << begin + disk("vda", "/a&apos;/&gt;&amp;&quot;&lt;b") + none("vdb") + end;
        QTest::newRow("neither") << ""
                                 << "" << QString();
        QTest::newRow("relative") << "a.qcow2"
                                  << "" << QString();
        QTest::newRow("line break") << "/a\nb"
                                    << "" << QString();
    }
    void xml() {
        QFETCH(QString, system);
        QFETCH(QString, home);
        QFETCH(QString, expected);
        const auto made = hypervisor::layerSwitchXml({path(system), path(home)});
        QCOMPARE(made.has_value(), !expected.isEmpty());
        if (!made) {
            QCOMPARE(made.error().code, ErrorCode::InvalidArgument);
            return;
        }
        QCOMPARE(QString::fromStdString(*made), expected);
        QXmlStreamReader reader(QString::fromStdString(*made));
        QStringList files;
        while (!reader.atEnd()) {
            if (reader.readNext() == QXmlStreamReader::StartElement && reader.name() == QLatin1String("source")) {
                files += reader.attributes().value("file").toString();
            }
        }
        QVERIFY(!reader.hasError());
        QStringList wanted{system, home};
        wanted.removeAll(QString());
        QCOMPARE(files, wanted);
    }

    void activeLayers_data() {
        QTest::addColumn<QByteArray>("blocks");
        QTest::addColumn<QByteArray>("nodes");
        QTest::addColumn<bool>("good");
        QTest::addColumn<QString>("system");
        QTest::addColumn<QString>("home");
        // Single quotes for the sake of reading; JSON wants the others.
        const auto block = [](const QByteArray& disk, const QByteArray& node) {
            return "{'device':'','qdev':'/machine/peripheral/" + disk +
                   "/virtio-backend','inserted':{'file':'json:{','node-name':" + node + "}}";
        };
        const auto node = [](const QByteArray& name, const QByteArray& file, const QByteArray& driver = "file") {
            return "{'node-name':'" + name + "','drv':'" + driver + "','file':" + file + "}";
        };
        const QByteArray both =
            "[" + block("virtio-disk0", "'libvirt-5-format'") + "," + block("virtio-disk1", "'libvirt-7-format'") + "]";
        const QByteArray files = "[" + node("libvirt-7-format", "'/x'", "qcow2") + "," +
                                 node("libvirt-7-storage", "'/b'") + "," + node("libvirt-5-storage", "'/a'") + ",{},3]";
        QTest::newRow("two") << both << files << true << "/a"
                             << "/b";
        QTest::newRow("one") << "[" + block("virtio-disk1", "'libvirt-7-format'") + "]" << files << true << ""
                             << "/b";
        QTest::newRow("others") << "[" + block("virtio-disk10", "'a-format'") + "," + block("scsi0", "'b'") + ",{},3]"
                                << files << true << ""
                                << "";
        QTest::newRow("none") << QByteArray("[]") << files << true << ""
                              << "";
        QTest::newRow("no list") << QByteArray("{}") << files << false << ""
                                 << "";
        QTest::newRow("no list of nodes") << both << QByteArray("{}") << false << ""
                                          << "";
        QTest::newRow("no JSON") << QByteArray("[") << files << false << ""
                                 << "";
        QTest::newRow("no such node") << both << QByteArray("[]") << false << ""
                                      << "";
        QTest::newRow("no image") << "[" + block("virtio-disk0", "'libvirt-5-storage'") + "]" << files << false << ""
                                  << "";
        QTest::newRow("no name") << "[" + block("virtio-disk0", "3") + "]" << files << false << ""
                                 << "";
        QTest::newRow("not in a file") << both
                                       << "[" + node("libvirt-5-storage", "'/a'", "nbd") + "," +
                                              node("libvirt-7-storage", "'/b'") + "]"
                                       << false << ""
                                       << "";
        QTest::newRow("a description") << both << "[" + node("libvirt-5-storage", "'json:{}'") + "]" << false << ""
                                       << "";
        QTest::newRow("nothing inserted")
            << QByteArray("[{'qdev':'/machine/peripheral/virtio-disk0/virtio-backend'}]") << files << false << ""
            << "";
    }
    void activeLayers() {
        QFETCH(QByteArray, blocks);
        QFETCH(QByteArray, nodes);
        QFETCH(bool, good);
        QFETCH(QString, system);
        QFETCH(QString, home);
        const auto layers =
            hypervisor::activeLayersIn(blocks.replace('\'', '"').toStdString(), nodes.replace('\'', '"').toStdString());
        QCOMPARE(layers.has_value(), good);
        if (layers) {
            QVERIFY(layers->system == path(system));
            QVERIFY(layers->home == path(home));
        } else {
            QCOMPARE(layers.error().code, ErrorCode::HostFailure);
        }
    }

private:
    static std::optional<std::filesystem::path> path(const QString& text) {
        return text.isEmpty() ? std::nullopt : std::optional<std::filesystem::path>(text.toStdString());
    }
};

QTEST_GUILESS_MAIN(LayerSwitchTest)
#include "tst_layer_switch.moc"
