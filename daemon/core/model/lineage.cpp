// SPDX-License-Identifier: Apache-2.0
#include "core/model/lineage.hpp"

#include "core/model/domain.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace bulkhead::core {
namespace {

constexpr std::array<std::string_view, 6> kAutomaticReasons{kReasonBeforeRevert, kReasonBeforeUpgrade, kReasonOnStop,
                                                            kReasonSuspend,      kReasonFork,          kReasonDiff};

bool isPresent(const SnapshotRecord& record) {
    return record.phase == SnapshotRecord::Phase::Present;
}

const SnapshotRecord* findAny(const Lineage& lineage, const SnapshotId& id) {
    const auto found =
        std::find_if(lineage.begin(), lineage.end(), [&](const SnapshotRecord& record) { return record.id == id; });
    return found == lineage.end() ? nullptr : &*found;
}

bool contains(const std::vector<SnapshotId>& ids, const SnapshotId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool liesIn(const std::filesystem::path& file, const std::filesystem::path& folder) {
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    return end == folder.end() && rest != file.end();
}

bool hasPresentChild(const Lineage& lineage, const SnapshotId& id) {
    return std::any_of(lineage.begin(), lineage.end(),
                       [&](const SnapshotRecord& record) { return isPresent(record) && record.parent == id; });
}

} // namespace

const SnapshotRecord* findPresent(const Lineage& lineage, const SnapshotId& id) {
    const SnapshotRecord* const found = findAny(lineage, id);
    return found != nullptr && isPresent(*found) ? found : nullptr;
}

std::vector<SnapshotId> withDescendants(const Lineage& lineage, const SnapshotId& id) {
    std::vector<SnapshotId> found;
    if (findPresent(lineage, id) == nullptr) {
        return found;
    }
    found.push_back(id);
    // A removed node has no present children: its children's parent is moved up with its removal.
    for (std::size_t at = 0; at < found.size(); ++at) {
        for (const SnapshotRecord& record : lineage) {
            if (isPresent(record) && record.parent == found[at] && !contains(found, record.id)) {
                found.push_back(record.id);
            }
        }
    }
    return found;
}

Result<std::vector<SnapshotId>> nodesToRemove(const Lineage& lineage, const SnapshotId& id, bool isCascade,
                                              const std::vector<SnapshotId>& suspendedIn,
                                              const std::vector<SnapshotId>& livedIn) {
    if (findPresent(lineage, id) == nullptr) {
        return fail(ErrorCode::NotFound, "no such snapshot");
    }
    auto nodes = withDescendants(lineage, id);
    if (nodes.size() > 1 && !isCascade) {
        return fail(ErrorCode::WrongState, "snapshot " + shortId(id) + " has " + std::to_string(nodes.size() - 1) +
                                               " below it; remove them first, or all of them with --cascade");
    }
    for (const SnapshotId& node : nodes) {
        if (findPresent(lineage, node)->isPinned) {
            return fail(ErrorCode::WrongState, "snapshot " + shortId(node) +
                                                   " is pinned; unpin it first: bulkhead snapshot unpin " +
                                                   shortId(node));
        }
        if (contains(suspendedIn, node)) {
            return fail(ErrorCode::WrongState, "a domain is suspended in snapshot " + shortId(node) +
                                                   "; resume it, or throw its memory away with domain stop, first");
        }
        if (contains(livedIn, node)) {
            return fail(ErrorCode::WrongState, "a disposable domain that began in snapshot " + shortId(node) +
                                                   " is there still; end or remove it first (bulkhead domain ls)");
        }
    }
    return nodes;
}

std::vector<SnapshotId> nodesOfGone(const Lineage& lineage, const DomainId& disposable,
                                    const std::vector<SnapshotId>& keep) {
    std::vector<SnapshotId> gone; // children first
    const auto mayGo = [&](const SnapshotRecord& record) {
        return isPresent(record) && record.domain == disposable && record.reason == kReasonSuspend &&
               record.label.empty() && !record.isPinned && !contains(keep, record.id) && !contains(gone, record.id) &&
               std::none_of(lineage.begin(), lineage.end(), [&](const SnapshotRecord& child) {
                   return isPresent(child) && child.parent == record.id && !contains(gone, child.id);
               });
    };
    for (bool isProgress = true; isProgress;) {
        isProgress = false;
        for (const SnapshotRecord& record : lineage) {
            if (mayGo(record)) {
                gone.push_back(record.id);
                isProgress = true;
            }
        }
    }
    std::reverse(gone.begin(), gone.end());
    return gone;
}

std::vector<DomainId> goneDisposables(const Lineage& lineage, const std::vector<DomainId>& known) {
    std::vector<DomainId> gone;
    for (const SnapshotRecord& record : lineage) {
        const bool isLeft =
            isPresent(record) && record.reason == kReasonSuspend && record.domainName == disposableName(record.domain);
        if (isLeft && std::find(known.begin(), known.end(), record.domain) == known.end() &&
            std::find(gone.begin(), gone.end(), record.domain) == gone.end()) {
            gone.push_back(record.domain);
        }
    }
    return gone;
}

std::vector<std::filesystem::path> filesNeeded(const Lineage& lineage) {
    std::vector<std::filesystem::path> files;
    for (const SnapshotRecord& record : lineage) {
        if (record.phase == SnapshotRecord::Phase::Removed) {
            continue;
        }
        for (const Disk* const disk : {&record.system, &record.home}) {
            for (const DiskLayer& layer : disk->layers) {
                files.push_back(layer.path);
            }
        }
        if (record.memory) {
            files.push_back(record.memory->delta);
            files.push_back(record.memory->devices);
            if (record.memory->parent) {
                files.push_back(record.memory->parent->file);
            }
        }
    }
    return files;
}

std::vector<SnapshotId> nodesToErase(const Lineage& lineage, const std::vector<std::filesystem::path>& inUse,
                                     const std::filesystem::path& snapshots) {
    auto files = filesNeeded(lineage);
    files.insert(files.end(), inUse.begin(), inUse.end());
    std::vector<SnapshotId> nodes;
    for (const SnapshotRecord& record : lineage) {
        if (record.phase != SnapshotRecord::Phase::Removed) {
            continue;
        }
        const auto folder = snapshots / record.id.text();
        if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return liesIn(file, folder); })) {
            nodes.push_back(record.id);
        }
    }
    return nodes;
}

