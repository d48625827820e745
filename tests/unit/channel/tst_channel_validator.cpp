// SPDX-License-Identifier: Apache-2.0
#include "channel/validator.hpp"
#include "protocol/agent.pb.h"

#include <QTest>

#include <functional>

using namespace bulkhead;
using namespace bulkhead::channel;
using exec_stream::ClientEventKind;

class TestChannelValidator : public QObject {
    Q_OBJECT

private slots:
    void execEvent_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<bool>("good");
        const auto row = [](const char* name, bool good, const std::function<void(agent::ExecEvent&)>& fill) {
            agent::ExecEvent event;
            fill(event);
            QTest::newRow(name) << QByteArray::fromStdString(event.SerializeAsString()) << good;
        };
        row("started", true, [](auto& e) { e.mutable_started()->set_pid(1); });
        row("pid 0", false, [](auto& e) { e.mutable_started(); });
        row("pid beyond the kernel's", false, [](auto& e) { e.mutable_started()->set_pid((1U << 22) + 1); });
        row("exited 255", true, [](auto& e) { e.mutable_exited()->set_status(255); });
        row("exited 256", false, [](auto& e) { e.mutable_exited()->set_status(256); });
        row("signal 64", true, [](auto& e) { e.mutable_exited()->set_signal(64); });
        row("signal 65", false, [](auto& e) { e.mutable_exited()->set_signal(65); });
        row("signal and status", false, [](auto& e) {
            e.mutable_exited()->set_signal(9);
            e.mutable_exited()->set_status(1);
        });
        row("core without a signal", false, [](auto& e) { e.mutable_exited()->set_core_dumped(true); });
        row("failed", true, [](auto& e) { e.mutable_failed()->set_reason(agent::ExecFailed::BAD_REQUEST); });
        row("failed for a reason to come", false,
            [](auto& e) { e.mutable_failed()->set_reason(static_cast<agent::ExecFailed::Reason>(7)); });
        row("negative errno", false, [](auto& e) { e.mutable_failed()->set_error_number(-1); });
        row("huge errno", false, [](auto& e) { e.mutable_failed()->set_error_number(4096); });
        row("nothing", false, [](auto&) {});
        QTest::newRow("cut short") << QByteArray("\x12\x05\x08") << false;
        QTest::newRow("a kind to come") << QByteArray("\x22\x00", 2) << false;
    }
    void execEvent() {
        QFETCH(QByteArray, bytes);
        QFETCH(bool, good);
        const auto news = checkExecEvent(GuestMessage(bytes.toStdString()));
        QCOMPARE(news.has_value(), good);
        if (!good) {
            QCOMPARE(news.error(), protocol::Violation::BadMessage);
        }
    }

    void reply_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<bool>("good");
        const auto row = [](const char* name, bool good, const std::function<void(agent::Reply&)>& fill) {
            agent::Reply reply;
            fill(reply);
            QTest::newRow(name) << QByteArray::fromStdString(reply.SerializeAsString()) << good;
        };
        const auto hello = [](agent::Reply& r) -> agent::Hello& {
            r.mutable_hello()->set_version(1);
            return *r.mutable_hello();
        };
        row("hello", true, [&](auto& r) { hello(r).add_features("exec-2"); });
        row("hello with an id", false, [&](auto& r) {
            hello(r);
            r.set_id(1);
        });
        row("hello version 2", false, [&](auto& r) { hello(r).set_version(2); });
        row("64 features", true, [&](auto& r) {
            for (int i = 0; i < 64; ++i) {
                hello(r).add_features("f");
            }
        });
        row("65 features", false, [&](auto& r) {
            for (int i = 0; i < 65; ++i) {
                hello(r).add_features("f");
            }
        });
        row("feature of 64 bytes", true, [&](auto& r) { hello(r).add_features(std::string(64, 'f')); });
        row("feature of 65 bytes", false, [&](auto& r) { hello(r).add_features(std::string(65, 'f')); });
        row("empty feature", false, [&](auto& r) { hello(r).add_features(""); });
        row("feature in capitals", false, [&](auto& r) { hello(r).add_features("EXEC"); });
        row("feature with an escape", false, [&](auto& r) { hello(r).add_features("\x1b[2J"); });
        row("long version text", false, [&](auto& r) { hello(r).set_agent_version(std::string(65, 'v')); });
        row("done", true, [](auto& r) { r.mutable_done(); });
        row("done with an error", false, [](auto& r) {
            r.mutable_done();
            r.set_error_number(1);
        });
        row("error", true, [](auto& r) { r.set_error_number(1); });
        row("neither", false, [](auto& r) { r.set_id(4); });
        row("negative error", false, [](auto& r) { r.set_error_number(-1); });
        row("status", true, [](auto& r) { r.mutable_status()->set_uptime_ms(1); });
        row("more memory free than there is", false, [](auto& r) { r.mutable_status()->set_memory_available(1); });
        row("more disk free than there is", false,
            [](auto& r) { r.mutable_status()->mutable_home()->set_available(1); });
        row("absurd disk", false,
            [](auto& r) { r.mutable_status()->mutable_system()->set_total(std::uint64_t{1} << 61); });
        row("absurd uptime", false, [](auto& r) { r.mutable_status()->set_uptime_ms(std::uint64_t{1} << 43); });
        QTest::newRow("text that is not UTF-8") << QByteArray("\x1a\x05\x08\x01\x1a\x01\xff") << false;
        QTest::newRow("rubbish") << QByteArray("\xff\xff") << false;
    }
    void reply() {
        QFETCH(QByteArray, bytes);
        QFETCH(bool, good);
        QCOMPARE(checkReply(GuestMessage(bytes.toStdString())).has_value(), good);
    }
};

QTEST_APPLESS_MAIN(TestChannelValidator)
#include "tst_channel_validator.moc"
