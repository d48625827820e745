// SPDX-License-Identifier: Apache-2.0
#include "dbus/describe.hpp"

#include "dbus/door.hpp"

namespace bulkhead::dbus {
namespace {

sdbus::Variant text(std::string_view value) {
    return sdbus::Variant(std::string(value));
}

Options describeFinding(const core::Finding& finding) {
    return {{"check", text(finding.check)},
            {"status", text(nameOf(finding.status))},
            {"text", text(finding.text)},
            {"fix", text(finding.fix)}};
}

Options describeResult(const core::JobResult& result) {
    Options described;
    if (const auto* domain = std::get_if<DomainId>(&result)) {
        described.emplace("domain", domainPath(*domain));
    } else if (const auto* started = std::get_if<core::StartResult>(&result)) {
        described.emplace("domain", domainPath(started->domain));
        described.emplace("warm", started->isWarm);
        described.emplace("note", text(started->note));
    } else if (const auto* stopped = std::get_if<core::StopResult>(&result)) {
        described.emplace("domain", domainPath(stopped->domain));
        described.emplace("snapshot", text(stopped->snapshot ? stopped->snapshot->text() : std::string()));
        described.emplace("note", text(stopped->note));
    } else if (const auto* warm = std::get_if<core::WarmImageResult>(&result)) {
        described.emplace("size", text(warm->size));
        described.emplace("made", warm->made);
    } else if (const auto* built = std::get_if<core::TemplateBuildResult>(&result)) {
        described.emplace("version", text(built->version));
        described.emplace("built", built->built);
    } else if (const auto* taken = std::get_if<core::SnapshotResult>(&result)) {
        described.emplace("snapshot", text(taken->snapshot.text()));
        described.emplace("pause-ms", std::uint64_t{taken->pauseMs});
        described.emplace("note", text(taken->note));
    } else if (const auto* reverted = std::get_if<core::RevertResult>(&result)) {
        described.emplace("domain", domainPath(reverted->domain));
        described.emplace("kept", text(reverted->kept ? reverted->kept->text() : std::string()));
        described.emplace("running", reverted->isRunning);
        described.emplace("note", text(reverted->note));
    } else if (const auto* contained = std::get_if<core::ContainResult>(&result)) {
        described.emplace("domain", domainPath(contained->domain));
        described.emplace("evidence", text(contained->evidence.text()));
        described.emplace("last-good", text(contained->lastGood ? contained->lastGood->text() : std::string()));
        described.emplace("note", text(contained->note));
    } else if (const auto* findings = std::get_if<std::vector<core::Finding>>(&result)) {
        std::vector<Options> list;
        for (const auto& finding : *findings) {
            list.push_back(describeFinding(finding));
        }
        described.emplace("findings", list);
    }
    return described;
}

Options describeImage(const core::WarmImage& image) {
    Options described{{"size", text(image.key.size)},
                      {"acceleration", text(nameOf(image.key.acceleration))},
                      {"transport", text(nameOf(image.key.transport))},
                      {"size-on-disk", sdbus::Variant(std::uint64_t{image.sizeOnDisk})},
                      {"made-at", sdbus::Variant(std::int64_t{image.madeAt})},
                      {"label", text(image.key.label)}};
    if (image.lastUsedAt != 0) {
        described.emplace("last-used-at", sdbus::Variant(std::int64_t{image.lastUsedAt}));
    }
    return described;
}

} // namespace

Options describeTemplate(const core::TemplateInfo& info, const std::vector<core::WarmImage>& images) {
    auto described = describeTemplate(info, true);
    std::vector<Options> list;
    for (const auto& image : images) {
        list.push_back(describeImage(image));
    }
    described.emplace("warm-images", list);
    return described;
}

sdbus::ObjectPath domainPath(const DomainId& id) {
    return "/org/bulkhead1/domains/" + id.compact();
}
sdbus::ObjectPath jobPath(const JobId& id) {
    return "/org/bulkhead1/jobs/" + id.compact();
}

Options describeDomain(const core::DomainEntry& entry, unsigned runningExecs,
                       const std::optional<std::string>& newestVersion) {
    const auto& definition = entry.definition;
    Options described{{"id", text(entry.record.id.text())},
                      {"name", text(entry.record.name)},
                      {"kind", text(nameOf(entry.record.kind))},
                      {"state", text(nameOf(entry.state))},
                      {"reason", text(entry.definitionProblem.empty() ? entry.reason : entry.definitionProblem)},
                      {"template", text(definition.templateName)},
                      {"size", text(entry.instance ? entry.instance->size : definition.size)},
                      {"label", text(definition.label)},
                      {"egress", text(definition.egress)},
                      {"audio", text(nameOf(entry.isAudioWaiting() ? entry.instance->audio : definition.audio))},
                      {"tags", sdbus::Variant(definition.tags)},
                      {"owner", sdbus::Variant(std::uint32_t{entry.record.owner})},
                      {"file", text(definition.file)},
                      {"managed", sdbus::Variant(definition.isManaged)},
                      {"restart-needed", sdbus::Variant(entry.isRestartNeeded())},
                      {"execs", sdbus::Variant(std::uint32_t{runningExecs})},
                      {"head", text(entry.head.node ? entry.head.node->text() : std::string())},
                      {"suspended", sdbus::Variant(entry.head.isSuspended)},
                      {"kept", sdbus::Variant(entry.record.isKept)},
                      {"snapshot-on-stop", sdbus::Variant(definition.snapshotOnStop)},
                      {"idle-suspend", text(core::textOf(definition.idleSuspend))}};
    if (definition.homeSize) {
        described.emplace("home-size", std::uint64_t{*definition.homeSize});
    }
    if (entry.isSizeWaiting()) {
        described.emplace("next-size", text(definition.size));
    }
    if (entry.isAudioWaiting()) {
        described.emplace("next-audio", text(nameOf(definition.audio)));
    }
    if (entry.instance) {
        described.emplace("acceleration", text(nameOf(entry.instance->acceleration)));
        described.emplace("transport", text(nameOf(entry.instance->transport)));
        described.emplace("template-version", text(entry.instance->templateVersion));
        described.emplace("update-available",
                          sdbus::Variant(newestVersion && *newestVersion != entry.instance->templateVersion));
        described.emplace("display", sdbus::Variant(entry.instance->heads > 0));
        described.emplace("started-at", std::int64_t{entry.instance->startedAt});
    }
    return described;
}

Options describeTemplate(const core::TemplateInfo& info, bool isFull) {
    std::map<std::string, sdbus::Struct<std::uint64_t, std::uint32_t>> sizes;
    for (const auto& [name, size] : info.definition.sizes) {
        sizes.emplace(name, sdbus::Struct<std::uint64_t, std::uint32_t>(size.memory, size.vcpus));
    }
    Options described{{"name", text(info.definition.name)},
                      {"description", text(info.definition.description)},
                      {"built", sdbus::Variant(info.installed.has_value())},
                      {"stale", sdbus::Variant(info.isStale)},
                      {"display", sdbus::Variant(info.definition.heads > 0)},
                      {"heads", sdbus::Variant(std::uint32_t{info.definition.heads})},
                      {"sizes", sdbus::Variant(sizes)},
                      {"default-size", text(info.definition.defaultSize)}};
    if (info.installed) {
        described.emplace("version", text(info.installed->version));
        described.emplace("size-on-disk", std::uint64_t{info.installed->sizeOnDisk});
        described.emplace("built-at", std::int64_t{info.installed->builtAt});
        described.emplace("checked-at", std::int64_t{info.installed->checkedAt});
    }
    if (isFull) {
        described.emplace("packages", info.definition.packages);
        described.emplace("definition-hash", text(info.definitionHash));
        described.emplace("file", text(info.definition.file.string()));
        if (info.installed) {
            described.emplace("artefacts", info.installed->artefacts);
        }
    }
    return described;
}

Options describeSnapshot(const core::SnapshotRecord& record) {
    return {{"id", text(record.id.text())},
            {"parent", text(record.parent ? record.parent->text() : std::string())},
            {"domain", sdbus::Variant(domainPath(record.domain))},
            {"domain-name", text(record.domainName)},
            {"kind", text(nameOf(record.kind))},
            {"created-at", sdbus::Variant(std::int64_t{record.createdAt})},
            {"reason", text(record.reason)},
            {"label", text(record.label)},
            {"pinned", sdbus::Variant(record.isPinned)},
            {"suspect", text(record.suspect)},
            {"template", text(record.templateName)},
            {"template-version", text(record.templateVersion)},
            {"size", text(record.size)},
            {"size-on-disk", sdbus::Variant(std::uint64_t{record.sizeOnDisk})}};
}

Options describeDeleted(const core::DeletedDomain& domain) {
    return {{"id", sdbus::Variant(domain.record.id.text())},
            {"name", sdbus::Variant(domain.record.name)},
            {"owner", sdbus::Variant(std::uint32_t{domain.record.owner})},
            {"deleted-at", sdbus::Variant(domain.record.deletedAt)},
            {"goes-at", sdbus::Variant(domain.goesAt)},
            {"size-on-disk", sdbus::Variant(std::uint64_t{domain.sizeOnDisk})}};
}

Options describeJob(const core::JobInfo& info) {
    Options described{{"kind", text(info.kind)},
                      {"state", text(nameOf(info.state))},
                      {"phase", text(info.phase)},
                      {"fraction", sdbus::Variant(info.fraction)}};
    if (info.error) {
        described.emplace("error", text(errorName(info.error->code)));
        described.emplace("message", text(info.error->message));
    }
    if (info.state == core::JobState::Succeeded) {
        described.emplace("result", describeResult(info.result));
    }
    return described;
}

Options describeStatus(const core::GuestStatus& status) {
    return {{"uptime-ms", sdbus::Variant(status.uptimeMs)},
            {"memory-total", sdbus::Variant(status.memoryTotal)},
            {"memory-available", sdbus::Variant(status.memoryAvailable)},
            {"processes", sdbus::Variant(status.processes)},
            {"system-total", sdbus::Variant(status.systemTotal)},
            {"system-available", sdbus::Variant(status.systemAvailable)},
            {"home-total", sdbus::Variant(status.homeTotal)},
            {"home-available", sdbus::Variant(status.homeAvailable)}};
}

} // namespace bulkhead::dbus