std::optional<SnapshotId> nearestNode(const Lineage& lineage, const Disk& home) {
    for (std::size_t below = 1; below < home.layers.size(); ++below) {
        for (const SnapshotRecord& node : lineage) {
            if (isPresent(node) && !node.home.layers.empty() && node.home.layers.front() == home.layers[below]) {
                return node.id;
            }
        }
    }
    return std::nullopt;
}

const SnapshotRecord* lastGood(const Lineage& lineage, const SnapshotId& id) {
    const SnapshotRecord* record = findAny(lineage, id);
    // Bounded, should a damaged manifest have made a circle.
    for (std::size_t steps = 0; record != nullptr && record->parent && steps < lineage.size(); ++steps) {
        record = findAny(lineage, *record->parent);
        if (record != nullptr && isPresent(*record) && record->suspect.empty()) {
            return record;
        }
    }
    return nullptr;
}

std::optional<SnapshotId> headAfter(const Lineage& lineage, const std::optional<SnapshotId>& head,
                                    const std::vector<SnapshotId>& removed) {
    std::optional<SnapshotId> now = head;
    for (std::size_t steps = 0; now && contains(removed, *now) && steps <= lineage.size(); ++steps) {
        const SnapshotRecord* const record = findAny(lineage, *now);
        now = record == nullptr ? std::nullopt : record->parent;
    }
    return now;
}

bool isAutomatic(const SnapshotRecord& record) {
    return std::find(kAutomaticReasons.begin(), kAutomaticReasons.end(), record.reason) != kAutomaticReasons.end();
}

std::vector<SnapshotId> overRetention(const Lineage& lineage, const DomainId& domain, const RetentionRule& rule,
                                      const std::vector<SnapshotId>& keep) {
    // Only those that may go count: what is pinned or has something below it must not cost another its place.
    std::vector<const SnapshotRecord*> automatic;
    std::map<std::string_view, std::size_t> counts;
    Bytes bytes = 0;
    for (const SnapshotRecord& record : lineage) {
        const bool isPassing = record.reason == kReasonSuspend || record.reason == kReasonOnStop ||
                               record.reason == kReasonBeforeUpgrade || record.reason == kReasonDiff;
        if (isPresent(record) && record.domain == domain && isAutomatic(record) && !record.isPinned &&
            record.label.empty() && !contains(keep, record.id) && (isPassing || !hasPresentChild(lineage, record.id))) {
            automatic.push_back(&record);
            ++counts[record.reason];
            bytes += record.sizeOnDisk;
        }
    }
    std::stable_sort(automatic.begin(), automatic.end(), [](const SnapshotRecord* one, const SnapshotRecord* other) {
        return one->createdAt < other->createdAt;
    });
    std::vector<SnapshotId> over;
    for (const SnapshotRecord* const record : automatic) {
        if (counts[record->reason] <= rule.mostAutomatic && bytes <= rule.mostAutomaticBytes) {
            continue;
        }
        over.push_back(record->id);
        --counts[record->reason];
        bytes -= record->sizeOnDisk;
    }
    return over;
}

} // namespace bulkhead::core
