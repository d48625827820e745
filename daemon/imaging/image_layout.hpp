// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "imaging/file_tree.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace bulkhead::imaging {

/// Where everything of the image store lies, and whom it belongs to. No user's words in any path but the names of
/// templates, which an admin chose and which are checked.
///
///     STATE/                               0711 root
///       templates/NAME/VERSION/            0710 root:emulators; files 0440 root:emulators, never changed
///       bases/home-SIZE.img                0440 root:emulators; an empty file system for fresh homes
///       homes/DOMAIN/                      0710 root:emulators; manifest.toml, and the active layer: home.img or
///                                          home-UUID.qcow2, 0600; root's, or the emulator's while it is claimed
///       instances/INSTANCE/                0710 root:emulators; what an emulator needs, its own files 0600 or 0400;
///                                          disks.toml: the layers of its disks
///       snapshots/SNAPSHOT/                0710 root:emulators; see FileSnapshotStore
///       memory/DIGEST.ram, DIGEST.chunks   0440 root:emulators; memory of snapshots as emulators map it
///     RUNTIME/instances/INSTANCE/          0700 root; agent.sock
///
/// Folders of instances belong to root, not to the emulator: one that escaped could otherwise replace its files by
/// links just before root works on them. Names that begin with a dot are unfinished or being removed.
class ImageLayout {
public:
    /// `emulatorGroup`: the group of all emulators ("kvm"). `owner` is root except in tests.
    ImageLayout(std::filesystem::path state, std::filesystem::path runtime, gid_t emulatorGroup, uid_t owner = 0,
                gid_t ownerGroup = 0)
        : m_state(std::move(state))
        , m_runtime(std::move(runtime))
        , m_emulatorGroup(emulatorGroup)
        , m_owner(owner)
        , m_ownerGroup(ownerGroup) {}

    [[nodiscard]] const std::filesystem::path& state() const { return m_state; }
    [[nodiscard]] std::filesystem::path templates() const { return m_state / "templates"; }
    [[nodiscard]] std::filesystem::path bases() const { return m_state / "bases"; }
    [[nodiscard]] std::filesystem::path homes() const { return m_state / "homes"; }
    [[nodiscard]] std::filesystem::path instances() const { return m_state / "instances"; }
    [[nodiscard]] std::filesystem::path snapshots() const { return m_state / "snapshots"; }
    [[nodiscard]] std::filesystem::path memoryImages() const { return m_state / "memory"; }
    [[nodiscard]] std::filesystem::path snapshot(const SnapshotId& id) const { return snapshots() / id.text(); }
    [[nodiscard]] std::filesystem::path runtimeInstances() const { return m_runtime / "instances"; }

    /// InvalidArgument unless both words are safe as parts of a path.
    [[nodiscard]] Result<std::filesystem::path> templateVersion(std::string_view name, std::string_view version) const;
    [[nodiscard]] std::filesystem::path homeFolder(const DomainId& id) const { return homes() / id.text(); }
    [[nodiscard]] std::filesystem::path homeImage(const DomainId& id) const { return homeFolder(id) / "home.img"; }
    [[nodiscard]] std::filesystem::path homeBase(Bytes size) const {
        return bases() / ("home-" + std::to_string(size) + ".img");
    }
    [[nodiscard]] std::filesystem::path instance(const InstanceId& id) const { return instances() / id.text(); }
    [[nodiscard]] std::filesystem::path runtimeInstance(const InstanceId& id) const {
        return runtimeInstances() / id.text();
    }

    [[nodiscard]] gid_t emulatorGroup() const { return m_emulatorGroup; }
    [[nodiscard]] Access sharedFolder() const { return {0710, m_owner, m_emulatorGroup}; }
    [[nodiscard]] Access sharedFile() const { return {0440, m_owner, m_emulatorGroup}; }
    [[nodiscard]] Access privateFolder() const { return {0700, m_owner, m_ownerGroup}; }
    [[nodiscard]] Access privateFile() const { return {0600, m_owner, m_ownerGroup}; }

    /// What no emulator opens by itself and nobody changes.
    [[nodiscard]] Access sealedFile() const { return {0400, m_owner, m_ownerGroup}; }

    /// Makes the folders that are missing and repairs owners and modes. Cheap; before each act that writes.
    [[nodiscard]] Status prepare() const;

private:
    std::filesystem::path m_state;
    std::filesystem::path m_runtime;
    gid_t m_emulatorGroup;
    uid_t m_owner;
    gid_t m_ownerGroup;
};

/// A version is 32 lower-case hexadecimal digits.
bool isTemplateVersion(std::string_view version);

} // namespace bulkhead::imaging
