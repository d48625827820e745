// SPDX-License-Identifier: Apache-2.0
#include "viewer/session_link.hpp"

#include <QSignalSpy>
#include <QTest>

#include <array>
#include <sys/socket.h>

using namespace bulkhead;
using viewer::GuestWindow;
using viewer::SessionLink;
namespace stream = bulkhead::session_stream;

class TestSessionLink : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() {
        std::array<int, 2> ends{};
        QVERIFY(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
        m_peer = client::Descriptor(ends[0]);
        m_link = std::make_unique<SessionLink>(client::Descriptor(ends[1]));
    }

    void statesAreTold() {
        QSignalSpy states(m_link.get(), &SessionLink::sessionState);
        stream::Event up;
        up.kind = stream::EventKind::SessionUp;
        up.a = 8;
        up.b = 1;
        send(up);
        send(up);
        QTRY_COMPARE(states.size(), 2);
        QCOMPARE(states.at(0), (QVariantList{true, false}));
        QCOMPARE(states.at(1), (QVariantList{true, true})); // the windows of the first are gone
    }

    void windowsAreToldAndWrongOnesDropped() {
        std::vector<GuestWindow> windows;
        connect(m_link.get(), &SessionLink::windowChanged, this,
                [&](const GuestWindow& window) { windows.push_back(window); });
        QSignalSpy gone(m_link.get(), &SessionLink::windowGone);
        stream::Event event;
        event.kind = stream::EventKind::WindowChanged;
        event.window = 4;
        event.width = 100;
        event.height = 5000; // out of range
        send(event);
        event.height = 100;
        send(event);
        event.kind = static_cast<stream::EventKind>(77);
        send(event);
        event.kind = stream::EventKind::WindowGone;
        send(event);
        QTRY_COMPARE(gone.size(), 1);
        QCOMPARE(windows.size(), std::size_t{1});
        QCOMPARE(m_link->malformed(), std::uint64_t{2});
    }

    void somethingElseThanRecordsEndsTheStream_data() {
        QTest::addColumn<QByteArray>("packet");
        QTest::newRow("short") << QByteArray("hello");
        QTest::newRow("long") << QByteArray(5000, 'x');
        QTest::newRow("one byte less") << QByteArray(sizeof(stream::Event) - 1, '\1');
    }
    void somethingElseThanRecordsEndsTheStream() {
        QFETCH(QByteArray, packet);
        QSignalSpy ended(m_link.get(), &SessionLink::ended);
        QVERIFY(::send(m_peer.get(), packet.constData(), static_cast<std::size_t>(packet.size()), 0) > 0);
        QTRY_COMPARE(ended.size(), 1);
    }

    void commandsArrive() {
        m_link->resizeWindow(3, {10, 10000});
        m_link->closeWindow(4);
        m_link->setKeyboard("pc105", "de", "", "");
        m_link->setDpi(10000);
        m_link->setLocale("de_DE.UTF-8");
        QCOMPARE(receive().a, stream::kSmallestSide); // the contract's limits
        QCOMPARE(receive().window, 4U);
        QCOMPARE(QByteArray(receive().text.data()), QByteArray("pc105\nde\n\n"));
        QCOMPARE(receive().a, 480U);
        QCOMPARE(QByteArray(receive().text.data()), QByteArray("de_DE.UTF-8"));
    }

    /// A peer that does not read costs a bounded queue, and gets the latest of each kind once it reads.
    void aPeerThatDoesNotReadCostsLittle() {
        for (int i = 0; i < 20000; ++i) {
            m_link->resizeWindow(static_cast<std::uint32_t>(i % 40), {100 + i / 40, 200});
        }
        QVERIFY(m_link->waiting() > 0);
        QVERIFY(m_link->waiting() <= 40);
        stream::Command command;
        std::array<std::uint32_t, 40> last{};
        const auto drain = [&] {
            while (::recv(m_peer.get(), &command, sizeof command, MSG_DONTWAIT) == sizeof command) {
                last.at(command.window) = command.a;
            }
            return m_link->waiting() == 0;
        };
        QTRY_VERIFY(drain());
        drain();
        for (const std::uint32_t width : last) {
            QCOMPARE(width, 599U);
        }
    }

private:
    void send(const stream::Event& event) {
        QCOMPARE(::send(m_peer.get(), &event, sizeof event, 0), static_cast<ssize_t>(sizeof event));
    }
    stream::Command receive() {
        stream::Command command;
        ::recv(m_peer.get(), &command, sizeof command, MSG_DONTWAIT);
        return command;
    }

    client::Descriptor m_peer;
    std::unique_ptr<SessionLink> m_link;
};

QTEST_GUILESS_MAIN(TestSessionLink)
#include "tst_session_link.moc"
