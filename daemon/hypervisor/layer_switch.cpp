// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/layer_switch.hpp"

#include "base/escaping.hpp"
#include "hypervisor/disk_xml.hpp"
#include "hypervisor/xml_writer.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace bulkhead::hypervisor {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSystemDisk = "vda";

/// The text under the keys, one within the other; none when any is missing.
std::optional<std::string> textIn(const Json& value, std::initializer_list<const char*> keys) {
    const Json* inner = &value;
    for (const char* const key : keys) {
        if (!inner->is_object() || !inner->contains(key)) {
            return std::nullopt;
        }
        inner = &inner->at(key);
    }
    return inner->is_string() ? std::optional(inner->get<std::string>()) : std::nullopt;
}

/// libvirt calls a disk's device by its alias: "/machine/peripheral/virtio-disk0/virtio-backend".
std::optional<std::size_t> numberOfDisk(const Json& block) {
    const std::string device = textIn(block, {"qdev"}).value_or("");
    constexpr std::string_view kBegin = "virtio-disk";
    const std::size_t at = device.find(kBegin);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    const std::string_view number = std::string_view(device).substr(at + kBegin.size());
    for (std::size_t i = 0; i < 2; ++i) {
        if (number == std::to_string(i) || number.starts_with(std::to_string(i) + "/")) {
            return i;
        }
    }
    return std::nullopt;
}

/// libvirt calls an image libvirt-7-format and the file that it lies in libvirt-7-storage.
std::optional<std::string> fileOf(std::string_view image, const Json& nodes) {
    constexpr std::string_view kImage = "-format";
    if (!image.ends_with(kImage)) {
        return std::nullopt;
    }
    image.remove_suffix(kImage.size());
    const std::string storage = std::string(image) + "-storage";
    for (const Json& node : nodes) {
        if (textIn(node, {"node-name"}) == storage) {
            auto file = textIn(node, {"file"});
            const bool isFile = file && textIn(node, {"drv"}) == "file" && file->starts_with('/');
            return isFile ? file : std::nullopt;
        }
    }
    return std::nullopt;
}

} // namespace

Result<std::string> layerSwitchXml(const core::Machines::NewLayers& layers) {
    XmlWriter xml;
    xml.open("domainsnapshot");
    xml.empty("memory", {{"snapshot", "no"}});
    xml.open("disks");
    bool isAny = false;
    for (const auto& [name, layer] : {std::pair(kSystemDisk, &layers.system), std::pair(kHomeDisk, &layers.home)}) {
        if (!*layer) {
            xml.empty("disk", {{"name", name}, {"snapshot", "no"}});
            continue;
        }
        const std::string& path = (*layer)->native();
        if (!(*layer)->is_absolute() || !isXmlText(path)) {
            return fail(ErrorCode::InvalidArgument,
                        "\"" + escapeUntrusted(path, 200) + "\" cannot be the file of a disk");
        }
        isAny = true;
        xml.open("disk", {{"name", name}, {"snapshot", "external"}, {"type", "file"}});
        xml.empty("driver", {{"type", "qcow2"}});
        xml.open("source", {{"file", path}});
        // Its owner was set beforehand.
        xml.empty("seclabel", {{"model", "dac"}, {"relabel", "no"}});
        xml.close();
        xml.close();
    }
    xml.close();
    xml.close();
    if (!isAny) {
        return fail(ErrorCode::InvalidArgument, "no layer to switch to");
    }
    return xml.take();
}

Result<std::string> homeCopyXml(const core::Disk& home) {
    if (auto checked = checkDisk("home disk", home); !checked) {
        return fail(checked.error());
    }
    XmlWriter xml;
    xml.open("disk", {{"type", "file"}, {"device", "disk"}});
    writeDiskFiles(xml, home);
    xml.close();
    return xml.take();
}

Result<core::Machines::NewLayers> activeLayersIn(std::string_view queryBlock, std::string_view queryNodes) {
    const Json blocks = Json::parse(queryBlock, nullptr, false);
    const Json nodes = Json::parse(queryNodes, nullptr, false);
    if (!blocks.is_array() || !nodes.is_array()) {
        return fail(ErrorCode::HostFailure, "the emulator does not say which disks it has");
    }
    core::Machines::NewLayers layers;
    for (const Json& block : blocks) {
        const auto number = numberOfDisk(block);
        if (!number) {
            continue;
        }
        const auto file = fileOf(textIn(block, {"inserted", "node-name"}).value_or(""), nodes);
        if (!file) {
            return fail(ErrorCode::HostFailure,
                        "the emulator does not say which file disk " + std::to_string(*number) + " is written to");
        }
        (*number == 0 ? layers.system : layers.home) = *file;
    }
    return layers;
}

} // namespace bulkhead::hypervisor
