// SPDX-License-Identifier: Apache-2.0
#include "viewer/frame.hpp"
#include "viewer/sound_output.hpp"
#include "viewer/spice_playback.hpp"

#include <QTest>

#include <algorithm>
#include <vector>

using namespace bulkhead::viewer;

namespace {

/// What was asked of it, as words.
class Heard final : public SoundOutput {
public:
    void begin(const SoundFormat& format) override {
        said.append(QString("begin %1 %2").arg(format.channels).arg(format.rate));
    }
    void play(std::span<const std::byte> samples) override { said.append(QString("play %1").arg(samples.size())); }
    void end() override { said.append("end"); }
    void setMuted(bool isMuted) override { said.append(isMuted ? "mute" : "unmute"); }
    QStringList said;
};

/// The playback channel of a session that is connected to nothing; the test says what a server would.
class Server {
public:
    Server() {
        g_object_set(m_session.get(), "enable-audio", TRUE, nullptr);
        m_channel = GObjectPtr<SpiceChannel>::adopt(spice_channel_new(m_session.get(), SPICE_CHANNEL_PLAYBACK, 0));
    }
    [[nodiscard]] SpiceChannel* channel() const { return m_channel.get(); }
    void start(int format, int channels, int rate) {
        g_signal_emit_by_name(m_channel.get(), "playback-start", format, channels, rate);
    }
    void data(int size) {
        std::vector<char> samples(static_cast<std::size_t>(std::max(size, 1)));
        g_signal_emit_by_name(m_channel.get(), "playback-data", samples.data(), size);
    }
    void stop() { g_signal_emit_by_name(m_channel.get(), "playback-stop"); }

private:
    GObjectPtr<SpiceSession> m_session = GObjectPtr<SpiceSession>::adopt(spice_session_new());
    GObjectPtr<SpiceChannel> m_channel;
};

} // namespace

/// What of a playback channel reaches the host's sound server.
class TestViewerSound : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void plainSound_isHandedOn() {
        Heard heard;
        Server server;
        QVERIFY(server.channel() != nullptr);
        SpicePlayback playback(heard);
        playback.attach(server.channel());
        server.start(SPICE_AUDIO_FMT_S16, 2, 44100);
        server.data(1764);
        server.stop();
        server.data(1764); // after the end
        QCOMPARE(heard.said, QStringList({"begin 2 44100", "play 1764", "end"}));
    }

    void otherFormats_areNotHeard_data() {
        QTest::addColumn<int>("format");
        QTest::addColumn<int>("channels");
        QTest::addColumn<int>("rate");
        QTest::newRow("no format") << int{SPICE_AUDIO_FMT_INVALID} << 2 << 44100;
        QTest::newRow("no channels") << int{SPICE_AUDIO_FMT_S16} << 0 << 44100;
        QTest::newRow("many channels") << int{SPICE_AUDIO_FMT_S16} << 1'000'000 << 44100;
        QTest::newRow("fewer than none") << int{SPICE_AUDIO_FMT_S16} << -1 << 44100;
        QTest::newRow("no rate") << int{SPICE_AUDIO_FMT_S16} << 2 << 0;
        QTest::newRow("high rate") << int{SPICE_AUDIO_FMT_S16} << 2 << 2'000'000'000;
        QTest::newRow("low rate") << int{SPICE_AUDIO_FMT_S16} << 2 << -44100;
    }
    void otherFormats_areNotHeard() {
        QFETCH(int, format);
        QFETCH(int, channels);
        QFETCH(int, rate);
        Heard heard;
        Server server;
        SpicePlayback playback(heard);
        playback.attach(server.channel());
        server.start(SPICE_AUDIO_FMT_S16, 1, 48000);
        server.start(format, channels, rate);
        server.data(1764);
        QCOMPARE(heard.said, QStringList({"begin 1 48000", "end"}));
    }

    void oddAmounts_areDropped() {
        Heard heard;
        Server server;
        SpicePlayback playback(heard);
        playback.attach(server.channel());
        server.start(SPICE_AUDIO_FMT_S16, 2, 44100);
        for (const int size : {0, -1, 65537, 65536}) {
            server.data(size);
        }
        QCOMPARE(heard.said, QStringList({"begin 2 44100", "play 65536"}));
    }

    void detached_isDeafAndEnds() {
        Heard heard;
        Server server;
        SpicePlayback playback(heard);
        playback.attach(server.channel());
        server.start(SPICE_AUDIO_FMT_S16, 2, 44100);
        playback.detach();
        server.data(1764);
        QCOMPARE(heard.said, QStringList({"begin 2 44100", "end"}));
    }

    void secondChannel_isNotHeard() {
        Heard heard;
        Server first;
        Server second;
        SpicePlayback playback(heard);
        playback.attach(first.channel());
        playback.attach(second.channel());
        second.start(SPICE_AUDIO_FMT_S16, 2, 44100);
        QVERIFY(heard.said.isEmpty());
    }

    void switch_isInTheStripWhereThereIsSound() {
        QVERIFY(soundSwitchRect({800, 600}, SoundState::None).isEmpty());
        QVERIFY(soundSwitchRect({20, 600}, SoundState::On).isEmpty()); // no room for it
        const QRect where = soundSwitchRect({800, 600}, SoundState::Muted);
        QVERIFY(!where.isEmpty());
        QVERIFY(QRect(0, 0, 800, kFrameStrip).contains(where));
        QVERIFY(!where.intersects(QRect(0, 0, 800, 600).marginsRemoved(frameMargins())));
    }
};

QTEST_GUILESS_MAIN(TestViewerSound)
#include "tst_viewer_sound.moc"
