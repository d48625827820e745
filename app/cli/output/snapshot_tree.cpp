// SPDX-License-Identifier: Apache-2.0
#include "cli/output/snapshot_tree.hpp"

#include "cli/output/describe.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

#include <QSet>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstring>
#include <langinfo.h>
#include <locale.h> // NOLINT(modernize-deprecated-headers): newlocale
#include <vector>

namespace bulkhead::cli {
namespace {

using client::DomainInfo;
using client::SnapshotInfo;

struct Glyphs {
    const char* node;
    const char* fork;
    const char* here;
    const char* branch; ///< something leaves to the right
    const char* last;   ///< and nothing follows below
    const char* down;
};
constexpr Glyphs kUtf8{"● ", "○ ", "◉ ", "├─", "└─", "│ "};
constexpr Glyphs kAscii{"* ", "o ", "@ ", "|-", "`-", "| "};

/// Another domain that leaves a node of the tree.
struct Fork {
    QString domain;
    QString from;
    qsizetype snapshots = 0; ///< how many come from there
};

struct Line {
    std::string left;
    const SnapshotInfo* node = nullptr;
};

/// What of the lineage belongs to a domain's tree.
class Tree {
public:
    Tree(const Lineage& lineage, const DomainInfo& domain)
        : m_lineage(lineage)
        , m_domain(domain) {
        for (const auto& snapshot : lineage.snapshots) {
            m_byId.insert(snapshot.id, &snapshot);
        }
        for (const auto& snapshot : lineage.snapshots) {
            if (snapshot.domain == domain.path) {
                takeWithAncestors(snapshot.id);
            }
        }
        takeWithAncestors(domain.head);
        for (QString at = domain.head; m_members.contains(at) && !m_way.contains(at); at = m_byId[at]->parent) {
            m_way.insert(at);
        }
    }

    [[nodiscard]] bool isEmpty() const { return m_members.isEmpty(); }
    [[nodiscard]] bool isOnTheWay(const QString& id) const { return m_way.contains(id); }
    [[nodiscard]] bool isHead(const QString& id) const { return id == m_domain.head; }

    /// Members without a parent among them, or those that come from one.
    [[nodiscard]] std::vector<const SnapshotInfo*> below(const SnapshotInfo* parent) const {
        std::vector<const SnapshotInfo*> nodes;
        for (const auto& snapshot : m_lineage.snapshots) { // in the order of their time
            const bool isRoot = !m_members.contains(snapshot.parent);
            if (m_members.contains(snapshot.id) && (parent == nullptr ? isRoot : snapshot.parent == parent->id)) {
                nodes.push_back(&snapshot);
            }
        }
        return nodes;
    }

    [[nodiscard]] std::vector<Fork> forksAt(const SnapshotInfo& node) const {
        std::vector<Fork> forks;
        const auto forkOf = [&](const QString& name) -> Fork& {
            const auto known =
                std::find_if(forks.begin(), forks.end(), [&](const Fork& fork) { return fork.domain == name; });
            return known != forks.end() ? *known : forks.emplace_back(Fork{name, node.id});
        };
        for (const auto& child : m_lineage.childrenOf(node.id)) {
            if (!m_members.contains(child.id)) {
                forkOf(m_lineage.domainNameOf(child)).snapshots += countFrom(child);
            }
        }
        for (const QString& name : m_lineage.standingAt(node.id)) {
            if (name != m_domain.name) {
                forkOf(name);
            }
        }
        return forks;
    }

    [[nodiscard]] bool isForeign(const SnapshotInfo& node) const { return node.domain != m_domain.path; }

private:
    void takeWithAncestors(QString id) {
        while (m_byId.contains(id) && !m_members.contains(id)) {
            m_members.insert(id);
            id = m_byId[id]->parent;
        }
    }

