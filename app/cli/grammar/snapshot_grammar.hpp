// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/grammar/parts.hpp"

namespace bulkhead::cli::grammar {

/// The noun `snapshot`, with the places its values go to. Neither copied nor moved once it is in an app.
class SnapshotGrammar {
public:
    SnapshotGrammar() = default;
    SnapshotGrammar(const SnapshotGrammar&) = delete;
    SnapshotGrammar& operator=(const SnapshotGrammar&) = delete;

    void addTo(CLI::App& app, Verbs& verbs);

private:
    void addTaking(CLI::App* noun, Verbs& verbs);
    void addReading(CLI::App* noun, Verbs& verbs);
    void addGoing(CLI::App* noun, Verbs& verbs);
    void addComparing(CLI::App* noun, Verbs& verbs);
    void addKeeping(CLI::App* noun, Verbs& verbs);

    SnapshotCreateArguments m_create;
    SnapshotListArguments m_list;
    SnapshotTreeArguments m_tree;
    SnapshotShowArguments m_show;
    SnapshotRevertArguments m_revert;
    SnapshotForkArguments m_fork;
    SnapshotDiffArguments m_diff;
    SnapshotPinArguments m_pin{.isPinned = true};
    SnapshotPinArguments m_unpin;
    SnapshotLabelArguments m_label;
    SnapshotRemoveArguments m_remove;
};

} // namespace bulkhead::cli::grammar
