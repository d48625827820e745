// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"
#include "core/ports/host.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

/// Doubles for the small ports. Each is thread-safe, and can be told to fail.
namespace bulkhead::tests {

class FakeClock final : public core::Clock {
public:
    std::int64_t now() override { return m_now; }
    void advance(std::int64_t seconds) { m_now += seconds; }

private:
    std::atomic<std::int64_t> m_now{1'000'000};
};

class RecordingEvents final : public core::EventSink {
public:
    void domainStateChanged(const DomainId& id, core::DomainState state) override {
        const std::lock_guard lock(m_mutex);
        m_states[id].push_back(state);
    }
    void snapshotsChanged(const DomainId&) override {}
    void domainsChanged() override {
        const std::lock_guard lock(m_mutex);
        ++m_changes;
    }
    void jobProgress(const JobId&, double) override {}
    void jobFinished(const JobId&) override {}
    std::vector<core::DomainState> states(const DomainId& id) {
        const std::lock_guard lock(m_mutex);
        return m_states[id];
    }
    /// How often domainsChanged() came.
    unsigned changes() {
        const std::lock_guard lock(m_mutex);
        return m_changes;
    }

private:
    std::mutex m_mutex;
    std::map<DomainId, std::vector<core::DomainState>> m_states;
    unsigned m_changes = 0;
};

/// Emulators end when the test says so.
class FakeEmulatorWatch final : public core::EmulatorWatch {
public:
    Status watch(const InstanceId& instance, pid_t, std::function<void()> gone) override {
        const std::lock_guard lock(m_mutex);
        m_watched[instance] = std::move(gone);
        return {};
    }
    void forget(const InstanceId& instance) override {
        const std::lock_guard lock(m_mutex);
        m_watched.erase(instance);
    }
    void end(const InstanceId& instance) {
        std::function<void()> gone;
        {
            const std::lock_guard lock(m_mutex);
            if (const auto found = m_watched.find(instance); found != m_watched.end()) {
                gone = std::move(found->second);
                m_watched.erase(found);
            }
        }
        if (gone) {
            gone();
        }
    }
    /// The daemon that watched has ended.
    void forgetAll() {
        const std::lock_guard lock(m_mutex);
        m_watched.clear();
    }
    bool isWatched(const InstanceId& instance) {
        const std::lock_guard lock(m_mutex);
        return m_watched.contains(instance);
    }

private:
    std::mutex m_mutex;
    std::map<InstanceId, std::function<void()>> m_watched;
};

class FakeAcceleration final : public core::AccelerationProbe {
public:
    Outcome determine(const std::filesystem::path&, const std::filesystem::path&, bool) override {
        return remembered();
    }
    Outcome remembered() override { return {core::Acceleration::Emulation, true, "a test"}; }
};

/// virtio-serial, or what the test says.
class FakeTransport final : public core::TransportProbe {
public:
    std::atomic<core::Transport> transport{core::Transport::VirtioSerial};
    std::optional<Error> error;
    std::set<std::uint32_t> taken;

    Result<Outcome> choose() override {
        if (error) {
            return fail(*error);
        }
        return Outcome{transport, "a test"};
    }
    bool isCidFree(std::uint32_t cid) override { return !taken.contains(cid); }
};

class FakeBootCounter final : public core::BootCounter {
public:
    std::optional<Error> error;
    std::optional<std::uint64_t> value;

    Result<std::optional<std::uint64_t>> read() override { return value; }
    Status write(std::uint64_t next) override {
        if (error) {
            return fail(*error);
        }
        value = next;
        return {};
    }
};

class FakeMemory final : public core::HostMemory {
public:
    std::atomic<Bytes> available = 8 * kGiB;
    Amount memory() override { return {16 * kGiB, available}; }
};

class FakeTemplateBuilder final : public core::TemplateBuilder {
public:
    std::optional<Error> error;
    std::string hash = "definition-1";
    unsigned builds = 0;
    unsigned discarded = 0;