    [[nodiscard]] qsizetype countFrom(const SnapshotInfo& node) const {
        QSet<QString> seen;
        std::vector<QString> open{node.id};
        while (!open.empty()) {
            const QString id = open.back();
            open.pop_back();
            if (seen.contains(id)) {
                continue;
            }
            seen.insert(id);
            for (const auto& child : m_lineage.childrenOf(id)) {
                open.push_back(child.id);
            }
        }
        return seen.size();
    }

    const Lineage& m_lineage;
    const DomainInfo& m_domain;
    QHash<QString, const SnapshotInfo*> m_byId;
    QSet<QString> m_members;
    QSet<QString> m_way; ///< from a root to where the domain stands
};

std::string hereText(const DomainInfo& domain) {
    return domain.waitsSuspended() ? "you are here (suspended: the next start goes on from there)"
                                   : "you are here (" + client::terminalSafe(domain.state) + ")";
}

std::string forkText(const Fork& fork) {
    const std::string name = client::terminalSafe(fork.domain);
    return fork.snapshots == 0   ? name + " stands here"
           : fork.snapshots == 1 ? name + " goes on from here: 1 snapshot"
                                 : name + " goes on from here: " + std::to_string(fork.snapshots) + " snapshots";
}

/// Puts the lines of a tree together.
class Drawing {
public:
    Drawing(const Tree& tree, const DomainInfo& domain, const Glyphs& glyphs)
        : m_tree(tree)
        , m_domain(domain)
        , m_glyphs(glyphs) {}

    /// `node` and all below it. `first`: what stands before the glyph of its line; `rest`: before all others.
    void draw(const SnapshotInfo* node, std::string first, const std::string& rest) {
        while (node != nullptr) { // a loop along the straight line, so that a long lineage is no deep recursion
            m_lines.push_back({first + m_glyphs.node + client::terminalSafe(client::shortId(node->id)), node});
            first = rest;
            std::vector<const SnapshotInfo*> children = m_tree.below(node);
            const SnapshotInfo* next = takeNext(children, m_tree.isHead(node->id));
            const bool goesOn = next != nullptr || m_tree.isHead(node->id);
            const std::vector<Fork> forks = m_tree.forksAt(*node);
            std::size_t left = forks.size() + children.size();
            const auto branch = [&] { return rest + (--left > 0 || goesOn ? m_glyphs.branch : m_glyphs.last); };
            for (const Fork& fork : forks) {
                m_lines.push_back({branch() + m_glyphs.fork + forkText(fork), nullptr});
            }
            for (const SnapshotInfo* child : children) {
                const std::string start = branch();
                draw(child, start, rest + (left > 0 || goesOn ? m_glyphs.down : "  "));
            }
            if (m_tree.isHead(node->id)) {
                drawHere(rest);
            }
            node = next;
        }
    }

    void drawHere(const std::string& before) {
        m_lines.push_back({before + m_glyphs.here + hereText(m_domain), nullptr});
    }

    [[nodiscard]] const std::vector<Line>& lines() const { return m_lines; }

private:
    /// Takes out of `children` the one that goes on straight: the one on the way, else the newest. At the head nothing
    /// does: what is there now goes on.
    const SnapshotInfo* takeNext(std::vector<const SnapshotInfo*>& children, bool isHead) const {
        if (children.empty() || isHead) {
            return nullptr;
        }
        const auto onTheWay = std::find_if(children.begin(), children.end(),
                                           [&](const auto* child) { return m_tree.isOnTheWay(child->id); });
        const auto chosen = onTheWay == children.end() ? std::prev(children.end()) : onTheWay;
        const SnapshotInfo* next = *chosen;
        children.erase(chosen);
        return next;
    }

