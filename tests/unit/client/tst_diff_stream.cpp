// SPDX-License-Identifier: Apache-2.0
#include "client/diff_stream.hpp"
#include "inspect/records.hpp"

#include <QTest>

#include <functional>
#include <string>

using namespace bulkhead;
using namespace bulkhead::diff_stream;
using bulkhead::inspect::Body;

namespace {

using Bytes = std::string;

Bytes record(std::uint16_t kind, const Bytes& body) {
    return Body().u32(static_cast<std::uint32_t>(body.size())).u16(kind).bytes() + body;
}
Bytes record(Kind kind, const Body& body) {
    return record(static_cast<std::uint16_t>(kind), body.bytes());
}

Bytes begin(What what = What::Difference, std::uint32_t version = kVersion) {
    return record(Kind::Begin, Body().u32(version).one(what).u8(0));
}
Bytes package(const Bytes& name, const Bytes& before, const Bytes& after, const Bytes& architecture = "all") {
    return record(Kind::Package, Body().text(name, 60'000).text(architecture, 300).text(before, 300).text(after, 300));
}
Bytes disk(Disk which = Disk::System, DiskState state = DiskState::Compared) {
    return record(Kind::DiskIs, Body().one(which).one(state));
}

struct State {
    FileType type = FileType::File;
    std::uint64_t size = 0;
    std::uint32_t mode = 0644;
    std::uint32_t uid = 0;
    std::uint32_t nanoseconds = 0;
    std::uint32_t deviceMajor = 0;
    Bytes target = {};
};
void add(Body& body, const State& state) {
    body.one(state.type).u64(state.size).u32(state.mode).u32(state.uid).u32(0).i64(-1).u32(state.nanoseconds);
    body.u32(state.deviceMajor).u32(0).text(state.target, 60'000);
}
Body entryBody(Change change, std::uint32_t what, const Bytes& path, const std::vector<State>& states,
               Disk which = Disk::System) {
    Body body;
    body.one(which).one(change).u32(what).text(path, 60'000);
    for (const State& state : states) {
        add(body, state);
    }
    return body;
}
Bytes added(const Bytes& path, const State& state = {}) {
    return record(Kind::Entry, entryBody(Change::Added, 0, path, {state}));
}
Bytes changed(std::uint32_t what, const State& before, const State& after, const Bytes& path = "f") {
    return record(Kind::Entry, entryBody(Change::Changed, what, path, {before, after}));
}
Bytes note(std::uint8_t kind, std::int32_t error = 0) {
    return record(Kind::Note, Body().u8(kind).one(Disk::System).one(Side::A).i32(error).text("x", 10));
}
Bytes progress() {
    return record(Kind::Progress, Body().u64(1).u64(2).u64(3));
}
Bytes totals(std::uint64_t addedFiles = 0, std::uint64_t changedFiles = 0, std::uint64_t notes = 0,
             std::uint64_t addedPackages = 0, std::uint64_t removedPackages = 0) {
    Body body;
    body.u64(addedFiles)
        .u64(0)
        .u64(changedFiles)
        .u64(addedPackages)
        .u64(removedPackages)
        .u64(0)
        .u64(notes)
        .u64(0)
        .u64(0)
        .u64(0);
    return record(Kind::Totals, body);
}
Bytes end(std::uint64_t records) {
    return record(Kind::End, Body().u64(records));
}
Bytes process(std::uint32_t pid, const Bytes& command = "x") {
    return record(Kind::Process, Body().u32(pid).u32(1).u32(0).i64(0).u8(0).text(command, 60'000));
}
Bytes socket() {
    return record(Kind::Socket, Body().one(SocketKind::Tcp).text("::1", 10).u16(22).u32(0).u32(1));
}

/// What came, as words.
class Words : public client::DiffListener {
public:
    std::string all;
    void began(bool isDeep) override { all += isDeep ? "deep " : "begin "; }
    void package(const client::PackageChange& change) override { all += change.name + " "; }
    void diskIs(Disk, DiskState) override { all += "disk "; }
    void entry(const client::DiffEntry& entry) override { all += entry.path + " "; }
    void note(const client::DiffNote&) override { all += "note "; }
    void progress(const client::DiffProgress& seen) override { all += std::to_string(seen.bytes) + " "; }
    void totals(const client::DiffTotals&) override { all += "totals "; }
    void socket(const client::SocketFact& fact) override { all += fact.address + " "; }
    void process(const client::ProcessFact& fact) override { all += std::to_string(fact.pid) + " "; }
};

client::Outcome<void> parse(const Bytes& bytes, Words& words, std::size_t piece, What what = What::Difference) {
    client::DiffParser parser(what, words);
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        if (auto taken = parser.take(std::string_view(bytes).substr(at, piece)); !taken) {
            if (parser.take("x") || parser.finish()) {
                throw std::logic_error("a parser that has refused goes on");
            }
            return taken;
        }
    }
    return parser.finish();
}

} // namespace

class TestDiffStream : public QObject {
    Q_OBJECT

private slots:
    void good() {
        const Bytes stream = begin() + progress() + package("a", "", "1") + package("a", "2", "", "amd64") + disk() +
                             note(3, 5) + added("a", {.type = FileType::Directory}) + added("a/b") + added("a-b") +
                             progress() + changed(kMode, {}, {.mode = 04755}) + disk(Disk::Home, DiskState::NotGiven) +
                             totals(3, 1, 1, 1, 1) + end(13);
        for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, stream.size()}) {
            Words words;
            const auto done = parse(stream, words, piece);
            QVERIFY2(done, done ? "" : done.error().message.c_str());
            // Two packages of one name, "amd64" after "all".
            QCOMPARE(words.all, std::string("begin 3 a a disk note a a/b a-b 3 f disk totals "));
        }
    }

    void goodFacts() {
        Words words;
        const auto done =
            parse(begin(What::Facts) + socket() + process(1) + process(7, Bytes("a\0b\0", 4)) + totals() + end(5),
                  words, 3, What::Facts);
        QVERIFY2(done, done ? "" : done.error().message.c_str());
        QCOMPARE(words.all, std::string("begin ::1 1 7 totals "));
    }

    void cutAnywhere_isSeen() {
        const Bytes stream = begin() + disk() + added("a") + totals(1) + end(4);
        for (std::size_t size = 0; size < stream.size(); ++size) {
            Words words;
            const auto done = parse(stream.substr(0, size), words, 4096);
            QVERIFY(!done);
            QCOMPARE(done.error().code, std::string(client::code::kGuestFailure));
            QVERIFY2(done.error().message.find("stopped before") != std::string::npos, done.error().message.c_str());
        }
    }

    void refused_data() {
        QTest::addColumn<QByteArray>("stream");
        QTest::addColumn<QByteArray>("why");
        QTest::addColumn<int>("what");
        const auto row = [](const char* name, const Bytes& stream, const char* why, What what = What::Difference) {
            QTest::newRow(name) << QByteArray(stream.data(), static_cast<qsizetype>(stream.size())) << QByteArray(why)
                                << static_cast<int>(what);
        };
        const auto entry = [](const Bytes& record) { return begin() + disk() + record; };
        row("no begin", disk(), "does not begin");
        row("text", "hello, world", "too long"); // its size is that of the first four letters
        row("twice begun", begin() + begin(), "begins twice");
        row("another version", begin(What::Difference, 2), "version 2");
        row("something else", begin(What::Facts), "something else");
        row("another thing", begin(What::Difference), "something else", What::Facts);
        row("an unknown kind", begin() + record(99, ""), "kind 99");
        row("kind 0", begin() + record(0, ""), "kind 0");
        row("the longest size", begin() + Bytes("\xff\xff\xff\xff\x04\x00", 6), "4294967295 bytes is too long");
        row("one more than the longest", begin() + Body().u32(kLongestBody + 1).u16(4).bytes(), "too long");
        row("a short body", begin() + record(3, Bytes(1, '\0')), "shorter than its fields");
        row("a long body", begin() + record(3, Bytes("\0\1\0", 3)), "longer than its fields");
        row("behind the end", begin() + disk() + totals() + end(3) + progress(), "behind the end");
        row("a byte behind the end", begin() + disk() + totals() + end(3) + "x", "behind the end");
        row("twice totals", begin() + disk() + totals() + totals(), "twice");
        row("the end without totals", begin() + disk() + end(2), "end at the wrong place");
        row("too few records", begin() + disk() + totals() + end(4), "of 4 records 3 came");
        row("wrong totals", begin() + disk() + added("a") + totals(2), "totals are not");
        row("fewer notes than came", begin() + disk() + note(3) + totals(), "totals are not");
        row("a note behind totals", begin() + disk() + totals() + note(3), "note at the wrong place");
        row("progress behind totals", begin() + disk() + totals() + progress(), "progress at the wrong place");
        row("totals before any disk", begin() + totals(), "totals at the wrong place");

        row("a package behind a disk", begin() + disk() + package("a", "", "1"), "package at the wrong place");
        row("packages not sorted", begin() + package("b", "", "1") + package("a", "", "1"), "not sorted");
        row("a package twice", begin() + package("a", "", "1") + package("a", "", "1"), "not sorted");
        row("a package that is the same", begin() + package("a", "1", "1"), "not changed");
        row("a package without versions", begin() + package("a", "", ""), "not changed");
        row("a package without a name", begin() + package("", "", "1"), "not changed");
        row("a long package", begin() + package(Bytes(257, 'x'), "", "1"), "too long");
        row("a package with a zero byte", begin() + package(Bytes("a\0", 2), "", "1"), "zero byte");

        row("disks not sorted", begin() + disk(Disk::Home) + disk(), "not sorted");
        row("a disk twice", begin() + disk() + disk(), "not sorted");
        row("an unknown disk", begin() + record(3, Bytes("\2\1", 2)), "a disk 2");
        row("an unknown state of a disk", begin() + record(3, Bytes("\0\0", 2)), "state of a disk 0");
        row("a file before a disk", begin() + added("a"), "file at the wrong place");
        row("a file of another disk",
            begin() + disk() + record(Kind::Entry, entryBody(Change::Added, 0, "a", {{}}, Disk::Home)), "not compared");
        row("a file of a disk that was not compared", begin() + disk(Disk::System, DiskState::OnlyA) + added("a"),
            "not compared");

        row("not sorted", entry(added("b") + added("a")), "not sorted");
        row("twice", entry(added("a") + added("a")), "not sorted");
        row("a folder's content behind its sibling", entry(added("a-b") + added("a/b")), "not sorted");
        const std::pair<const char*, Bytes> paths[] = {{"an empty path", ""},
                                                       {"a path from the root", "/a"},
                                                       {"a slash at the end", "a/"},
                                                       {"two slashes", "a//b"},
                                                       {"a dot", "a/./b"},
                                                       {"up", "a/.."},
                                                       {"only up", ".."},
                                                       {"a long name", Bytes(256, 'x')}};
        for (const auto& [name, path] : paths) {
            row(name, entry(added(path)), "path has a part that is none");
        }
        Bytes deep = "x";
        while (deep.size() <= kLongestPath) {
            deep += "/x";
        }
        row("a long path", entry(added(deep)), "too long");
        row("a path with a zero byte", entry(added(Bytes("a\0b", 3))), "zero byte");

        row("an unknown change", entry(record(4, Bytes("\0\4\0\0\0\0", 6))), "a change 4");
        row("bits of a new file", entry(record(Kind::Entry, entryBody(Change::Added, kMode, "a", {{}}))),
            "makes no sense");
        row("no bits", entry(changed(0, {}, {})), "makes no sense");
        row("an unknown bit", entry(changed(128, {}, {})), "makes no sense");
        row("the same mode", entry(changed(kMode, {}, {})), "makes no sense");
        row("another mode, not said", entry(changed(kContent, {}, {.mode = 0600})), "makes no sense");
        row("another owner, not said", entry(changed(kContent, {}, {.uid = 1})), "makes no sense");
        row("another type, not said", entry(changed(kContent, {}, {.type = FileType::Fifo})), "makes no sense");
        row("another size, not said", entry(changed(kAttributes, {}, {.size = 1})), "makes no sense");
        row("the content of a folder",
            entry(changed(kContent, {.type = FileType::Directory}, {.type = FileType::Directory})), "makes no sense");
        row("a target of files", entry(changed(kTarget, {}, {})), "makes no sense");
        row("an unknown type", entry(added("a", {.type = static_cast<FileType>(8)})), "type of file 8");
        row("a large mode", entry(added("a", {.mode = 010000})), "makes no sense");
        row("a second and more", entry(added("a", {.nanoseconds = 1'000'000'000})), "makes no sense");
        row("a device number of a file", entry(added("a", {.deviceMajor = 8})), "makes no sense");
        row("a target of a file", entry(added("a", {.target = "b"})), "makes no sense");
        row("a long target", entry(added("a", {.type = FileType::Link, .target = Bytes(4097, 'x')})), "too long");
        row("one state of two", entry(record(Kind::Entry, entryBody(Change::Changed, kMode, "a", {{}}))), "shorter");
        row("two states of one", entry(record(Kind::Entry, entryBody(Change::Added, 0, "a", {{}, {}}))), "longer");

        row("an unknown note", begin() + note(0), "a note 0");
        row("a note of the future", begin() + note(14), "a note 14");
        row("no error", begin() + note(3, -1), "error makes no sense");
        row("a large error", begin() + note(3, 4096), "error makes no sense");
        Bytes notes = begin();
        for (std::uint64_t i = 0; i <= kMostNotes; ++i) {
            notes += note(3);
        }
        row("too many notes", notes, "too many notes");

        row("a file among facts", begin(What::Facts) + added("a"), "file at the wrong place", What::Facts);
        row("a socket among files", begin() + socket(), "socket at the wrong place");
        row("processes not sorted", begin(What::Facts) + process(2) + process(1), "not sorted", What::Facts);
        row("process 0", begin(What::Facts) + process(0), "not sorted", What::Facts);
        row("a socket behind a process", begin(What::Facts) + process(1) + socket(), "socket at the wrong place",
            What::Facts);
        row("a long command", begin(What::Facts) + process(1, Bytes(201, 'x')), "too long", What::Facts);
        Bytes many = begin(What::Facts);
        for (std::uint32_t pid = 1; many.size() <= kLongestFacts; ++pid) {
            many += process(pid, Bytes(200, 'x'));
        }
        row("more facts than allowed", many, "it is too long", What::Facts);
    }
    void refused() {
        QFETCH(QByteArray, stream);
        QFETCH(QByteArray, why);
        QFETCH(int, what);
        const Bytes bytes = stream.toStdString();
        for (const std::size_t piece : {std::size_t{1}, bytes.size()}) {
            Words words;
            const auto done = parse(bytes, words, piece, static_cast<What>(what));
            QVERIFY(!done);
            QCOMPARE(done.error().code, std::string(client::code::kGuestFailure));
            QVERIFY2(QByteArray::fromStdString(done.error().message).contains(why), done.error().message.c_str());
        }
    }

    void manyEntries_mayBeCountedOnly() {
        Words words;
        const auto done =
            parse(begin() + disk() + added("a") + note(static_cast<std::uint8_t>(NoteKind::TooManyEntries)) +
                      totals(5, 0, 1) + end(5),
                  words, 4096);
        QVERIFY2(done, done ? "" : done.error().message.c_str());
    }

    void order_data() {
        QTest::addColumn<QByteArray>("a");
        QTest::addColumn<QByteArray>("b");
        QTest::newRow("folder and content") << QByteArray("a") << QByteArray("a/b");
        QTest::newRow("content and sibling") << QByteArray("a/b") << QByteArray("a\x01");
        QTest::newRow("bytes are not signed") << QByteArray("a") << QByteArray("\xff");
        QTest::newRow("the first") << QByteArray("") << QByteArray("a");
    }
    void order() {
        QFETCH(QByteArray, a);
        QFETCH(QByteArray, b);
        QVERIFY(client::isPathBefore(a.toStdString(), b.toStdString()));
        QVERIFY(!client::isPathBefore(b.toStdString(), a.toStdString()));
        QVERIFY(!client::isPathBefore(a.toStdString(), a.toStdString()));
    }
};

QTEST_GUILESS_MAIN(TestDiffStream)
#include "tst_diff_stream.moc"
