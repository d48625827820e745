// SPDX-License-Identifier: Apache-2.0
#include "cli/grammar/snapshot_grammar.hpp"

namespace bulkhead::cli::grammar {
namespace {

constexpr const char* kNounFooter =
    R"(A snapshot is called by its label, by its id, or by at least 4 digits of its beginning that no other one begins with.

Examples:
  bulkhead snapshot create work --label "before the update"
  bulkhead snapshot tree work
  bulkhead snapshot revert work "before the update")";

constexpr const char* kRevertFooter =
    "What is there now is kept as a snapshot first, and named at the end, so that nothing is lost. A domain that runs "
    "goes\n"
    "on from the snapshot; one that is stopped goes on from it at its next start. The snapshot stays.";

constexpr const char* kForkFooter = "The new domain is not started. It and its source go their own ways from there. A "
                                    "word that is the name of a domain\n"
                                    "means that domain as it is now.";

constexpr const char* kDiffFooter =
    "A disposable domain looks into both, and what it finds is listed: added (+), removed (-) and changed (~) files "
    "and\n"
    "packages. What it says is a guest's word. Files that look untouched since both were one are not read, unless "
    "--deep:\n"
    "who was root in there can make a file look so. A damaged disk may show less than it had. With \"now\" a snapshot\n"
    "without the memory is taken first, which goes by itself later.";

constexpr const char* kWithoutMemory = "The disks alone, without the memory: it boots";

} // namespace

void SnapshotGrammar::addTo(CLI::App& app, Verbs& verbs) {
    CLI::App* noun =
        app.add_subcommand("snapshot", "Keep what a domain is at one moment, go back to it, and branch off from it");
    noun->require_subcommand(0, 1);
    addTaking(noun, verbs);
    addReading(noun, verbs);
    addGoing(noun, verbs);
    addComparing(noun, verbs);
    addKeeping(noun, verbs);
    noun->footer(kNounFooter); // last: verbs made after it would inherit it
}

void SnapshotGrammar::addTaking(CLI::App* noun, Verbs& verbs) {
    CLI::App* verb = addVerb(noun, "create", "Take a snapshot of a domain, which goes on undisturbed", m_create.json);
    addText(verb, "DOMAIN", m_create.domain, "", "The domain")->required();
    verb->add_flag("--disk", m_create.isDiskOnly, "The disks alone, without the memory of a running domain");
    addText(verb, "--reason", m_create.reason, "TEXT", "Why, for people (default: manual)");
    addText(verb, "--label", m_create.label, "TEXT", "A name for it");
    verbs.emplace_back(verb, [this] { return Invocation(m_create); });
}

void SnapshotGrammar::addReading(CLI::App* noun, Verbs& verbs) {
    CLI::App* verb = addVerb(noun, "ls", "List your snapshots, also those of domains that are gone", m_list.json);
    addText(verb, "DOMAIN", m_list.domain, "", "Those of this domain only");
    verbs.emplace_back(verb, [this] { return Invocation(m_list); });

    verb = addVerb(noun, "tree", "Show how the snapshots of a domain come from each other, and where it stands",
                   m_tree.json);
    addText(verb, "DOMAIN", m_tree.domain, "", "The domain")->required();
    verbs.emplace_back(verb, [this] { return Invocation(m_tree); });

    verb = addVerb(noun, "show", "Show one snapshot", m_show.json);
    addText(verb, "ID", m_show.id, "", "The snapshot")->required();
    verbs.emplace_back(verb, [this] { return Invocation(m_show); });
}

void SnapshotGrammar::addGoing(CLI::App* noun, Verbs& verbs) {
    CLI::App* verb = addVerb(noun, "revert", "Make a domain what it was at a snapshot", m_revert.json);
    addText(verb, "DOMAIN", m_revert.domain, "", "The domain")->required();
    addText(verb, "ID", m_revert.id, "", "One of its snapshots")->required();
    verb->add_flag("--disk", m_revert.isDiskOnly, kWithoutMemory);
    verb->add_flag("--no-keep", m_revert.isDiscarding, "Throw away what is there now, without a snapshot of it");
    verb->footer(kRevertFooter);
    verbs.emplace_back(verb, [this] { return Invocation(m_revert); });

    verb = addVerb(noun, "fork", "Create a domain that begins where a snapshot or a domain stands", m_fork.json);
    addText(verb, "ID|DOMAIN", m_fork.from, "", "The snapshot, or the domain as it is now")->required();
    addText(verb, "NAME", m_fork.name, "", "The new domain's name: a-z, 0-9 and -, beginning with a letter")
        ->required();
    addText(verb, "--egress", m_fork.egress, "PROFILE", "What it may reach on the network (default: as its source)");
    addText(verb, "--label", m_fork.label, "LABEL", "The label on its windows (default: as its source)");
    verb->add_flag("--disk", m_fork.isDiskOnly, kWithoutMemory);
    verb->footer(kForkFooter);
    verbs.emplace_back(verb, [this] { return Invocation(m_fork); });
}

void SnapshotGrammar::addComparing(CLI::App* noun, Verbs& verbs) {
    CLI::App* verb = addVerb(noun, "diff", "Show in which files and packages two snapshots differ", m_diff.json);
    addText(verb, "DOMAIN", m_diff.domain, "", "The domain, whose snapshots are meant first")->required();
    addText(verb, "A", m_diff.from, "", "The earlier snapshot")->required();
    addText(verb, "B|now", m_diff.to, "", "The later one, or the domain as it is now")->required();
    verb->add_flag("--deep", m_diff.isDeep, "Read all files, also those that look untouched");
    verb->add_flag("--all", m_diff.isAll, "List however many there are");
    verb->footer(kDiffFooter);
    verbs.emplace_back(verb, [this] { return Invocation(m_diff); });
}

void SnapshotGrammar::addKeeping(CLI::App* noun, Verbs& verbs) {
    CLI::App* verb = addVerb(noun, "pin", "Keep a snapshot until you remove it yourself", m_pin.json);
    addText(verb, "ID", m_pin.id, "", "The snapshot")->required();
    verbs.emplace_back(verb, [this] { return Invocation(m_pin); });

    verb = addVerb(noun, "unpin", "Let a pinned snapshot be removed with the other old ones", m_unpin.json);
    addText(verb, "ID", m_unpin.id, "", "The snapshot")->required();
    verbs.emplace_back(verb, [this] { return Invocation(m_unpin); });

    verb = addVerb(noun, "label", "Give a snapshot a name", m_label.json);
    addText(verb, "ID", m_label.id, "", "The snapshot")->required();
    verb->add_option("TEXT", m_label.label, "Its name; '' for none")->required()->type_name("");
    verbs.emplace_back(verb, [this] { return Invocation(m_label); });

    verb = addVerb(noun, "rm", "Remove a snapshot", m_remove.json);
    addText(verb, "ID", m_remove.id, "", "The snapshot")->required();
    verb->add_flag("--cascade", m_remove.isCascade, "With all that come from it");
    verbs.emplace_back(verb, [this] { return Invocation(m_remove); });
}

} // namespace bulkhead::cli::grammar
