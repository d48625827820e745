// SPDX-License-Identifier: Apache-2.0
#include "build/initramfs.hpp"

#include "build/cpio.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace bulkhead::imaging::build {
namespace {

namespace fs = std::filesystem;

struct WantedModule {
    std::string_view name;
    bool early; ///< before the disks and the channel can be reached; and then needed
};

/// The console driver comes first: the host announces its ports while the rest is being loaded. crc32c: ext4 asks for
/// it by name when it mounts, and there is no modprobe.
constexpr std::array kModules{
    WantedModule{"virtio_pci", true},
    WantedModule{"virtio_console", true},
    WantedModule{"virtio_blk", true},
    WantedModule{"crc32c_generic", true},
    WantedModule{"ext4", true},
    WantedModule{"qemu_fw_cfg", true},
    WantedModule{"virtio_rng", false},
    WantedModule{"vsock", false},
    WantedModule{"vmw_vsock_virtio_transport", false},
};

/// "kernel/drivers/block/virtio-blk.ko" -> "virtio_blk".
std::string moduleName(std::string_view file) {
    std::string name(file.substr(file.rfind('/') + 1));
    name.erase(std::min(name.find('.'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

Result<std::string> readFile(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return fail(ErrorCode::NotFound, "Cannot read " + file.string());
    }
    std::string text(std::istreambuf_iterator<char>(stream), {});
    if (stream.bad()) {
        return fail(ErrorCode::HostFailure, "Cannot read " + file.string());
    }
    return text;
}

} // namespace

ModuleIndex::ModuleIndex(std::string_view dep, std::string_view builtin) {
    std::istringstream lines{std::string(dep)};
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            continue;
        }
        const std::string file = line.substr(0, colon);
        std::vector<std::string> order;
        std::istringstream needs(line.substr(colon + 1));
        for (std::string need; needs >> need;) {
            order.push_back(need);
        }
        // depmod writes what is needed last first.
        std::reverse(order.begin(), order.end());
        order.push_back(file);
        m_files.emplace(moduleName(file), std::move(order));
    }
    std::istringstream names{std::string(builtin)};
    for (std::string line; std::getline(names, line);) {
        m_builtIn.insert(moduleName(line));
    }
}

Result<std::vector<std::string>> ModuleIndex::filesFor(std::string_view name) const {
    if (isBuiltIn(name)) {
        return std::vector<std::string>{};
    }
    const auto found = m_files.find(std::string(name));
    if (found == m_files.end()) {
        return fail(ErrorCode::NotFound, "The kernel has no module " + std::string(name));
    }
    return found->second;
}

Result<std::string> makeInitramfs(const fs::path& agent, const fs::path& modulesFolder, bool handsOver) {
    const auto program = readFile(agent);
    const auto dep = readFile(modulesFolder / "modules.dep");
    const auto builtin = readFile(modulesFolder / "modules.builtin");
    for (const auto* part : {&program, &dep, &builtin}) {
        if (!*part) {
            return fail(part->error());
        }
    }
    if (!program->starts_with("\x7f"
                              "ELF")) {
        return fail(ErrorCode::InvalidArgument, agent.string() + " is no program");
    }
    CpioWriter archive;
    for (const char* const folder : {"dev", "lib", "proc", "sys", "sysroot"}) {
        archive.addDirectory(folder);
    }
    // The kernel opens it for /init before anything is mounted.
    archive.addCharacterDevice("dev/console", 0600, 5, 1);
    archive.addFile("init", *program, 0755);

    const ModuleIndex index(*dep, *builtin);
    std::string list;
    std::set<std::string> added;
    for (const WantedModule& wanted : kModules) {
        const auto files = index.filesFor(wanted.name);
        if (!files && wanted.early) {
            return fail(files.error().in("initramfs"));
        }
        for (const std::string& file : files.value_or(std::vector<std::string>{})) {
            if (!added.insert(file).second) {
                continue;
            }
            if (!file.ends_with(".ko")) {
                return fail(ErrorCode::InvalidArgument, "The kernel's module " + file +
                                                            " is compressed, which is not supported yet; choose a "
                                                            "kernel whose modules end in .ko");
            }
            const auto contents = readFile(modulesFolder / file);
            if (!contents) {
                return fail(contents.error());
            }
            const std::string path = "lib/" + moduleName(file) + ".ko";
            archive.addFile(path, *contents, 0644);
            list += std::string(wanted.early ? "early" : "late") + " /" + path + "\n";
        }
    }
    archive.addFile("modules", list, 0644);
    if (handsOver) {
        archive.addFile("hand-over", "", 0644);
    }
    return archive.finish();
}

} // namespace bulkhead::imaging::build
