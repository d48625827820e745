// SPDX-License-Identifier: Apache-2.0
#include "storage/stored_words.hpp"

#include "base/escaping.hpp"

#include <initializer_list>
#include <limits>

namespace bulkhead::storage {

namespace {

tl::unexpected<Error> unknown(std::string_view what, std::string_view text) {
    return fail(ErrorCode::HostFailure, "the database has the unknown " + std::string(what) + " \"" +
                                            escapeUntrusted(text, 60) +
                                            "\"; it was changed by hand or by another version");
}

template <class Enum>
Result<Enum> fromStored(std::string_view what, std::string_view word, std::initializer_list<Enum> all) {
    for (const Enum value : all) {
        if (storedWord(value) == word) {
            return value;
        }
    }
    return unknown(what, word);
}

} // namespace

std::string_view storedWord(core::DomainKind kind) {
    switch (kind) {
    case core::DomainKind::App:
        return "app";
    case core::DomainKind::Disposable:
        return "disposable";
    case core::DomainKind::Standalone:
        return "standalone";
    }
    return "";
}

std::string_view storedWord(core::DomainRecord::Phase phase) {
    switch (phase) {
    case core::DomainRecord::Phase::Creating:
        return "creating";
    case core::DomainRecord::Phase::Present:
        return "present";
    case core::DomainRecord::Phase::Removing:
        return "removing";
    case core::DomainRecord::Phase::Deleting:
        return "deleting";
    case core::DomainRecord::Phase::Deleted:
        return "deleted";
    case core::DomainRecord::Phase::Restoring:
        return "restoring";
    }
    return "";
}

std::string_view storedWord(core::InstancePhase phase) {
    switch (phase) {
    case core::InstancePhase::Starting:
        return "starting";
    case core::InstancePhase::Running:
        return "running";
    case core::InstancePhase::Stopping:
        return "stopping";
    }
    return "";
}

std::string_view storedWord(core::Acceleration acceleration) {
    switch (acceleration) {
    case core::Acceleration::Kvm:
        return "kvm";
    case core::Acceleration::Emulation:
        return "emulation";
    }
    return "";
}

std::string_view storedWord(core::Audio audio) {
    switch (audio) {
    case core::Audio::Off:
        return "off";
    case core::Audio::Out:
        return "out";
    }
    return "";
}

std::string_view storedWord(core::Transport transport) {
    switch (transport) {
    case core::Transport::VirtioSerial:
        return "virtio-serial";
    case core::Transport::Vsock:
        return "vsock";
    }
    return "";
}

std::string_view storedWord(core::DiskFormat format) {
    switch (format) {
    case core::DiskFormat::Raw:
        return "raw";
    case core::DiskFormat::Qcow2:
        return "qcow2";
    }
    return "";
}

std::string_view storedWord(core::SnapshotKind kind) {
    switch (kind) {
    case core::SnapshotKind::Disk:
        return "disk";
    case core::SnapshotKind::Full:
        return "full";
    }
    return "";
}

std::string_view storedWord(core::SnapshotRecord::Phase phase) {
    switch (phase) {
    case core::SnapshotRecord::Phase::Creating:
        return "creating";
    case core::SnapshotRecord::Phase::Present:
        return "present";
    case core::SnapshotRecord::Phase::Removed:
        return "removed";
    }
    return "";
}

Result<core::DomainKind> domainKindFromStored(std::string_view word) {
    using enum core::DomainKind;
    return fromStored("kind of domain", word, {App, Disposable, Standalone});
}

Result<core::DomainRecord::Phase> domainPhaseFromStored(std::string_view word) {
    using enum core::DomainRecord::Phase;
    return fromStored("phase of a domain", word, {Creating, Present, Removing, Deleting, Deleted, Restoring});
}

Result<core::InstancePhase> instancePhaseFromStored(std::string_view word) {
    using enum core::InstancePhase;
    return fromStored("phase of an instance", word, {Starting, Running, Stopping});
}

Result<core::Acceleration> accelerationFromStored(std::string_view word) {
    using enum core::Acceleration;
    return fromStored("acceleration", word, {Kvm, Emulation});
}

Result<core::Audio> audioFromStored(std::string_view word) {
    using enum core::Audio;
    return fromStored("audio", word, {Off, Out});
}

Result<core::Transport> transportFromStored(std::string_view word) {
    using enum core::Transport;
    return fromStored("transport", word, {VirtioSerial, Vsock});
}

Result<core::DiskFormat> diskFormatFromStored(std::string_view word) {
    using enum core::DiskFormat;
    return fromStored("format of a disk", word, {Raw, Qcow2});
}

Result<core::SnapshotKind> snapshotKindFromStored(std::string_view word) {
    using enum core::SnapshotKind;
    return fromStored("kind of snapshot", word, {Disk, Full});
}

Result<core::SnapshotRecord::Phase> snapshotPhaseFromStored(std::string_view word) {
    using enum core::SnapshotRecord::Phase;
    return fromStored("phase of a snapshot", word, {Creating, Present, Removed});
}

Result<SnapshotId> snapshotIdFromStored(std::string_view text) {
    if (auto id = SnapshotId::parse(text)) {
        return *id;
    }
    return unknown("id of a snapshot", text);
}

Result<DomainId> domainIdFromStored(std::string_view text) {
    if (auto id = DomainId::parse(text)) {
        return *id;
    }
    return unknown("id of a domain", text);
}

Result<InstanceId> instanceIdFromStored(std::string_view text) {
    if (auto id = InstanceId::parse(text)) {
        return *id;
    }
    return unknown("id of an instance", text);
}

Result<std::uint32_t> unsignedFromStored(std::int64_t number) {
    if (number < 0 || number > std::numeric_limits<std::uint32_t>::max()) {
        return unknown("number", std::to_string(number));
    }
    return static_cast<std::uint32_t>(number);
}

} // namespace bulkhead::storage
