// SPDX-License-Identifier: Apache-2.0
#include "memory/capture_lines.hpp"
#include "memory/delta_file.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::memory;

namespace {

constexpr Bytes kRam = 100 * kPage;
const std::string kParent(64, 'b');

DeltaIndex sampleIndex() {
    DeltaIndex index{kRam, kParent, {}};
    index.append(0, 1, RunKind::Zero);
    index.append(3, 2, RunKind::Data);
    index.append(5, 1, RunKind::Data); // continues
    index.append(6, 4, RunKind::Zero);
    index.append(98, 2, RunKind::Data);
    return index;
}

std::string samplePages() {
    std::string pages;
    for (const char c : {'a', 'b', 'c', 'd', 'e'}) {
        pages.append(kPage, c);
    }
    return pages;
}

void writeFile(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

std::string readFile(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    return bytes.str();
}

} // namespace

class TestPackedDelta : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string m_sample; ///< a good file

    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    Result<WrittenDelta> write(const std::string& file, const DeltaIndex& index, std::string_view pages) const {
        const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
        DeltaWriter writer(fd.get(), file);
        if (auto begun = writer.begin(index); !begun) {
            return fail(begun.error());
        }
        if (auto added = writer.add(pages); !added) {
            return fail(added.error());
        }
        return writer.finish();
    }
    /// The pages as a list of texts like "3 2 data aaaa…".
    Result<std::string> read(const std::string& file, std::string* seen = nullptr) const {
        auto reader = DeltaReader::open(file);
        if (!reader) {
            return fail(reader.error());
        }
        return reader->read({
            [&](Bytes offset, std::string_view pages) -> Status {
                if (seen != nullptr) {
                    *seen += std::to_string(offset / kPage) + ":" + std::to_string(pages.size() / kPage) +
                             pages.front() + pages.back() + " ";
                }
                return {};
            },
            [&](Bytes offset, Bytes length) -> Status {
                if (seen != nullptr) {
                    *seen += std::to_string(offset / kPage) + ":" + std::to_string(length / kPage) + "zero ";
                }
                return {};
            },
        });
    }

private slots:
    void initTestCase() {
        QVERIFY(write(path("sample"), sampleIndex(), samplePages()));
        m_sample = readFile(path("sample"));
    }

    void roundTrip() {
        const auto written = write(path("delta"), sampleIndex(), samplePages());
        QVERIFY(written);
        QCOMPARE(written->size, Bytes{80 + 4 * 16 + 5 * 4096 + 32});
        QCOMPARE(written->size, Bytes{std::filesystem::file_size(path("delta"))});
        QCOMPARE(written->dataPages, 5ULL);
        QCOMPARE(written->zeroPages, 5ULL);
        auto reader = DeltaReader::open(path("delta"));
        QVERIFY(reader);
        QVERIFY(reader->index() == sampleIndex());
        std::string seen;
        const auto digest = read(path("delta"), &seen);
        QVERIFY(digest);
        QCOMPARE(*digest, written->digest);
        QCOMPARE(seen, std::string("0:1zero 3:3ac 6:4zero 98:2de "));
    }
    void layout_isTheDocumentedOne() {
        QCOMPARE(m_sample.substr(0, 8), std::string("BHDELTA\n"));
        QCOMPARE(m_sample.substr(8, 8), std::string("\1\0\0\0\0\x10\0\0", 8));
        QCOMPARE(m_sample.substr(16, 8), std::string("\0\x40\x06\0\0\0\0\0", 8)); // 409600
        QCOMPARE(m_sample.substr(24, 8), std::string("\4\0\0\0\0\0\0\0", 8));
        QCOMPARE(m_sample.substr(48, 32), std::string(32, '\xbb'));
        QCOMPARE(m_sample.substr(96, 16), std::string("\3\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0", 16));
    }
    void longRuns_comeInPieces() {
        DeltaIndex index{kRam * 10, std::string(zeroParent()), {}};
        index.append(1, 700, RunKind::Data);
        const std::string pages(700 * kPage, 'x');
        QVERIFY(write(path("long"), index, pages));
        std::string seen;
        QVERIFY(read(path("long"), &seen));
        QCOMPARE(seen, std::string("1:256xx 257:256xx 513:188xx "));
    }
    void writer_wantsAllPages() {
        const auto short1 = write(path("short"), sampleIndex(), samplePages().substr(kPage));
        QVERIFY(!short1);
        QCOMPARE(short1.error().code, ErrorCode::InvalidArgument);
        QVERIFY(!write(path("short"), sampleIndex(), samplePages() + std::string(kPage, 'f')));
    }
    void sinkFailure_endsTheReading() {
        auto reader = DeltaReader::open(path("sample"));
        QVERIFY(reader);
        const auto result =
            reader->read({[](Bytes, std::string_view) { return Status(fail(ErrorCode::NoSpace, "full")); },
                          [](Bytes, Bytes) { return Status{}; }});
        QVERIFY(!result);
        QCOMPARE(result.error().message, std::string("full"));
    }
    void notThere() {
        const auto reader = DeltaReader::open(path("none"));
        QVERIFY(!reader);
        QCOMPARE(reader.error().code, ErrorCode::NotFound);
        QVERIFY(!DeltaReader::open(m_folder.path().toStdString()));
        std::filesystem::create_symlink("sample", path("link"));
        QVERIFY(!DeltaReader::open(path("link")));
    }

