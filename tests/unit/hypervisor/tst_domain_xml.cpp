// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "hypervisor/domain_xml.hpp"
#include "hypervisor/xml_writer.hpp"

#include <QFile>
#include <QTest>
#include <QXmlStreamReader>

#include <functional>

using namespace bulkhead;
using core::Acceleration;
using core::DiskFormat;
using core::InstanceSpec;

namespace {

const InstanceId kId = *InstanceId::parse("5b1f8a52-6c0e-4f3b-9d7a-0123456789ab");

InstanceSpec plainSpec() {
    InstanceSpec spec;
    spec.id = kId;
    spec.memory = 512 * kMiB;
    spec.vcpus = 2;
    spec.system.layers = {{"/store/instances/1/system.qcow2", DiskFormat::Qcow2},
                          {"/store/templates/2/root.img", DiskFormat::Raw}};
    spec.home = core::Disk{{{"/store/homes/3/home.img", DiskFormat::Raw}}};
    spec.kernel = "/store/templates/2/vmlinuz";
    spec.initrd = "/store/templates/2/initrd.img";
    spec.tokenFile = "/run/bulkhead/1/token";
    spec.agentSocket = "/run/bulkhead/1/agent.sock";
    spec.emulatorUid = 1'900'000'002;
    spec.emulatorGid = 107;
    return spec;
}

InstanceSpec kvmSpec() {
    auto spec = plainSpec();
    spec.acceleration = Acceleration::Kvm;
    return spec;
}

InstanceSpec vsock() {
    auto spec = plainSpec();
    spec.transport = core::Transport::Vsock;
    spec.cid = 1'900'000'007;
    spec.agentSocket.clear();
    return spec;
}

InstanceSpec desktop() {
    auto spec = plainSpec();
    spec.heads = 8;
    return spec;
}

InstanceSpec desktopWithVsock() {
    auto spec = vsock();
    spec.heads = 16;
    return spec;
}

InstanceSpec desktopWithSound() {
    auto spec = desktop();
    spec.audio = core::Audio::Out;
    return spec;
}

InstanceSpec fromImage() {
    auto spec = plainSpec();
    spec.system.layers.insert(spec.system.layers.begin() + 1,
                              {"/store/templates/2/warm/4/system.qcow2", DiskFormat::Qcow2});
    spec.memoryImage = "/store/templates/2/warm/4/memory";
    return spec;
}

InstanceSpec fromHostileImage() {
    auto spec = plainSpec();
    spec.memoryImage = "/i/'/>,share=on,id=x/memory";
    return spec;
}

InstanceSpec forImage() {
    auto spec = plainSpec();
    spec.isForImage = true;
    return spec;
}

InstanceSpec withoutHome() {
    auto spec = plainSpec();
    spec.home.reset();
    return spec;
}

InstanceSpec inspector() {
    auto spec = plainSpec();
    for (const std::string serial : {"a-system", "a-home", "b-system", "b-home"}) {
        spec.inspected.push_back({serial,
                                  {{{"/store/instances/1/" + serial + ".qcow2", DiskFormat::Qcow2},
                                    {"/store/snapshots/" + serial + "/layer.qcow2", DiskFormat::Qcow2},
                                    {"/store/templates/2/root.img", DiskFormat::Raw}}}});
    }
    return spec;
}

InstanceSpec deepChains() {
    auto spec = plainSpec();
    spec.system.layers = {{"/s/4.qcow2", DiskFormat::Qcow2},
                          {"/s/3.qcow2", DiskFormat::Qcow2},
                          {"/s/2.qcow2", DiskFormat::Qcow2},
                          {"/s/base.img", DiskFormat::Raw}};
    spec.home = core::Disk{{{"/h/2.qcow2", DiskFormat::Qcow2}, {"/h/1.qcow2", DiskFormat::Qcow2}}};
    return spec;
}

InstanceSpec hostilePaths() {
    auto spec = plainSpec();
    spec.system.layers = {{"/s/'/><source file=\"/etc/shadow\"/>&amp;.qcow2", DiskFormat::Qcow2},
                          {"/s/]]><!-- ünïcødé, x=y.img", DiskFormat::Raw}};
    spec.kernel = "/k/<kernel>&'\".bin";
    spec.initrd = "/k/</initrd>";
    spec.tokenFile = "/t/'token',file=/etc/shadow";
    spec.agentSocket = "/a/\"agent\".sock";
    return spec;
}

} // namespace

