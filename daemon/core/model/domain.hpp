// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/audio.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

/// What becomes of a domain's disks when it stops (DESIGN section 5).
enum class DomainKind {
    App,        ///< system writes are discarded, the home stays
    Disposable, ///< nothing stays
    Standalone, ///< everything stays
};
std::string_view nameOf(DomainKind kind);

/// The name of a domain: `[a-z][a-z0-9-]{0,30}`, not reserved (host, dom0, now), unique per owner.
/// For people and definitions only: never in libvirt's XML, a path below the image store, or a signal.
Status checkDomainName(std::string_view name);
/// The name that a disposable gets: "disp-" and digits of its id. Users may not take names that begin with "disp-".
std::string disposableName(const DomainId& id);
/// The names of templates, sizes, labels and egress profiles follow the same pattern without the reserved words.
/// `what` names the thing in the message ("template").
Status checkSimpleName(std::string_view what, std::string_view name);

/// What an admin or a user wants of a domain: the content of its TOML file.
struct DomainDefinition {
    std::string name;
    uid_t owner = 0;
    DomainKind kind = DomainKind::App;
    std::string templateName;
    std::string size; ///< empty: the template's default
    std::string label = "gray";
    std::string egress = "none";
    std::vector<std::string> tags;
    std::optional<Bytes> homeSize; ///< none: the template's default
    Audio audio = Audio::Off;
    /// Each stop but a forced one leaves a snapshot of the home (kReasonOnStop).
    bool snapshotOnStop = false;
    /// After so long without use it is suspended (see IdleSuspender); none: never. Whole minutes.
    std::optional<std::chrono::minutes> idleSuspend;
    /// The definition belongs to the admin (/etc/bulkhead/domains.d): read-only for the owner.
    bool isManaged = false;
    std::string file; ///< where it was read from; empty for disposables

    bool operator==(const DomainDefinition&) const = default;
};

enum class DomainState { Stopped, Starting, Running, Paused, Suspended, Stopping, Failed };
std::string_view nameOf(DomainState state);

/// What can happen to a domain.
enum class DomainEvent {
    StartRequested,
    AgentReady,
    StartFailed,
    StartCancelled,
    FailureDismissed, ///< the user stops what has failed already
    StopRequested,
    EmulatorGone, ///< QEMU ended: wanted after StopRequested, otherwise a failure
    ChannelLost,  ///< the guest broke the protocol, or its channel could not be made again
    PauseRequested,
    ResumeRequested,
    MemoryKept,    ///< the next start goes on in a snapshot's memory
    MemoryDropped, ///< it does not any more
};
std::string_view nameOf(DomainEvent event);

/// The one state machine: total, without side effects. None: the event is refused in that state.
/// Paused is reached from the pause verb of a later issue; the machine knows it already because a domain may be found
/// paused (a full disk pauses it, an admin may use virsh).
std::optional<DomainState> nextState(DomainState state, DomainEvent event);

/// True for the states in which an emulator exists or may exist.
bool hasEmulator(DomainState state);

} // namespace bulkhead::core
