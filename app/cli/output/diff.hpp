// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/json.hpp"
#include "client/diff_stream.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What `snapshot diff` prints, while it comes. All texts are a guest's and made safe for a terminal.
namespace bulkhead::cli {

/// Takes a piece of the output; false: nobody reads it.
using DiffWriter = std::function<bool(const std::string&)>;

/// The end of what is printed, the same for people and programs. A failure says why it is not whole.
class DiffOutput : public client::DiffListener {
public:
    /// Once, at the last. `failure`: why what came is not all; null: it is.
    virtual void finish(const client::Failure* failure) = 0;
    /// Nobody reads what is written.
    [[nodiscard]] bool isBroken() const { return m_isBroken; }

protected:
    explicit DiffOutput(DiffWriter writer)
        : m_writer(std::move(writer)) {}
    /// In pieces of some 64 KiB.
    void write(std::string_view text);
    void flush();

private:
    DiffWriter m_writer;
    std::string m_buffer;
    bool m_isBroken = false;
};

/// For people: packages, then the files of each disk, then what could not be compared, then how many. At most so many
/// lines of packages and files; the rest is counted.
class DiffText : public DiffOutput {
public:
    static constexpr std::size_t kMostLines = 2000;
    /// `title` is safe text.
    DiffText(DiffWriter writer, const std::string& title, bool isUnlimited);

    void package(const client::PackageChange& change) override;
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState state) override;
    void entry(const client::DiffEntry& entry) override;
    void note(const client::DiffNote& note) override;
    void totals(const client::DiffTotals& totals) override;
    void finish(const client::Failure* failure) override;

private:
    /// False: there are enough lines.
    bool mayList();
    void head(const std::string& line);

    bool m_isUnlimited;
    std::size_t m_lines = 0;
    std::uint64_t m_leftOut = 0;
    std::uint64_t m_seen = 0;
    std::string m_head; ///< of a group that has no line yet
    std::vector<std::string> m_notes;
    std::uint64_t m_notesSeen = 0;
    bool m_isUncertain = false; ///< something could not be compared
    client::DiffTotals m_totals;
};

/// For programs: one object, written while it comes, so that nothing but notes is held. Whatever happens it is closed:
/// "complete" is false then, and "error" says why.
class DiffJson : public DiffOutput {
public:
    /// `about`: the first members of the object.
    DiffJson(DiffWriter writer, const Json& about);

    void package(const client::PackageChange& change) override;
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState state) override;
    void entry(const client::DiffEntry& entry) override;
    void note(const client::DiffNote& note) override;
    void totals(const client::DiffTotals& totals) override;
    void finish(const client::Failure* failure) override;

private:
    void element(const Json& value);
    void beginFiles();

    bool m_isFirst = true;
    bool m_hasFiles = false; ///< packages are closed
    Json m_disks = Json::array();
    Json m_notes = Json::array();
    Json m_totals;
};

/// A file's path as the guest would call it: with the place where its disk is.
std::string guestPath(diff_stream::Disk disk, std::string_view path);
/// A note as a sentence, safe.
std::string noteText(const client::DiffNote& note);

} // namespace bulkhead::cli