class DomainXmlTest : public QObject {
    Q_OBJECT

private slots:
    void golden_data() {
        QTest::addColumn<InstanceSpec>("spec");
        QTest::addColumn<QString>("consoleLog");
        QTest::newRow("emulation") << plainSpec() << "";
        QTest::newRow("kvm") << kvmSpec() << "";
        QTest::newRow("vsock") << vsock() << "";
        QTest::newRow("desktop") << desktop() << "";
        QTest::newRow("desktop_vsock") << desktopWithVsock() << "";
        QTest::newRow("desktop_sound") << desktopWithSound() << "";
        QTest::newRow("without_home") << withoutHome() << "";
        QTest::newRow("deep_chains") << deepChains() << "";
        QTest::newRow("hostile_paths") << hostilePaths() << "";
        QTest::newRow("from_image") << fromImage() << "";
        QTest::newRow("from_hostile_image") << fromHostileImage() << "";
        QTest::newRow("inspector") << inspector() << "";
        QTest::newRow("for_image") << forImage() << "";
        QTest::newRow("console_log") << plainSpec() << "/log/1.log";
    }
    void golden() {
        QFETCH(InstanceSpec, spec);
        QFETCH(QString, consoleLog);
        hypervisor::DomainXmlOptions options;
        if (!consoleLog.isEmpty()) {
            options.consoleLog = consoleLog.toStdString();
        }
        if (spec.memoryImage) {
            options.readonlyPreload = "/lib/bulkhead/libbulkhead-readonly.so";
        }
        const auto xml = hypervisor::domainXml(spec, options);
        QVERIFY2(xml, xml ? "" : xml.error().message.c_str());

        QFile file(QString(BULKHEAD_SOURCE_DIR "/tests/fixtures/domain_xml/%1.xml").arg(QTest::currentDataTag()));
        if (qEnvironmentVariableIntValue("BULKHEAD_TEST_ACCEPT") != 0) {
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(QByteArray::fromStdString(*xml));
            return;
        }
        QVERIFY2(file.open(QIODevice::ReadOnly), "no golden file: run with BULKHEAD_TEST_ACCEPT=1 and look at it");
        QCOMPARE(QString::fromStdString(*xml), QString::fromUtf8(file.readAll()));
    }

    /// An independent parser gives back exactly the bytes that went in, at the right places and nowhere else.
    void hostilePathsComeBackWhole() {
        const auto spec = hostilePaths();
        const auto xml = hypervisor::domainXml(spec);
        QVERIFY(xml);
        QXmlStreamReader reader(QByteArray::fromStdString(*xml));
        QStringList sources;
        QString kernel;
        QString initrd;
        QString token;
        QString socket;
        while (!reader.atEnd()) {
            if (reader.readNext() != QXmlStreamReader::StartElement) {
                continue;
            }
            const auto attributes = reader.attributes();
            if (reader.name() == u"source" && attributes.hasAttribute("file")) {
                sources << attributes.value("file").toString();
            } else if (reader.name() == u"source") {
                socket = attributes.value("path").toString();
            } else if (reader.name() == u"entry") {
                token = attributes.value("file").toString();
            } else if (reader.name() == u"kernel") {
                kernel = reader.readElementText();
            } else if (reader.name() == u"initrd") {
                initrd = reader.readElementText();
            }
        }
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
        const QStringList wanted = {QString::fromStdString(spec.system.layers[0].path.string()),
                                    QString::fromStdString(spec.system.layers[1].path.string()),
                                    QString::fromStdString(spec.home->layers[0].path.string())};
        QCOMPARE(sources, wanted);
        QCOMPARE(kernel.toStdString(), spec.kernel.string());
        QCOMPARE(initrd.toStdString(), spec.initrd.string());
        QCOMPARE(token.toStdString(), spec.tokenFile.string());
        QCOMPARE(socket.toStdString(), spec.agentSocket.string());
    }

