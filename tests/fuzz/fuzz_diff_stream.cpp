// SPDX-License-Identifier: Apache-2.0
// What an inspector guest may write. The first byte chooses what is expected and how the rest is cut into pieces.
#include "client/diff_stream.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

using namespace bulkhead;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

/// What is told keeps to the limits and the order.
class Judge : public client::DiffListener {
public:
    std::string told;

    void package(const client::PackageChange& change) override {
        require(!change.name.empty() && change.before != change.after);
        told += change.name;
    }
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState) override {
        require(!m_disk || *m_disk < disk);
        m_disk = disk;
        m_last.clear();
        told += 'd';
    }
    void entry(const client::DiffEntry& entry) override {
        require(entry.disk == m_disk && client::isPathBefore(m_last, entry.path));
        require(entry.path.size() <= diff_stream::kLongestPath && entry.path.find('\0') == std::string::npos);
        require(("/" + entry.path + "/").find("/../") == std::string::npos);
        require(entry.before.has_value() == (entry.change != diff_stream::Change::Added));
        require(entry.after.has_value() == (entry.change != diff_stream::Change::Removed));
        require((entry.what != 0) == (entry.change == diff_stream::Change::Changed));
        m_last = entry.path;
        told += entry.path;
    }
    void note(const client::DiffNote& note) override { told += note.path; }
    void totals(const client::DiffTotals&) override { told += 't'; }
    void process(const client::ProcessFact& process) override {
        require(process.command.size() <= diff_stream::kLongestCommand);
        told += process.command;
    }

private:
    std::optional<diff_stream::Disk> m_disk;
    std::string m_last;
};

std::string parse(std::string_view bytes, std::size_t piece, diff_stream::What what, bool& isWhole) {
    Judge judge;
    client::DiffParser parser(what, judge);
    bool isGood = true;
    for (std::size_t at = 0; at < bytes.size() && isGood; at += piece) {
        isGood = parser.take(bytes.substr(at, piece)).has_value();
    }
    isWhole = parser.finish().has_value();
    require(!isWhole || (isGood && parser.hasEnded()));
    return judge.told;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto what = (data[0] & 1U) != 0 ? diff_stream::What::Facts : diff_stream::What::Difference;
    bool isWhole = false;
    bool isWholeInPieces = false;
    const std::string told = parse(bytes, bytes.size() + 1, what, isWhole);
    // However it is cut, it says the same.
    require(told == parse(bytes, 1U + data[0] / 2U, what, isWholeInPieces) && isWhole == isWholeInPieces);
    return 0;
}
