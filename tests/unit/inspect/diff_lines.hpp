// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/diff_stream.hpp"

#include <QStringList>

#include <string>
#include <utility>
#include <vector>

namespace bulkhead::tests {

/// What stands in a stream, a line each: "+ path", "~ path content mode", "package name 1 -> 2", "note KIND SIDE path".
/// Bytes are shown as Latin-1, so that none is lost.
class DiffLines : public client::DiffListener {
public:
    QStringList files;
    QStringList packages;
    QStringList notes;
    QStringList disks;
    client::DiffTotals sum;
    std::vector<client::DiffEntry> entries;
    std::vector<client::SocketFact> sockets;
    std::vector<client::ProcessFact> processes;
    bool isCut = false;
    bool keepsEntries = true;
    std::size_t count = 0;

    void package(const client::PackageChange& change) override {
        packages.append(latin(change.name + ":" + change.architecture + " " + change.before + " -> " + change.after));
    }
    void diskIs(diff_stream::Disk disk, diff_stream::DiskState state) override {
        disks.append(QString("%1 %2").arg(static_cast<int>(disk)).arg(static_cast<int>(state)));
    }
    void entry(const client::DiffEntry& entry) override {
        ++count;
        if (!keepsEntries) {
            return;
        }
        entries.push_back(entry);
        const char* const mark = entry.change == diff_stream::Change::Added     ? "+ "
                                 : entry.change == diff_stream::Change::Removed ? "- "
                                                                                : "~ ";
        files.append(mark + latin(entry.path) + words(entry.what));
    }
    void note(const client::DiffNote& note) override {
        notes.append(QString("%1 %2 ").arg(static_cast<int>(note.kind)).arg(static_cast<int>(note.side)) +
                     latin(note.path));
        isCut = isCut || note.kind == diff_stream::NoteKind::FactsCut;
    }
    void totals(const client::DiffTotals& totals) override { sum = totals; }
    void socket(const client::SocketFact& socket) override { sockets.push_back(socket); }
    void process(const client::ProcessFact& process) override { processes.push_back(process); }

    static QString latin(const std::string& bytes) {
        return QString::fromLatin1(bytes.data(), static_cast<qsizetype>(bytes.size()));
    }
    static QString words(std::uint32_t what) {
        QString text;
        const std::pair<std::uint32_t, const char*> bits[] = {
            {diff_stream::kContent, " content"}, {diff_stream::kMode, " mode"},
            {diff_stream::kOwner, " owner"},     {diff_stream::kType, " type"},
            {diff_stream::kTarget, " target"},   {diff_stream::kAttributes, " attributes"},
            {diff_stream::kDevice, " device"}};
        for (const auto& [bit, word] : bits) {
            text += (what & bit) != 0 ? word : "";
        }
        return text;
    }
};

} // namespace bulkhead::tests
