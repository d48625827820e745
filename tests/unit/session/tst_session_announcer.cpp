// SPDX-License-Identifier: Apache-2.0
// What the host is told, when it listens and when it does not.
#include "session/announcer.hpp"

#include <QTest>

#include <deque>

using namespace bulkhead::session;

class TestSessionAnnouncer : public QObject {
    Q_OBJECT

private slots:
    void init() {
        m_room = 1000;
        m_sent.clear();
        m_windows = std::make_unique<Windows>(3);
        m_announcer = std::make_unique<Announcer>(Announcer::Sink{.hasRoom = [this] { return m_room > 0; },
                                                                  .send =
                                                                      [this](const Event& event) {
                                                                          --m_room;
                                                                          m_sent.push_back(event);
                                                                      }});
    }

    void saysNothingToNobody() {
        addWindow(1, "one");
        tell();
        m_announcer->listWindows();
        m_announcer->pump();
        QVERIFY(m_sent.empty());
    }

    void beginsWithTheSession() {
        addWindow(1, "one");
        tell();
        m_announcer->startOver(3);
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{2});
        QCOMPARE(m_sent[0].up().heads(), 3U);
        QCOMPARE(m_sent[1].window_changed().title(), std::string("one"));
        // The same again for somebody new.
        m_announcer->startOver(3);
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{4});
    }

    void tellsOnlyWhatDiffers() {
        listen();
        addWindow(1, "one");
        tell();
        m_announcer->pump();
        tell();
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{1});
        m_windows->find(1)->facts.title = "two";
        m_windows->find(1)->facts.urgent = true;
        tell();
        m_announcer->pump();
        QCOMPARE(m_sent.back().window_changed().title(), std::string("two"));
        QVERIFY(m_sent.back().window_changed().wants_attention());
        tell(1); // has the keyboard
        m_announcer->pump();
        QVERIFY(m_sent.back().window_changed().active());
        QVERIFY(!m_sent.back().window_changed().wants_attention());
    }

    void aSlowHostMissesTheSteps() {
        listen();
        addWindow(1, "one");
        tell();
        m_room = 0;
        for (int i = 0; i < 1000; ++i) {
            m_windows->find(1)->facts.title = std::to_string(i);
            tell();
            m_announcer->pump();
        }
        // One that came and went in the meantime was never there.
        addWindow(2, "short");
        tell();
        m_windows->remove(2);
        m_windows->assignHeads();
        tell();
        m_room = 1000;
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{1});
        QCOMPARE(m_sent[0].window_changed().title(), std::string("999"));
    }

    void whatWasToldOfIsTakenBack() {
        listen();
        addWindow(1, "one");
        addWindow(2, "two");
        tell();
        m_announcer->pump();
        const auto number = m_windows->find(1)->number;
        m_windows->remove(1);
        m_windows->assignHeads();
        m_room = 0;
        tell();
        m_announcer->listWindows();
        m_announcer->pump();
        m_room = 1000;
        m_sent.clear();
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{3});
        QCOMPARE(m_sent[0].window_gone().window(), number);
        QCOMPARE(m_sent[1].window_changed().title(), std::string("two"));
        QVERIFY(m_sent[2].has_windows_listed());
    }

    void dialogsAreNotToldOf() {
        listen();
        addWindow(1, "main");
        m_windows->add(2, {.kind = Kind::Dialog, .transientFor = 1, .title = "dialog", .urgent = true}, {10, 10});
        m_windows->add(3, {.kind = Kind::Dialog, .title = "alone"}, {100, 100});
        m_windows->assignHeads();
        tell();
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{2});
        QVERIFY(m_sent[0].window_changed().wants_attention()); // its dialog does
        QCOMPARE(m_sent[1].window_changed().title(), std::string("alone"));
        QCOMPARE(m_sent[1].window_changed().kind(), WindowChanged::DIALOG);
    }

    void manyWindowsTakeTurns() {
        listen();
        for (XWindow i = 1; i <= 500; ++i) {
            m_windows->add(i, {}, {100, 100});
        }
        m_windows->assignHeads();
        tell();
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{64});
        m_windows->remove(1);
        m_windows->assignHeads();
        m_sent.clear();
        tell();
        m_announcer->pump();
        const auto isNew = [](const Event& event) { return event.window_changed().window() == 65; };
        QCOMPARE(std::count_if(m_sent.begin(), m_sent.end(), isNew), 1);
    }

    void answersLaunches() {
        listen();
        m_announcer->launched("editor", 2);
        m_room = 0;
        m_announcer->pump();
        QVERIFY(m_sent.empty());
        m_room = 1;
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{1});
        QCOMPARE(m_sent[0].app_launched().app(), std::string("editor"));
        QCOMPARE(m_sent[0].app_launched().error_number(), 2);
    }

    void listsApps() {
        listen();
        m_announcer->listApps({});
        m_announcer->pump();
        QCOMPARE(m_sent.size(), std::size_t{1});
        QCOMPARE(m_sent[0].apps_listed().count(), 0U);
    }

private:
    void listen() {
        m_announcer->startOver(3);
        m_announcer->pump();
        m_sent.clear();
    }
    void addWindow(XWindow xid, const std::string& title) {
        m_windows->add(xid, {.title = title}, {300, 200});
        m_windows->assignHeads();
    }
    void tell(XWindow active = 0) { m_announcer->windowsAre(*m_windows, active); }

    int m_room = 0;
    std::vector<Event> m_sent;
    std::unique_ptr<Windows> m_windows;
    std::unique_ptr<Announcer> m_announcer;
};

QTEST_GUILESS_MAIN(TestSessionAnnouncer)
#include "tst_session_announcer.moc"