    void refusals_data() {
        QTest::addColumn<std::function<void(InstanceSpec&)>>("spoil");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, const char* mentions, std::function<void(InstanceSpec&)> spoil) {
            QTest::newRow(name) << spoil << QString(mentions);
        };
        row("no id", "no id", [](InstanceSpec& s) { s.id = {}; });
        row("no memory", "at least 64 MiB", [](InstanceSpec& s) { s.memory = 0; });
        row("too little memory", "at least 64 MiB", [](InstanceSpec& s) { s.memory = 64 * kMiB - 1; });
        row("no processor", "one processor", [](InstanceSpec& s) { s.vcpus = 0; });
        row("root", "never runs as root", [](InstanceSpec& s) { s.emulatorUid = 0; });
        row("root's group", "never runs as root", [](InstanceSpec& s) { s.emulatorGid = 0; });
        row("no layer", "system disk has no file", [](InstanceSpec& s) { s.system.layers.clear(); });
        row("empty home", "home disk has no file", [](InstanceSpec& s) { s.home->layers.clear(); });
        row("raw above raw", "below a raw file", [](InstanceSpec& s) { s.system.layers[0].format = DiskFormat::Raw; });
        row("no kernel", "kernel is not absolute", [](InstanceSpec& s) { s.kernel.clear(); });
        row("relative initrd", "initrd is not absolute", [](InstanceSpec& s) { s.initrd = "initrd.img"; });
        row("line break", "cannot carry: \"/a\\x0ab\"", [](InstanceSpec& s) { s.tokenFile = "/a\nb"; });
        row("escape character", "cannot carry", [](InstanceSpec& s) { s.agentSocket = "/a\x1b[2J"; });
        for (const auto cid : {0U, 1U, 2U, 0xffffffffU}) {
            row(("address " + std::to_string(cid)).c_str(), "AF_VSOCK address", [cid](InstanceSpec& s) {
                s = vsock();
                s.cid = cid;
            });
        }
        row("sound without a display", "without a display has no sound",
            [](InstanceSpec& s) { s.audio = core::Audio::Out; });
        row("too many outputs", "at most 16 outputs", [](InstanceSpec& s) { s.heads = 17; });
        row("a fifth disk to look into", "at most 4 disks", [](InstanceSpec& s) {
            s = inspector();
            s.inspected.push_back(s.inspected.front());
        });
        row("a serial of another kind", "cannot be a disk's serial", [](InstanceSpec& s) {
            s = inspector();
            s.inspected[1].serial = "a,home";
        });
        row("a disk without a file", "disk a-home has no file", [](InstanceSpec& s) {
            s = inspector();
            s.inspected[1].disk.layers.clear();
        });
        row("looks in and begins in memory", "no disks to look into", [](InstanceSpec& s) {
            s = inspector();
            s.memoryImage = "/i/memory";
        });
        row("no address", "AF_VSOCK address", [](InstanceSpec& s) { s.transport = core::Transport::Vsock; });
        row("no socket", "socket is not absolute", [](InstanceSpec& s) { s.agentSocket.clear(); });
        row("no UTF-8", "cannot carry", [](InstanceSpec& s) { s.system.layers[1].path = "/a\xff"; });
        row("no XML character", "cannot carry", [](InstanceSpec& s) { s.kernel = "/a\xEF\xBF\xBE"; });
    }
    void refusals() {
        QFETCH(std::function<void(InstanceSpec&)>, spoil);
        QFETCH(QString, mentions);
        auto spec = plainSpec();
        spoil(spec);
        const auto xml = hypervisor::domainXml(spec);
        QVERIFY(!xml);
        QCOMPARE(nameOf(xml.error().code), nameOf(ErrorCode::InvalidArgument));
        QVERIFY2(QString::fromStdString(xml.error().message).contains(mentions), xml.error().message.c_str());
    }

    void ourMark_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("uuid");
        QTest::addColumn<bool>("isOurs");
        const QString id = QString::fromStdString(kId.text());
        QTest::newRow("ours") << "bh-" + id << id << true;
        QTest::newRow("another uuid") << "bh-" + id << "5b1f8a52-6c0e-4f3b-9d7a-0123456789ac" << false;
        QTest::newRow("an admin's bh-web") << "bh-web" << id << false;
        QTest::newRow("no prefix") << id << id << false;
        QTest::newRow("more behind") << "bh-" + id + "-old" << id << false;
        QTest::newRow("no uuid") << "bh-"
                                 << "" << false;
        QTest::newRow("upper case") << "bh-" + id.toUpper() << id.toUpper() << false;
    }
    void ourMark() {
        QFETCH(QString, name);
        QFETCH(QString, uuid);
        QFETCH(bool, isOurs);
        const auto id = hypervisor::instanceOf(name.toStdString(), uuid.toStdString());
        QCOMPARE(id.has_value(), isOurs);
        if (isOurs) {
            QCOMPARE(id->text(), kId.text());
            QCOMPARE(hypervisor::domainName(*id), name.toStdString());
        }
    }

    void writerChecksNesting() {
        hypervisor::XmlWriter open;
        open.open("a");
        QVERIFY_THROWS_EXCEPTION(std::logic_error, (void)open.take());
        hypervisor::XmlWriter closed;
        QVERIFY_THROWS_EXCEPTION(std::logic_error, closed.close());
    }
};

QTEST_APPLESS_MAIN(DomainXmlTest)
#include "tst_domain_xml.moc"
