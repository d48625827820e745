// SPDX-License-Identifier: Apache-2.0
#include "memcap/options.hpp"
#include "memcap/ram_mapping.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::memcap;

Q_DECLARE_METATYPE(bulkhead::ErrorCode)

namespace {

const MappedFile kImage{8, 1, 42, "/images/x.ram"};

/// Two pages of RAM, between what an emulator has besides.
const char* const kBefore = "00010000-00020000 r-xp 00000000 08:01 7 /usr/bin/qemu\n"
                            "00020000-00040000 rw-p 00000000 00:00 0 [heap]\n";
const char* const kAfter = "7f0000-7f1000 ---p 00000000 00:00 0 \n";

} // namespace

class TestRamMapping : public QObject {
    Q_OBJECT

private slots:
    void parse_readsEveryField() {
        const auto vmas = parseMaps("7f12ab000-7f12cd000 rw-p 0001f000 fd:0a 1234567 /a b/c\\012d (deleted)\n"
                                    "100-200 ---p 00000000 00:00 0 \n");
        QVERIFY(vmas);
        const Vma first{0x7f12ab000, 0x7f12cd000, "rw-p", 0x1f000, 0xfd, 0x0a, 1234567, "/a b/c\\012d (deleted)"};
        QCOMPARE(vmas->size(), std::size_t{2});
        QVERIFY(vmas->front() == first);
        QVERIFY(vmas->back().path.empty());
    }
    void parse_refuses_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("words") << QByteArray("hello\n");
        QTest::newRow("no mode") << QByteArray("100-200\n");
        QTest::newRow("end before begin") << QByteArray("200-100 rw-p 00000000 00:00 0\n");
        QTest::newRow("empty range") << QByteArray("100-100 rw-p 00000000 00:00 0\n");
        QTest::newRow("number too large") << QByteArray("1ffffffffffffffff-200 rw-p 00000000 00:00 0\n");
        QTest::newRow("no inode") << QByteArray("100-200 rw-p 00000000 00:00 x\n");
        QTest::newRow("empty line") << QByteArray("100-200 rw-p 00000000 00:00 0\n\n");
    }
    void parse_refuses() {
        QFETCH(QByteArray, text);
        QVERIFY(!parseMaps(text.toStdString()));
    }

    void find_data() {
        QTest::addColumn<bool>("fromFile");
        QTest::addColumn<QByteArray>("maps");
        QTest::addColumn<QList<quint64>>("addresses"); // none: refused
        QTest::addColumn<ErrorCode>("code");
        const auto row = [](const char* name, bool fromFile, const char* maps, QList<quint64> addresses,
                            ErrorCode code = ErrorCode::NotFound) {
            QTest::newRow(name) << fromFile << QByteArray(kBefore) + maps + kAfter << addresses << code;
        };
        row("file", true, "7ee000-7f0000 rw-p 00000000 08:01 42 /images/x.ram\n", {0x7ee000});
        row("file in two parts", true,
            "7ee000-7ef000 rw-p 00000000 08:01 42 /images/x.ram\n7ef000-7f0000 rw-p 00001000 08:01 42 /images/x.ram\n",
            {0x7ee000});
        row("file of a subvolume", true, "7ee000-7f0000 rw-p 00000000 00:2f 42 /images/x.ram\n", {0x7ee000});
        row("other file with the inode", true, "7ee000-7f0000 rw-p 00000000 00:2f 42 /images/y.ram\n", {});
        row("other inode with the path", true, "7ee000-7f0000 rw-p 00000000 08:01 43 /images/x.ram\n", {});
        row("deleted file", true, "7ee000-7f0000 rw-p 00000000 08:01 42 /images/x.ram (deleted)\n", {0x7ee000});
        row("shared", true, "7ee000-7f0000 rw-s 00000000 08:01 42 /images/x.ram\n", {}, ErrorCode::WrongState);
        row("read-only", true, "7ee000-7f0000 r--p 00000000 08:01 42 /images/x.ram\n", {}, ErrorCode::WrongState);
        row("too small", true, "7ee000-7ef000 rw-p 00000000 08:01 42 /images/x.ram\n", {});
        row("too large", true, "7ee000-7f1000 rw-p 00000000 08:01 42 /images/x.ram\n", {});
        row("not from its start", true, "7ee000-7f0000 rw-p 00001000 08:01 42 /images/x.ram\n", {});
        row("with a gap in the file", true,
            "7ee000-7ef000 rw-p 00000000 08:01 42 /images/x.ram\n7ef000-7f0000 rw-p 00002000 08:01 42 /images/x.ram\n",
            {});
        row("with a gap in memory", true,
            "7ed000-7ee000 rw-p 00000000 08:01 42 /images/x.ram\n7ef000-7f0000 rw-p 00001000 08:01 42 /images/x.ram\n",
            {});
        row("mapped twice", true,
            "7ea000-7ec000 rw-p 00000000 08:01 42 /images/x.ram\n7ee000-7f0000 rw-p 00000000 08:01 42 /images/x.ram\n",
            {0x7ea000, 0x7ee000});
        row("file, none mapped", true, "7ee000-7f0000 rw-p 00000000 00:00 0 \n", {});

        row("anonymous", false, "7ee000-7f0000 rw-p 00000000 00:00 0 \n", {0x7ee000});
        row("anonymous with a name", false, "7ee000-7f0000 rw-p 00000000 00:00 0 [anon:ram]\n", {0x7ee000});
        row("anonymous in parts", false, "7ee000-7ef000 rw-p 00000000 00:00 0 \n7ef000-7f0000 rw-p 00000000 00:00 0 \n",
            {0x7ee000});
        row("behind a smaller neighbour", false,
            "7ed000-7ee000 rw-p 00000000 00:00 0 \n7ee000-7f0000 rw-p 00000000 00:00 0 \n", {0x7ee000});
        row("two of that size", false, "7ea000-7ec000 rw-p 00000000 00:00 0 \n7ee000-7f0000 rw-p 00000000 00:00 0 \n",
            {0x7ea000, 0x7ee000});
        row("joined with a neighbour", false, "7ed000-7f0000 rw-p 00000000 00:00 0 \n", {});
        row("parts with a gap", false, "7ed000-7ee000 rw-p 00000000 00:00 0 \n7ef000-7f0000 rw-p 00000000 00:00 0 \n",
            {});
        row("anonymous, but code", false, "7ee000-7f0000 rwxp 00000000 00:00 0 \n", {});
        row("heap", false, "7ee000-7f0000 rw-p 00000000 00:00 0 [heap]\n", {});
        row("a file's", false, "7ee000-7f0000 rw-p 00000000 08:01 42 /images/x.ram\n", {});
    }
    void find() {
        QFETCH(bool, fromFile);
        QFETCH(QByteArray, maps);
        QFETCH(QList<quint64>, addresses);
        QFETCH(ErrorCode, code);
        const auto vmas = parseMaps(maps.toStdString());
        QVERIFY(vmas);
        const auto found = findRam(*vmas, 0x2000, fromFile ? std::optional(kImage) : std::nullopt);
        if (addresses.isEmpty()) {
            QVERIFY(!found);
            QCOMPARE(found.error().code, code);
            QVERIFY(found.error().message.starts_with("the emulator "));
            return;
        }
        QVERIFY2(found, found ? "" : found.error().message.c_str());
        QCOMPARE(QList<quint64>(found->begin(), found->end()), addresses);
    }

    void options_data() {
        QTest::addColumn<QList<QByteArray>>("arguments");
        QTest::addColumn<bool>("good");
        const QByteArray digest(64, 'a');
        const QList<QByteArray> base{"--pid", "12", "--ram-bytes", "8192"};
        QTest::newRow("cold") << base + QList<QByteArray>{"--max-bytes", "4096"} << true;
        QTest::newRow("parent") << base + QList<QByteArray>{"--parent", digest} << true;
        QTest::newRow("mapped") << base + QList<QByteArray>{"--parent", digest, "--mapped-file"} << true;
        QTest::newRow("mapped without parent") << base + QList<QByteArray>{"--mapped-file"} << false;
        QTest::newRow("bad digest") << base + QList<QByteArray>{"--parent", "xyz"} << false;
        QTest::newRow("nothing") << QList<QByteArray>{} << false;
        QTest::newRow("no value") << QList<QByteArray>{"--pid"} << false;
        QTest::newRow("unknown") << base + QList<QByteArray>{"--verbose", "1"} << false;
        QTest::newRow("no number") << QList<QByteArray>{"--pid", "12x", "--ram-bytes", "8192"} << false;
        QTest::newRow("pid 0") << QList<QByteArray>{"--pid", "0", "--ram-bytes", "8192"} << false;
        QTest::newRow("pid too large") << QList<QByteArray>{"--pid", "4294967297", "--ram-bytes", "8192"} << false;
        QTest::newRow("half a page") << QList<QByteArray>{"--pid", "12", "--ram-bytes", "2048"} << false;
        QTest::newRow("too much") << QList<QByteArray>{"--pid", "12", "--ram-bytes", "18446744073709547520"} << false;
    }
    void options() {
        QFETCH(QList<QByteArray>, arguments);
        QFETCH(bool, good);
        std::vector<const char*> list;
        for (const QByteArray& argument : arguments) {
            list.push_back(argument.constData());
        }
        QCOMPARE(parseOptions(list).has_value(), good);
    }
};

QTEST_GUILESS_MAIN(TestRamMapping)
#include "tst_ram_mapping.moc"