    Result<std::string> definitionHash(const core::TemplateDefinition& definition) override {
        std::string made = hash;
        for (const std::string& package : definition.packages) {
            made += "+" + package;
        }
        return made;
    }
    Result<core::BuiltTemplate> build(const core::TemplateDefinition& definition, const core::ProgressSink& progress,
                                      std::stop_token) override {
        ++builds;
        progress("Downloading packages", 0.5);
        if (error) {
            return fail(*error);
        }
        return core::BuiltTemplate{"/nowhere/build", *definitionHash(definition)};
    }
    void discard(const core::BuiltTemplate&) override { ++discarded; }
    void removeLeftovers() override {}
};

/// Guests that answer at once, or fail as told.
class FakeGuestLinks final : public core::GuestLinks, public core::GuestUses {
public:
    std::optional<Error> openError;
    std::optional<Error> nextOpenError; ///< once
    std::optional<Error> adoptError;
    std::optional<Error> reopenError;
    unsigned adoptedExecs = 0;
    bool adoptedWindows = false;
    std::atomic<unsigned> reopened{0};
    std::atomic<unsigned> programs{0};
    std::vector<core::GuestLinkSpec> opened;
    /// Called by shutdown(): a guest that obeys ends its emulator here.
    std::function<void(const InstanceId&)> onShutdown;

    Status open(const core::GuestLinkSpec& spec, std::chrono::milliseconds, std::stop_token) override {
        const std::lock_guard lock(m_mutex);
        if (openError) {
            return fail(*openError);
        }
        if (nextOpenError) {
            return fail(*std::exchange(nextOpenError, std::nullopt));
        }
        m_open.insert(spec.instance);
        opened.push_back(spec);
        return {};
    }
    Status reopen(const InstanceId& instance, std::chrono::milliseconds) override {
        const std::lock_guard lock(m_mutex);
        if (reopenError) {
            return fail(*reopenError);
        }
        m_open.insert(instance);
        programs = 0;
        ++reopened;
        return {};
    }
    Result<core::AdoptedGuest> adopt(const InstanceId& instance) override {
        if (adoptError) {
            return fail(*adoptError);
        }
        const std::lock_guard lock(m_mutex);
        m_open.insert(instance);
        return core::AdoptedGuest{.programs = adoptedExecs, .hasWindows = adoptedWindows};
    }
    Result<core::ExecStreams> exec(const InstanceId&, const core::ExecRequest&) override {
        core::ExecStreams streams;
        streams.id = ++m_lastExec;
        return streams;
    }
    Result<core::GuestStatus> status(const InstanceId&) override { return core::GuestStatus{}; }
    Status shutdown(const InstanceId& instance, std::chrono::milliseconds) override {
        if (onShutdown) {
            onShutdown(instance);
        }
        return {};
    }
    void close(const InstanceId& instance) override {
        const std::lock_guard lock(m_mutex);
        m_open.erase(instance);
    }
    /// How often quiesce() says that the guest is not at rest yet.
    std::atomic<unsigned> restless{0};
    std::optional<Error> rejuvenateError;
    std::vector<InstanceId> rejuvenated;
    Status quiesce(const InstanceId&) override {
        if (restless > 0) {
            --restless;
            return fail(ErrorCode::Busy, "not at rest");
        }
        return {};
    }
    std::optional<Error> freezeError;
    std::optional<Error> thawError;
    /// Each freeze() and thaw() that succeeded, in their order; none for a thaw().
    std::vector<std::pair<InstanceId, std::optional<core::Picture>>> pictures;
    Status freeze(const InstanceId& instance, const core::Picture& picture) override {
        const std::lock_guard lock(m_mutex);
        if (freezeError) {
            return fail(*freezeError);
        }
        pictures.emplace_back(instance, picture);
        return {};
    }
    Status thaw(const InstanceId& instance) override {
        const std::lock_guard lock(m_mutex);
        if (thawError) {
            return fail(*thawError);
        }
        pictures.emplace_back(instance, std::nullopt);
        return {};
    }
    Status rejuvenate(const InstanceId& instance, const core::Rejuvenation&) override {
        const std::lock_guard lock(m_mutex);
        if (rejuvenateError) {
            return fail(*rejuvenateError);
        }
        rejuvenated.push_back(instance);
        return {};
    }
    unsigned runningExecs(const InstanceId&) override { return programs; }
    std::atomic<bool> isShowing{false}; ///< some window is open
    std::atomic<std::uint64_t> uses{0};
    core::GuestUse useOf(const InstanceId&) override { return {.isInUse = programs > 0 || isShowing, .count = uses}; }
    bool isOpen(const InstanceId& instance) {
        const std::lock_guard lock(m_mutex);
        return m_open.contains(instance);
    }

private:
    std::mutex m_mutex;
    std::set<InstanceId> m_open;
    std::atomic<std::uint64_t> m_lastExec{0};
};

} // namespace bulkhead::tests