    const Tree& m_tree;
    const DomainInfo& m_domain;
    const Glyphs& m_glyphs;
    std::vector<Line> m_lines;
};

std::string padded(const std::string& text, std::size_t width) {
    const std::size_t taken = client::textWidth(text);
    return text + std::string(width > taken ? width - taken : 0, ' ');
}

/// Cells of equal width in all lines, and the words behind them.
std::array<std::string, 3> cellsOf(const Lineage& lineage, const SnapshotInfo& node) {
    return {client::terminalSafe(node.kind), timeAndAge(node.createdAt, lineage.now), bytesText(node.sizeOnDisk)};
}

std::string wordsOf(const Lineage& lineage, const Tree& tree, const SnapshotInfo& node) {
    std::string words = client::terminalSafe(node.reason);
    const auto add = [&words](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
    if (!node.label.isEmpty()) {
        add("\"" + client::terminalSafe(node.label) + "\"");
    }
    if (node.isPinned) {
        add("pinned");
    }
    if (tree.isForeign(node)) {
        add("of " + client::terminalSafe(lineage.domainNameOf(node)));
    }
    if (!node.suspect.isEmpty()) {
        add("SUSPECT: " + client::terminalSafe(node.suspect));
    }
    return words;
}

std::string textOf(const Lineage& lineage, const Tree& tree, const std::vector<Line>& lines) {
    std::size_t left = 0;
    std::array<std::size_t, 3> widths{};
    for (const Line& line : lines) {
        if (line.node == nullptr) {
            continue;
        }
        left = std::max(left, client::textWidth(line.left));
        const auto cells = cellsOf(lineage, *line.node);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            widths[i] = std::max(widths[i], client::textWidth(cells[i]));
        }
    }
    std::string out;
    for (const Line& line : lines) {
        if (line.node == nullptr) {
            out += line.left + "\n";
            continue;
        }
        std::string row = padded(line.left, left + 2);
        const auto cells = cellsOf(lineage, *line.node);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            row += padded(cells[i], widths[i] + 2);
        }
        row += wordsOf(lineage, tree, *line.node);
        row.erase(row.find_last_not_of(' ') + 1);
        out += row + "\n";
    }
    return out;
}

} // namespace

std::string treeText(const Lineage& lineage, const DomainInfo& domain, bool isUtf8) {
    const std::string name = client::terminalSafe(domain.name);
    const Tree tree(lineage, domain);
    if (tree.isEmpty()) {
        return "Domain " + name + " has no snapshots yet. Take one: bulkhead snapshot create " + name + "\n";
    }
    Drawing drawing(tree, domain, isUtf8 ? kUtf8 : kAscii);
    bool isHereDrawn = false;
    for (const SnapshotInfo* root : tree.below(nullptr)) {
        drawing.draw(root, {}, {});
        isHereDrawn = isHereDrawn || tree.isOnTheWay(root->id);
    }
    if (!isHereDrawn) {
        drawing.drawHere({}); // it comes from none of them
    }
    return name + "\n" + textOf(lineage, tree, drawing.lines());
}

Json treeJson(const Lineage& lineage, const DomainInfo& domain) {
    const Tree tree(lineage, domain);
    Json nodes = Json::array();
    Json forks = Json::array();
    std::vector<const SnapshotInfo*> open = tree.below(nullptr);
    std::reverse(open.begin(), open.end());
    while (!open.empty()) {
        const SnapshotInfo* node = open.back();
        open.pop_back();
        nodes.push_back(jsonOf(lineage, *node));
        for (const Fork& fork : tree.forksAt(*node)) {
            forks.push_back(Json{{"domain", fork.domain.toStdString()},
                                 {"from", fork.from.toStdString()},
                                 {"snapshots", fork.snapshots}});
        }
        const auto children = tree.below(node);
        open.insert(open.end(), children.rbegin(), children.rend());
    }
    return Json{{"domain", domain.name.toStdString()},
                {"state", domain.state.toStdString()},
                {"head", domain.head.isEmpty() ? Json(nullptr) : Json(domain.head.toStdString())},
                {"suspended", domain.isSuspended},
                {"nodes", nodes},
                {"forks", forks}};
}

bool isUtf8Locale() {
    // Not the process's own locale: Qt makes that UTF-8, whatever the terminal shows.
    const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr);
    if (locale == nullptr) {
        return false;
    }
    const bool isUtf8 = std::strcmp(::nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    ::freelocale(locale);
    return isUtf8;
}

} // namespace bulkhead::cli
