// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::core {

/// A machine that domains of a template can have: memory in bytes and processors.
struct TemplateSize {
    Bytes memory = 0;
    unsigned vcpus = 1;
    bool operator==(const TemplateSize&) const = default;
};

/// What a template's domains run as their first process once the disks are there.
enum class TemplateInit {
    Agent,   ///< bulkhead-agent itself
    Systemd, ///< systemd; the agent is a unit
};

std::string_view nameOf(TemplateInit init);
std::optional<TemplateInit> templateInitFrom(std::string_view name);

/// Debian's rule for package names: two or more of [a-z0-9+.-], the first a letter or digit. They become arguments of
/// the build tools, so what begins with "-" or has a "," must not get through. InvalidArgument names the word.
Status checkPackageName(std::string_view name);

/// More outputs QEMU's virtio-gpu does not have.
inline constexpr unsigned kMostHeads = 16;

/// The content of resources/templates/NAME.toml (installed to /usr/share/bulkhead/templates.d, overridden by
/// /etc/bulkhead/templates.d) with the packages that drop-ins (NAME.d/*.toml beside it) add.
struct TemplateDefinition {
    std::string name;
    std::string description;
    std::string suite;                 ///< a Debian suite, "bookworm"
    std::string kernel;                ///< a Debian kernel package
    std::vector<std::string> packages; ///< those of the drop-ins, too
    /// Those of them that `template install` has put into a drop-in of its own.
    std::vector<std::string> addedPackages;
    TemplateInit init = TemplateInit::Agent;
    unsigned heads = 0; ///< outputs of the graphics device; 0: no display at all
    /// A folder whose files are laid over the system; none: no files.
    std::optional<std::filesystem::path> files;
    Bytes systemSize = 0; ///< virtual size of the system disk
    Bytes homeSize = 0;   ///< default virtual size of a home disk
    std::map<std::string, TemplateSize> sizes;
    std::string defaultSize;
    std::filesystem::path file; ///< where it was read from

    bool operator==(const TemplateDefinition&) const = default;
};

/// A built and installed template: immutable files below the image store, found by the content's hash.
struct InstalledTemplate {
    std::string name;
    std::string version;        ///< lower-case hex: hash over the artefacts' hashes
    std::string definitionHash; ///< hash of everything that the build depends on (definition, agent, builder)
    std::int64_t builtAt = 0;   ///< seconds since the epoch
    std::int64_t checkedAt = 0; ///< when its packages were last known to be the newest; not before builtAt
    Bytes sizeOnDisk = 0;
    Bytes systemSize = 0;
    Bytes homeSize = 0;
    TemplateInit init = TemplateInit::Agent;
    unsigned heads = 0; ///< as its definition had it when it was built
    std::map<std::string, std::string>
        artefacts; ///< file name to BLAKE2b-256 hex: root.img, vmlinuz, initrd.img, packages.txt
    std::filesystem::path directory;
};

/// Files that a builder left in a folder of its own: root.img, vmlinuz, initrd.img, packages.txt.
struct BuiltTemplate {
    std::filesystem::path directory;
    std::string definitionHash;
};

} // namespace bulkhead::core
