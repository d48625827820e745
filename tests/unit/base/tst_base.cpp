// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/escaping.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/scope_guard.hpp"
#include "base/unique_fd.hpp"

#include <QTest>

#include <cerrno>
#include <fcntl.h>
#include <set>

using namespace bulkhead;

class TestBase : public QObject {
    Q_OBJECT

private slots:
    void escape_data() {
        QTest::addColumn<QByteArray>("in");
        QTest::addColumn<QByteArray>("out");
        QTest::newRow("plain") << QByteArray("hello wörld") << QByteArray("hello wörld");
        QTest::newRow("terminal control") << QByteArray("\x1b[2J") << QByteArray("\\x1b[2J");
        QTest::newRow("new line forges a log line") << QByteArray("a\n<3>b") << QByteArray("a\\x0a<3>b");
        QTest::newRow("backslash stays unambiguous") << QByteArray("\\x1b") << QByteArray("\\\\x1b");
        QTest::newRow("bad byte") << QByteArray("a\xff") << QByteArray("a\\xff");
        QTest::newRow("overlong slash") << QByteArray("\xc0\xaf") << QByteArray("\\xc0\\xaf");
        QTest::newRow("surrogate") << QByteArray("\xed\xa0\x80") << QByteArray("\\xed\\xa0\\x80");
        QTest::newRow("right-to-left override") << QByteArray("a\xe2\x80\xae") << QByteArray("a\\u{202e}");
        QTest::newRow("C1 control") << QByteArray("\xc2\x9b") << QByteArray("\\x9b");
        QTest::newRow("cut short character") << QByteArray("\xe2\x82") << QByteArray("\\xe2\\x82");
    }
    void escape() {
        QFETCH(QByteArray, in);
        QFETCH(QByteArray, out);
        QCOMPARE(QByteArray::fromStdString(escapeUntrusted(in.toStdString())), out);
    }
    void escape_longText_isCutAtACharacter() {
        const std::string text = escapeUntrusted("ääääääääää", 10);
        QVERIFY(text.size() <= 10);
        QVERIFY(isValidUtf8(text));
        QVERIFY(text.ends_with("…"));
        QCOMPARE(escapeUntrusted("0123456789", 10), std::string("0123456789"));
    }

    void ids_areRandomVersion4AndRoundTrip() {
        std::set<std::string> seen;
        for (int i = 0; i < 100; ++i) {
            const auto id = randomId<DomainId>();
            QCOMPARE(id.text().size(), std::size_t{36});
            QCOMPARE(id.text()[14], '4');
            QVERIFY(seen.insert(id.text()).second);
            QVERIFY(DomainId::parse(id.text()) == id);
            QVERIFY(DomainId::parseCompact(id.compact()) == id);
        }
    }
    void ids_refuseEverythingElse() {
        for (const char* text : {"", "x", "../../etc/passwd", "0123456789abcdef0123456789abcdef0123",
                                 "0123456F-0123-4123-8123-0123456789ab", "01234567-0123-4123-8123-0123456789abc"}) {
            QVERIFY(!DomainId::parse(text));
            QVERIFY(!DomainId::parseCompact(text));
        }
    }

    void bytes_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<qulonglong>("value");
        QTest::addColumn<bool>("good");
        QTest::newRow("GiB") << "2GiB" << 2147483648ULL << true;
        QTest::newRow("plain") << "17" << 17ULL << true;
        QTest::newRow("decimal unit is refused") << "2GB" << 0ULL << false;
        QTest::newRow("negative") << "-1" << 0ULL << false;
        QTest::newRow("overflow") << "18446744073709551615GiB" << 0ULL << false;
        QTest::newRow("empty") << "" << 0ULL << false;
        QTest::newRow("space") << "2 GiB" << 0ULL << false;
    }
    void bytes() {
        QFETCH(QString, text);
        QFETCH(qulonglong, value);
        QFETCH(bool, good);
        const auto parsed = parseBytes(text.toStdString());
        QCOMPARE(parsed.has_value(), good);
        if (good) {
            QCOMPARE(qulonglong{*parsed}, value);
        } else {
            QCOMPARE(parsed.error().code, ErrorCode::InvalidArgument);
        }
    }
    void bytes_format() {
        QCOMPARE(formatBytes(17), std::string("17 B"));
        QCOMPARE(formatBytes(1536 * kMiB), std::string("1.5 GiB"));
        QCOMPARE(formatBytes(512 * kMiB), std::string("512 MiB"));
    }

    void errno_ofAFullDisk_isNoSpace() {
        QCOMPARE(failErrno("write", ENOSPC).value().code, ErrorCode::NoSpace);
        QCOMPARE(failErrno("write", EIO).value().code, ErrorCode::HostFailure);
    }

    void uniqueFd_closesOnce() {
        const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        {
            UniqueFd first(raw);
            UniqueFd second(std::move(first));
            QVERIFY(!first);
            QCOMPARE(second.get(), raw);
        }
        QCOMPARE(::fcntl(raw, F_GETFD), -1);
    }

    void scopeGuard_runsUnlessDismissed() {
        int undone = 0;
        {
            const ScopeGuard guard([&] { ++undone; });
        }
        {
            ScopeGuard guard([&] { ++undone; });
            guard.dismiss();
        }
        QCOMPARE(undone, 1);
    }
};

QTEST_APPLESS_MAIN(TestBase)
#include "tst_base.moc"
