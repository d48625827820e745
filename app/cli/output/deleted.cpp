// SPDX-License-Identifier: Apache-2.0
#include "cli/output/deleted.hpp"

#include "cli/output/describe.hpp"
#include "cli/output/table.hpp"
#include "client/snapshots.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

/// "6 days", "1 hour", "less than a minute".
std::string leftText(std::int64_t seconds) {
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kHour = 60 * kMinute;
    constexpr std::int64_t kDay = 24 * kHour;
    const auto say = [](std::int64_t number, const char* unit) {
        return std::to_string(number) + " " + unit + (number == 1 ? "" : "s");
    };
    if (seconds >= kDay) {
        return say(seconds / kDay, "day");
    }
    if (seconds >= kHour) {
        return say(seconds / kHour, "hour");
    }
    return seconds >= kMinute ? say(seconds / kMinute, "minute") : "less than a minute";
}

} // namespace

std::string deletedTable(const QList<client::DeletedInfo>& domains, std::int64_t now, bool withOwner) {
    if (domains.isEmpty()) {
        return "There are no removed domains that could be restored.\n";
    }
    std::vector<std::string> header{"NAME", "ID", "REMOVED", "TIME LEFT", "DISK"};
    if (withOwner) {
        header.emplace_back("OWNER");
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& domain : domains) {
        rows.push_back({domain.name.toStdString(), client::shortId(domain.id).toStdString(),
                        client::ageText(domain.deletedAt, now), leftText(domain.goesAt - now),
                        bytesText(domain.sizeOnDisk)});
        if (withOwner) {
            rows.back().push_back(std::to_string(domain.owner));
        }
    }
    return tableText(header, rows);
}

std::string restorableText(const QList<client::DeletedInfo>& domains, const std::string& name) {
    const auto found = std::find_if(domains.begin(), domains.end(), [&](const client::DeletedInfo& domain) {
        return domain.name.toStdString() == name; // the last one first
    });
    if (found == domains.end()) {
        return {};
    }
    return "For " + leftText(found->goesAt - found->deletedAt) + " it can be brought back: bulkhead domain restore " +
           name + "\n";
}

Json jsonOf(const QList<client::DeletedInfo>& domains) {
    Json array = Json::array();
    for (const auto& domain : domains) {
        array.push_back(Json{{"id", domain.id.toStdString()},
                             {"name", domain.name.toStdString()},
                             {"owner", domain.owner},
                             {"deleted_at", domain.deletedAt},
                             {"goes_at", domain.goesAt},
                             {"size_on_disk", domain.sizeOnDisk}});
    }
    return array;
}

} // namespace bulkhead::cli
