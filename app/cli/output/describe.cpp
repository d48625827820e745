// SPDX-License-Identifier: Apache-2.0
#include "cli/output/describe.hpp"

#include "cli/output/table.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>

namespace bulkhead::cli {
namespace {

std::string text(const QString& value) {
    return value.toStdString();
}

int orderOf(const QString& kind) {
    return kind == QLatin1String("disposable") ? 1 : 0;
}

std::string stateOf(const client::TemplateInfo& info) {
    return !info.built ? "not built" : info.stale ? "definition changed" : "built";
}

std::string stateOf(const client::DomainInfo& domain) {
    return text(domain.state) + (domain.updateAvailable ? " (restart to update)" : "");
}

std::string kindOf(const client::DomainInfo& domain) {
    return text(domain.kind) + (domain.isKept ? " (kept)" : "");
}

std::string timeOr(const std::optional<std::int64_t>& seconds) {
    return seconds ? timeText(*seconds) : std::string();
}

std::string machineText(std::uint64_t memory, std::uint32_t vcpus) {
    return fmt::format("{}, {} CPU{}", bytesText(memory), vcpus, vcpus == 1 ? "" : "s");
}

std::string plural(std::ptrdiff_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace

std::string bytesText(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    const bool whole = unit == 0 || value >= 100 || value == static_cast<double>(static_cast<std::uint64_t>(value));
    return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string timeText(std::int64_t secondsSinceEpoch) {
    const auto seconds = static_cast<std::time_t>(secondsSinceEpoch);
    std::tm local{};
    std::array<char, 64> out{};
    if (::localtime_r(&seconds, &local) == nullptr ||
        std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M:%S", &local) == 0) {
        return std::to_string(secondsSinceEpoch);
    }
    return out.data();
}

std::string domainTable(QList<client::DomainInfo> domains, bool withOwner) {
    if (domains.isEmpty()) {
        return "There are no domains yet. Create one: bulkhead domain create NAME\n"
               "Or run something in a disposable one: bulkhead run -- COMMAND\n";
    }
    std::sort(domains.begin(), domains.end(), [](const auto& a, const auto& b) {
        return std::tuple(orderOf(a.kind), a.name, a.owner) < std::tuple(orderOf(b.kind), b.name, b.owner);
    });
    std::vector<std::string> header{"NAME", "STATE", "TEMPLATE", "SIZE", "LABEL", "EGRESS", "KIND"};
    if (withOwner) {
        header.emplace_back("OWNER");
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& domain : domains) {
        rows.push_back({text(domain.name), stateOf(domain), text(domain.templateName), text(domain.size),
                        text(domain.label), text(domain.egress), kindOf(domain)});
        if (withOwner) {
            rows.back().push_back(std::to_string(domain.owner));
        }
    }
    return tableText(header, rows);
}

std::string domainText(const client::DomainInfo& domain) {
    const bool running = domain.startedAt.has_value();
    return keyValueText({
        {"Name", text(domain.name)},
        {"State", stateOf(domain) + (domain.waitsSuspended() ? " (its next start goes on where it was)" : "")},
        {"Reason", text(domain.reason)},
        {"Comes from", domain.head.isEmpty() ? "" : "snapshot " + text(client::shortId(domain.head))},
        {"Kind", kindOf(domain)},
        {"Template", text(domain.templateName) +
                         (domain.templateVersion.isEmpty() ? "" : ", version " + text(domain.templateVersion))},
        {"Size", text(domain.size) + (domain.memory == 0 ? "" : " (" + machineText(domain.memory, domain.vcpus) + ")") +
                     (domain.nextSize.isEmpty() ? "" : ", " + text(domain.nextSize) + " from the next start on")},
        {"Home", domain.homeSize == 0 ? "" : bytesText(domain.homeSize)},
        {"Label", text(domain.label)},
        {"Egress", text(domain.egress)},
        {"Sound", text(domain.audio) +
                      (domain.nextAudio.isEmpty() ? "" : ", " + text(domain.nextAudio) + " from the next start on")},
        {"Tags", text(domain.tags.join(QStringLiteral(", ")))},
        {"At its stop", domain.snapshotOnStop ? "a snapshot of its home is taken" : ""},
        {"When unused", domain.idleSuspend.isEmpty() || domain.idleSuspend == QLatin1String("off")
                            ? ""
                            : "suspended after " + text(domain.idleSuspend)},
        {"Started", timeOr(domain.startedAt)},
        {"Programs", running ? std::to_string(domain.programs) : ""},
        {"Acceleration", text(domain.acceleration)},
        {"Channel", text(domain.transport)},
        {"Owner", fmt::format("uid {}", domain.owner)},
        {"Definition", text(domain.file) + (domain.isManaged ? " (the administrator's)" : "")},
        {"Id", text(domain.id)},
    });
}

std::string templateTable(QList<client::TemplateInfo> templates) {
    if (templates.isEmpty()) {
        return "There are no templates. What is missing: bulkhead doctor\n";
    }
    std::sort(templates.begin(), templates.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::vector<std::vector<std::string>> rows;
    bool missing = false;
    for (const auto& info : templates) {
        rows.push_back({text(info.name), stateOf(info), text(info.version.left(12)), timeOr(info.builtAt),
                        info.built ? bytesText(info.sizeOnDisk) : "", text(info.description)});
        missing = missing || !info.built;
    }
    return tableText({"NAME", "STATE", "VERSION", "BUILT", "DISK", "DESCRIPTION"}, rows) +
           (missing ? "\nBuild one: sudo bulkhead template build NAME\n" : "");
}

std::string templateText(const client::TemplateInfo& info) {
    KeyValues pairs{
        {"Name", text(info.name)},
        {"Description", text(info.description)},
        {"State", stateOf(info)},
        {"Version", text(info.version)},
        {"Built", timeOr(info.builtAt)},
        {"Checked", timeOr(info.checkedAt)},
        {"Disk", info.built ? bytesText(info.sizeOnDisk) : ""},
    };
    for (auto size = info.sizes.cbegin(); size != info.sizes.cend(); ++size) {
        pairs.emplace_back("Size " + text(size.key()), machineText(size->memory, size->vcpus) +
                                                           (size.key() == info.defaultSize ? " (default)" : ""));
    }
    for (const auto& image : info.warmImages) {
        pairs.emplace_back("Warm image " + text(image.size),
                           (image.label.isEmpty() ? "no label yet" : "label " + text(image.label)) + ", " +
                               bytesText(image.sizeOnDisk) + ", " + text(image.acceleration) + ", " +
                               text(image.transport) + ", of " + timeOr(image.madeAt) +
                               (image.lastUsedAt ? ", last used " + timeOr(image.lastUsedAt) : ""));
    }
    pairs.emplace_back("Packages", info.packages.isEmpty() ? "" : std::to_string(info.packages.size()));
    pairs.emplace_back("Definition", text(info.file));
    pairs.emplace_back("Definition hash", text(info.definitionHash));
    for (auto artefact = info.artefacts.cbegin(); artefact != info.artefacts.cend(); ++artefact) {
        pairs.emplace_back(text(artefact.key()), text(artefact.value()));
    }
    for (auto& [key, value] : pairs) {
        key = client::terminalSafe(key);
    }
    return keyValueText(pairs);
}

std::string packagesText(const client::TemplateInfo& info) {
    std::string out;
    for (const QString& package : info.packages) {
        out += client::terminalSafe(package) + "\n";
    }
    return out;
}

std::string findingsText(const QList<client::Finding>& findings) {
    std::string out;
    std::ptrdiff_t ok = 0;
    std::ptrdiff_t warnings = 0;
    for (const auto& finding : findings) {
        ok += finding.status == QLatin1String("ok") ? 1 : 0;
        warnings += finding.status == QLatin1String("warning") ? 1 : 0;
        out += fmt::format("{:<9}{}: {}\n", client::terminalSafe(finding.status), client::terminalSafe(finding.check),
                           client::terminalSafe(finding.text));
        // A fix may be several commands, one a line.
        const QStringList lines = finding.fix.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
        for (qsizetype i = 0; i < lines.size(); ++i) {
            out += fmt::format("         {}{}\n", i == 0 ? "fix: " : "     ", client::terminalSafe(lines[i]));
        }
    }
    const std::ptrdiff_t problems = findings.size() - ok - warnings;
    out += fmt::format("\n{}, {}, {}\n", plural(problems, "problem"), plural(warnings, "warning"),
                       fmt::format("{} ok", ok));
    return out;
}

} // namespace bulkhead::cli
