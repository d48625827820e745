// SPDX-License-Identifier: Apache-2.0
// What a lost link is made anew from: comes back whole, for root only, and not from a file that somebody changed.
// First: moc cannot read <chrono> behind our port headers.
#include <QTemporaryDir>
#include <QTest>

#include "link/link_records.hpp"

#include <fstream>

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

core::GuestLinkSpec sample(core::Transport transport) {
    core::GuestLinkSpec spec;
    spec.instance = randomId<InstanceId>();
    spec.transport = transport;
    if (transport == core::Transport::Vsock) {
        spec.cid = 1'900'000'001;
    } else {
        spec.agentSocket = "/run/bulkhead/instances/" + spec.instance.text() + "/agent.sock";
    }
    spec.token.fill(std::byte{0xa7});
    spec.channelUid = 1'900'000'003;
    return spec;
}

} // namespace

class TestLinkRecords : public QObject {
    Q_OBJECT

private slots:
    void comesBackWhole_data() {
        QTest::addColumn<int>("transport");
        QTest::newRow("virtio-serial") << int(core::Transport::VirtioSerial);
        QTest::newRow("vsock") << int(core::Transport::Vsock);
    }
    void comesBackWhole() {
        QFETCH(int, transport);
        const QTemporaryDir folder;
        LinkRecords records(folder.path().toStdString());
        const auto spec = sample(core::Transport(transport));
        QVERIFY(records.keep(spec).has_value());
        const auto back = LinkRecords(folder.path().toStdString()).read(spec.instance);
        QVERIFY(back.has_value());
        QVERIFY(back->instance == spec.instance);
        QVERIFY(back->transport == spec.transport);
        QCOMPARE(back->agentSocket.string(), spec.agentSocket.string());
        QVERIFY(back->cid == spec.cid);
        QVERIFY(back->token == spec.token);
        QCOMPARE(back->channelUid, spec.channelUid);
        const std::filesystem::path file = folder.path().toStdString() + "/" + spec.instance.text() + ".link";
        using std::filesystem::perms;
        QVERIFY(std::filesystem::status(file).permissions() == (perms::owner_read | perms::owner_write));
        records.forget(spec.instance);
        QCOMPARE(records.read(spec.instance).error().code, ErrorCode::NotFound);
        records.forget(spec.instance);
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void changedFiles_areRefused_data() {
        QTest::addColumn<QString>("how");
        for (const char* how : {"cut", "longer", "magic", "open to others", "a link"}) {
            QTest::newRow(how) << how;
        }
    }
    void changedFiles_areRefused() {
        QFETCH(QString, how);
        const QTemporaryDir folder;
        LinkRecords records(folder.path().toStdString());
        const auto spec = sample(core::Transport::Vsock);
        QVERIFY(records.keep(spec).has_value());
        const std::filesystem::path file = folder.path().toStdString() + "/" + spec.instance.text() + ".link";
        if (how == "cut") {
            std::filesystem::resize_file(file, 20);
        } else if (how == "longer") {
            std::ofstream(file, std::ios::app) << "x";
        } else if (how == "magic") {
            std::fstream(file, std::ios::in | std::ios::out) << "X";
        } else if (how == "open to others") {
            std::filesystem::permissions(file, std::filesystem::perms(0640));
        } else {
            std::filesystem::rename(file, file.string() + ".real");
            std::filesystem::create_symlink(file.string() + ".real", file);
        }
        QCOMPARE(records.read(spec.instance).error().code, ErrorCode::HostFailure);
    }

    void pathThatDoesNotFit_isRefused() {
        const QTemporaryDir folder;
        auto spec = sample(core::Transport::VirtioSerial);
        spec.agentSocket = "/" + std::string(200, 'x');
        QVERIFY(!LinkRecords(folder.path().toStdString()).keep(spec));
    }
};

QTEST_GUILESS_MAIN(TestLinkRecords)
#include "tst_link_records.moc"