    void damaged_data() {
        QTest::addColumn<int>("at"); // of the bytes that are replaced
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QByteArray>("reason");
        const auto row = [](const char* name, int at, QByteArray bytes, const char* reason) {
            QTest::newRow(name) << at << bytes << QByteArray(reason);
        };
        const auto number = [](quint64 value, int size) {
            QByteArray bytes;
            for (int i = 0; i < size; ++i) {
                bytes.append(static_cast<char>(value >> (8 * i)));
            }
            return bytes;
        };
        row("magic", 0, "X", "does not begin as one");
        row("version", 8, number(2, 4), "format version 2");
        row("page size", 12, number(8192, 4), "pages of 8192 bytes");
        row("no memory", 16, number(0, 8), "guest memory of 0 bytes");
        row("half a page of memory", 16, number(kRam + 1, 8), "guest memory of");
        row("too much memory", 16, number(kMostRam + kPage, 8), "guest memory of");
        row("all the memory there is", 16, number(~0ULL, 8), "guest memory of");
        row("less memory than runs", 16, number(50 * kPage, 8), "goes beyond the guest's memory");
        row("memory less than pages", 16, number(4 * kPage, 8), "more pages than the guest has");
        row("no runs", 24, number(0, 8), "the file has");
        row("fewer runs", 24, number(3, 8), "the file has");
        row("as many runs as fit into a number", 24, number(~0ULL, 8), "more runs than pages");
        row("runs whose size overflows", 24, number(1ULL << 60, 8), "more runs than pages");
        row("more data pages", 32, number(6, 8), "the file has");
        row("data pages that overflow", 32, number(1ULL << 52, 8), "more pages than the guest has");
        row("all data pages", 32, number(~0ULL, 8), "more pages than the guest has");
        row("more zero pages", 40, number(6, 8), "do not add up");
        row("zero pages that overflow", 40, number(~0ULL - 3, 8), "more pages than the guest has");
        row("another parent", 48, "X", "is damaged");
        row("run begins later", 80, number(1, 8), "is damaged");
        row("run begins beyond", 128, number(1000, 8), "goes beyond the guest's memory");
        row("run begins at the end of numbers", 128, number(~0ULL, 8), "goes beyond the guest's memory");
        row("run ends beyond", 128, number(99, 8), "goes beyond the guest's memory");
        row("overlapping runs", 112, number(5, 8), "begins before the end");
        row("unsorted runs", 96, number(50, 8), "begins before the end");
        row("empty run", 88, number(0, 4), "is empty");
        row("huge run", 88, number(0xffffffff, 4), "goes beyond the guest's memory");
        row("longer run", 88, number(2, 4), "do not add up");
        row("unknown kind", 92, number(3, 4), "unknown kind 3");
        row("kind 0", 92, number(0, 4), "unknown kind 0");
        row("same kind as the neighbour", 124, number(1, 4), "continues the one before");
        row("first byte of a page", 144, "X", "is damaged");
        row("last byte of the pages", 144 + 5 * 4096 - 1, "X", "is damaged");
        row("trailer", 144 + 5 * 4096, "X", "is damaged");
        row("last byte", 144 + 5 * 4096 + 31, "X", "is damaged");
    }
    void damaged() {
        QFETCH(int, at);
        QFETCH(QByteArray, bytes);
        QFETCH(QByteArray, reason);
        std::string file = m_sample;
        file.replace(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes.size()), bytes.toStdString());
        QVERIFY(file != m_sample);
        writeFile(path("damaged"), file);
        const auto result = read(path("damaged"));
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::HostFailure);
        QVERIFY2(QByteArray(result.error().message.c_str()).contains(reason), result.error().message.c_str());
        QVERIFY(QByteArray(result.error().message.c_str()).contains("damaged")); // the file's name
    }
    void cutOrLonger_isRefused() {
        for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{79}, std::size_t{80},
                                       std::size_t{112}, std::size_t{144}, m_sample.size() - 1}) {
            writeFile(path("cut"), m_sample.substr(0, size));
            QVERIFY(!read(path("cut")));
        }
        writeFile(path("longer"), m_sample + "x");
        QVERIFY(!read(path("longer")));
    }
    /// Not one bit can change unnoticed.
    void everyBit_counts() {
        for (std::size_t byte = 0; byte < 144; ++byte) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                std::string file = m_sample;
                file[byte] = static_cast<char>(static_cast<unsigned char>(file[byte]) ^ (1U << bit));
                writeFile(path("flipped"), file);
                QVERIFY2(!read(path("flipped")), std::to_string(byte).c_str());
            }
        }
    }

    void lines_roundTrip() {
        const PreparedCapture prepared{12, 34};
        QVERIFY(decodePrepared(encode(prepared)) == prepared);
        const CapturedPages captured{5, std::chrono::microseconds(77)};
        QVERIFY(decodeCaptured(encode(captured)) == captured);
        const FinishedCapture finished{{1, 2, 3, std::string(64, 'a')}, 4};
        QVERIFY(decodeFinished(encode(finished)) == finished);
        const auto error =
            decodePrepared(encode(Error{ErrorCode::NoSpace, "no room\nat all: " + std::string(5000, 'x')}));
        QCOMPARE(error.error().code, ErrorCode::NoSpace);
        QVERIFY(error.error().message.starts_with("no room at all: xxx"));
        QVERIFY(encode(Error{ErrorCode::NoSpace, std::string(5000, 'x')}).size() < kMaxLine);
    }
    void lines_areStrict_data() {
        QTest::addColumn<QByteArray>("line");
        for (const char* line :
             {"", "prepared", "prepared pages=1", "prepared pages=1 capacity=", "prepared pages=1 capacity=2 ",
              "prepared pages=-1 capacity=2", "prepared pages=+1 capacity=2", "prepared capacity=2 pages=1",
              "prepared  pages=1 capacity=2", "prepared pages=0x1 capacity=2", "captured pages=1 usec=2",
              "prepared pages=18446744073709551616 capacity=2", "error", "error NoSuchCode text", "error NoSpace"}) {
            QTest::newRow(line) << QByteArray(line);
        }
    }
    void lines_areStrict() {
        QFETCH(QByteArray, line);
        const auto decoded = decodePrepared(line.toStdString());
        QVERIFY(!decoded);
        QCOMPARE(decoded.error().code, ErrorCode::HostFailure);
        QVERIFY(!decodeFinished("written bytes=1 data=2 zero=3 same=4 digest=abc"));
    }
};

QTEST_GUILESS_MAIN(TestPackedDelta)
#include "tst_packed_delta.moc"
