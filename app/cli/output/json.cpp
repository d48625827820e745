// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

std::string text(const QString& value) {
    return value.toStdString();
}

Json texts(const QStringList& values) {
    Json array = Json::array();
    for (const QString& value : values) {
        array.push_back(text(value));
    }
    return array;
}

/// A text, or null where there is none.
Json optionalText(const QString& value) {
    return value.isEmpty() ? Json(nullptr) : Json(text(value));
}

Json optionalTime(const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
}

std::string dump(const Json& value, int indent) {
    return value.dump(indent, ' ', true, Json::error_handler_t::replace) + "\n";
}

} // namespace

std::string jsonText(const Json& value) {
    return dump(value, 2);
}
std::string jsonLine(const Json& value) {
    return dump(value, -1);
}

Json jsonOf(const client::DomainInfo& domain) {
    Json json;
    json["id"] = text(domain.id);
    json["name"] = text(domain.name);
    json["kind"] = text(domain.kind);
    json["state"] = text(domain.state);
    json["reason"] = optionalText(domain.reason);
    json["template"] = text(domain.templateName);
    json["template_version"] = optionalText(domain.templateVersion);
    json["update_available"] = domain.updateAvailable;
    json["size"] = text(domain.size);
    json["memory"] = domain.memory;
    json["vcpus"] = domain.vcpus;
    json["home_size"] = domain.homeSize;
    json["label"] = optionalText(domain.label);
    json["egress"] = text(domain.egress);
    json["audio"] = optionalText(domain.audio);
    json["tags"] = texts(domain.tags);
    json["owner"] = domain.owner;
    json["file"] = optionalText(domain.file);
    json["started_at"] = optionalTime(domain.startedAt);
    json["acceleration"] = optionalText(domain.acceleration);
    json["transport"] = optionalText(domain.transport);
    json["programs"] = domain.programs;
    json["managed"] = domain.isManaged;
    json["restart_needed"] = domain.isRestartNeeded;
    json["next_size"] = optionalText(domain.nextSize);
    json["next_audio"] = optionalText(domain.nextAudio);
    json["head"] = optionalText(domain.head);
    json["suspended"] = domain.isSuspended;
    json["kept"] = domain.isKept;
    json["snapshot_on_stop"] = domain.snapshotOnStop;
    const bool isNeverSuspended = domain.idleSuspend.isEmpty() || domain.idleSuspend == QLatin1String("off");
    json["idle_suspend"] = isNeverSuspended ? Json() : Json(text(domain.idleSuspend));
    return json;
}

Json jsonOf(const QList<client::DomainInfo>& domains) {
    Json array = Json::array();
    for (const auto& domain : domains) {
        array.push_back(jsonOf(domain));
    }
    return array;
}

Json jsonOf(const client::TemplateInfo& info, bool withDetails) {
    Json json;
    json["name"] = text(info.name);
    json["description"] = text(info.description);
    json["built"] = info.built;
    json["stale"] = info.stale;
    json["version"] = optionalText(info.version);
    json["size_on_disk"] = info.sizeOnDisk;
    json["built_at"] = optionalTime(info.builtAt);
    json["checked_at"] = optionalTime(info.checkedAt);
    json["default_size"] = text(info.defaultSize);
    Json sizes = Json::object();
    for (auto size = info.sizes.cbegin(); size != info.sizes.cend(); ++size) {
        sizes[text(size.key())] = Json{{"memory", size->memory}, {"vcpus", size->vcpus}};
    }
    json["sizes"] = sizes;
    if (withDetails) {
        json["file"] = text(info.file);
        json["definition_hash"] = optionalText(info.definitionHash);
        json["packages"] = texts(info.packages);
        Json artefacts = Json::object();
        for (auto artefact = info.artefacts.cbegin(); artefact != info.artefacts.cend(); ++artefact) {
            artefacts[text(artefact.key())] = text(artefact.value());
        }
        json["artefacts"] = artefacts;
        Json images = Json::array();
        for (const auto& image : info.warmImages) {
            images.push_back(Json{{"size", text(image.size)},
                                  {"acceleration", text(image.acceleration)},
                                  {"transport", text(image.transport)},
                                  {"size_on_disk", image.sizeOnDisk},
                                  {"made_at", optionalTime(image.madeAt)},
                                  {"label", optionalText(image.label)},
                                  {"last_used_at", optionalTime(image.lastUsedAt)}});
        }
        json["warm_images"] = images;
    }
    return json;
}

Json jsonOf(const QList<client::TemplateInfo>& templates) {
    Json array = Json::array();
    for (const auto& info : templates) {
        array.push_back(jsonOf(info, false));
    }
    return array;
}

Json jsonOf(const QList<client::Finding>& findings) {
    const auto count = [&](const char* status) {
        return std::count_if(findings.begin(), findings.end(),
                             [&](const auto& finding) { return finding.status == QLatin1String(status); });
    };
    const auto ok = count("ok");
    const auto warnings = count("warning");
    Json array = Json::array();
    for (const auto& finding : findings) {
        array.push_back(Json{{"check", text(finding.check)},
                             {"status", text(finding.status)},
                             {"text", text(finding.text)},
                             {"fix", optionalText(finding.fix)}});
    }
    return Json{{"findings", array},
                {"ok", ok},
                {"warnings", warnings},
                {"problems", static_cast<std::ptrdiff_t>(findings.size()) - ok - warnings}};
}

Json jsonOf(const client::Failure& failure, const std::string& hint) {
    return Json{
        {"code", failure.code}, {"message", failure.message}, {"hint", hint.empty() ? Json(nullptr) : Json(hint)}};
}

} // namespace bulkhead::cli
