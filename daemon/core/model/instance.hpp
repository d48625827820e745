// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/unique_fd.hpp"
#include "core/model/audio.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

enum class Acceleration { Kvm, Emulation };
std::string_view nameOf(Acceleration acceleration);

/// How the daemon reaches a guest's agent. An instance has one of them: its machine has no device for the other.
enum class Transport { VirtioSerial, Vsock };
std::string_view nameOf(Transport transport);

enum class DiskFormat { Raw, Qcow2 };
std::string_view nameOf(DiskFormat format);

/// One image file of a disk; the format is always given, never guessed from its bytes.
struct DiskLayer {
    std::filesystem::path path;
    DiskFormat format = DiskFormat::Raw;
    bool operator==(const DiskLayer&) const = default;
};

/// A disk of an instance: the active layer first, then its backing chain down to the base image. The whole chain is
/// written out in the domain XML, so that neither libvirt nor QEMU ever follows a name that stands inside an image.
struct Disk {
    std::vector<DiskLayer> layers;
    bool operator==(const Disk&) const = default;
};

/// A disk of something else that a guest looks into (see SnapshotService::inspect()). What the guest writes to it, be
/// it only what a journal had left, is thrown away with the guest.
struct InspectedDisk {
    std::string serial; ///< what the guest finds it by: at most 20 of [a-z-]
    Disk disk;
    bool operator==(const InspectedDisk&) const = default;
};
/// There are places for so many of them in a machine.
inline constexpr std::size_t kMostInspectedDisks = 4;

/// Everything that the hypervisor needs to know of one start of a domain. No user text in it.
struct InstanceSpec {
    InstanceId id;
    Bytes memory = 0;
    unsigned vcpus = 1;
    unsigned heads = 0;       ///< outputs of the graphics device, at most kMostHeads; 0: no display
    Audio audio = Audio::Off; ///< needs a display: its sound comes beside the pictures
    Acceleration acceleration = Acceleration::Emulation;
    Disk system;              ///< vda
    std::optional<Disk> home; ///< vdb
    std::vector<InspectedDisk> inspected;
    std::filesystem::path kernel;
    std::filesystem::path initrd;
    /// The guest begins with this memory and stands still until Machines::load(); none: it boots.
    std::optional<std::filesystem::path> memoryImage;
    /// It boots in order to be captured: its agent leaves the home disk alone.
    bool isForImage = false;
    std::filesystem::path tokenFile; ///< 32 bytes, readable by `emulatorUid` only; given to the guest by fw_cfg
    Transport transport = Transport::VirtioSerial;
    std::filesystem::path agentSocket; ///< VirtioSerial: libvirt makes it; the daemon connects
    std::optional<std::uint32_t> cid;  ///< Vsock: the guest's address, see CidLeases
    uid_t emulatorUid = 0;
    gid_t emulatorGid = 0;
};

enum class InstancePhase {
    Starting, ///< the intent: whatever exists of it is undone by the reconciler
    Running,  ///< reported to the user as started
    Stopping, ///< the intent to end it: the reconciler goes on with it
};
std::string_view nameOf(InstancePhase phase);

/// What is remembered of an instance over a restart of the daemon.
struct InstanceRecord {
    InstanceId id;
    DomainId domain; ///< null: none, it was booted for a warm image
    InstancePhase phase = InstancePhase::Starting;
    unsigned uidSlot = 0; ///< see UidLeases
    std::string templateVersion;
    std::string size;
    Acceleration acceleration = Acceleration::Emulation;
    Transport transport = Transport::VirtioSerial;
    std::optional<std::uint32_t> cid; ///< with Transport::Vsock
    unsigned heads = 0;               ///< outputs; 0: it has no display
    Audio audio = Audio::Off;
    Bytes memory = 0;
    unsigned vcpus = 1;
    std::int64_t startedAt = 0; ///< seconds since the epoch
    /// Its owner has paused it: nobody else lets it go on, not even a daemon that starts.
    bool isHeld = false;

    bool operator==(const InstanceRecord&) const = default;
};

using GuestToken = std::array<std::byte, 32>;

/// A program to run in a guest; checked by checkExecRequest() before it goes anywhere.
struct ExecRequest {
    std::vector<std::string> argv;
    std::vector<std::string> environment; ///< NAME=VALUE
    std::string cwd;                      ///< empty: the user's home
    std::string user;                     ///< empty: "user"
    bool terminal = false;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::string term;
    std::uint64_t timeoutMs = 0;      ///< wall clock, 0 = none
    std::uint64_t limitProcesses = 0; ///< 0 = none
};

/// The client's ends of a running program (dbus/interfaces/exec_stream.hpp).
struct ExecStreams {
    std::uint64_t id = 0;
    UniqueFd control;
    UniqueFd input;
    UniqueFd output;
    UniqueFd error;
};

/// Numbers that the guest's agent says of itself. Checked for range, but a lying guest may say anything.
struct GuestStatus {
    std::uint64_t uptimeMs = 0;
    Bytes memoryTotal = 0;
    Bytes memoryAvailable = 0;
    std::uint64_t processes = 0;
    Bytes systemTotal = 0;
    Bytes systemAvailable = 0;
    Bytes homeTotal = 0;
    Bytes homeAvailable = 0;
};

} // namespace bulkhead::core
