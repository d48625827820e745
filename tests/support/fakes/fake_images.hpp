// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/memory_images.hpp"
#include "support/fakes/fake_hypervisor.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace bulkhead::tests {

/// Emulators that load and save at once, or fail as told. They are those of the hypervisor: paused or not, and what
/// they write to, is known there.
class FakeMachines final : public core::Machines {
public:
    explicit FakeMachines(FakeHypervisor& hypervisor)
        : m_hypervisor(hypervisor) {}

    std::optional<Error> loadError;
    std::optional<Error> nextLoadError; ///< once
    std::function<void(const InstanceId&)> onLoad;
    std::optional<Error> saveError;
    std::string machine = "fake 1";
    std::vector<InstanceId> loaded;
    std::vector<InstanceId> saved;
    std::optional<Error> switchError;
    bool switchesDespiteError = false; ///< libvirtd died after the emulator had done it

    std::vector<core::Disk> homesTaken;

    Status load(const InstanceId& id, const std::filesystem::path&, const std::optional<core::Disk>& home) override {
        if (onLoad) {
            onLoad(id);
        }
        const std::lock_guard lock(m_mutex);
        if (loadError) {
            return fail(*loadError);
        }
        if (nextLoadError) {
            return fail(*std::exchange(nextLoadError, std::nullopt));
        }
        loaded.push_back(id);
        if (home) {
            homesTaken.push_back(*home);
            if (auto taken = m_hypervisor.switchLayers(id, {std::nullopt, home->layers.front().path}); !taken) {
                return taken;
            }
        }
        return m_hypervisor.setPaused(id, false);
    }
    Status pauseAndSave(const InstanceId& id, const std::filesystem::path&) override {
        const std::lock_guard lock(m_mutex);
        const Status paused = m_hypervisor.setPaused(id, true);
        if (saveError || !paused) {
            return saveError ? Status(fail(*saveError)) : paused;
        }
        saved.push_back(id);
        return {};
    }
    Status switchLayers(const InstanceId& id, const NewLayers& layers) override {
        const std::lock_guard lock(m_mutex);
        if (switchError && !switchesDespiteError) {
            return fail(*switchError);
        }
        const Status switched = m_hypervisor.switchLayers(id, layers);
        return switchError ? Status(fail(*switchError)) : switched;
    }
    Result<NewLayers> activeLayers(const InstanceId& id) override { return m_hypervisor.activeLayers(id); }
    Result<std::string> version(core::Acceleration) override { return machine; }

private:
    FakeHypervisor& m_hypervisor;
    std::mutex m_mutex;
};

/// Captures that take no time, or fail as told.
class FakeMemoryCapturer final : public core::MemoryCapturer {
public:
    std::optional<Error> error; ///< of captureWhole() and prepare()
    std::optional<Error> copyError;
    std::optional<Error> finishError;
    Bytes privateBytes = kMiB;
    std::string digest = std::string(64, 'd');
    std::vector<pid_t> captured;
    std::vector<CaptureRequest> requests;

    Result<std::string> captureWhole(pid_t pid, Bytes, const std::filesystem::path&) override {
        if (error) {
            return fail(*error);
        }
        captured.push_back(pid);
        return digest;
    }
    Result<std::unique_ptr<core::RunningCapture>> prepare(const CaptureRequest& request) override {
        if (error) {
            return fail(*error);
        }
        requests.push_back(request);
        return std::make_unique<Running>(*this, request.emulator);
    }
    Result<Bytes> privateMemory(pid_t) override { return privateBytes; }

private:
    class Running final : public core::RunningCapture {
    public:
        Running(FakeMemoryCapturer& owner, pid_t emulator)
            : m_owner(owner)
            , m_emulator(emulator) {}
        Status copy() override { return m_owner.copyError ? Status(fail(*m_owner.copyError)) : Status{}; }
        Status finish() override {
            if (m_owner.finishError) {
                return fail(*m_owner.finishError);
            }
            m_owner.captured.push_back(m_emulator);
            return {};
        }

    private:
        FakeMemoryCapturer& m_owner;
        pid_t m_emulator;
    };
};

/// Images that are only their keys.
class FakeWarmImageStore final : public core::WarmImageStore {
public:
    std::vector<core::WarmImage> images;
    unsigned unfinished = 0;
    std::optional<Error> beginError;

    std::optional<core::WarmImage> find(const core::WarmImageKey& key) override {
        const std::lock_guard lock(m_mutex);
        for (const auto& image : images) {
            auto wanted = key;
            wanted.label = key.label.empty() ? image.key.label : key.label;
            if (image.key == wanted) {
                return image;
            }
        }
        return std::nullopt;
    }
    std::optional<Error> provideError;
    std::vector<std::filesystem::path> used;
    Result<core::WarmImage> provide(const core::WarmImageKey& key, const FilesInUse&) override {
        auto any = key;
        any.label.clear();
        auto source = find(any);
        const std::lock_guard lock(m_mutex);
        if (!source || provideError) {
            return fail(provideError.value_or(Error{ErrorCode::NotFound, "there is none"}));
        }
        for (auto& image : images) {
            if (image.key == any) {
                image.key.label = key.label;
                return image;
            }
        }
        const std::filesystem::path folder = "/images/" + std::to_string(++m_made);
        images.push_back({key,
                          folder / "memory",
                          source->memoryDigest,
                          folder / "devices",
                          {folder / "system", core::DiskFormat::Qcow2},
                          source->madeAt,
                          0,
                          1});
        return images.back();
    }
    void noteUse(const core::WarmImage& image) override {
        const std::lock_guard lock(m_mutex);
        used.push_back(image.memory);
    }
    std::vector<core::WarmImage> all(const std::string& name, const std::string& version) override {
        const std::lock_guard lock(m_mutex);
        std::vector<core::WarmImage> found;
        for (const auto& image : images) {
            if (image.key.templateName == name && image.key.templateVersion == version) {
                found.push_back(image);
            }
        }
        return found;
    }
    Result<std::filesystem::path> begin(const core::WarmImageKey&, Bytes) override {
        const std::lock_guard lock(m_mutex);
        if (beginError) {
            return fail(*beginError);
        }
        ++unfinished;
        return std::filesystem::path("/nowhere/new");
    }
    Result<core::WarmImage> publish(const core::WarmImageKey& key, const std::filesystem::path&,
                                    const std::filesystem::path&, const std::string& memoryDigest,
                                    const FilesInUse&) override {
        const std::lock_guard lock(m_mutex);
        --unfinished;
        std::erase_if(images, [&](const core::WarmImage& image) {
            auto own = image.key;
            own.label.clear();
            return own == key;
        });
        const std::filesystem::path folder = "/images/" + std::to_string(++m_made);
        images.push_back({key,
                          folder / "memory",
                          memoryDigest,
                          folder / "devices",
                          {folder / "system", core::DiskFormat::Qcow2},
                          1,
                          0,
                          1});
        return images.back();
    }
    void discard(const std::filesystem::path&) override {
        const std::lock_guard lock(m_mutex);
        --unfinished;
    }
    void remove(const core::WarmImage& gone) override {
        const std::lock_guard lock(m_mutex);
        std::erase_if(images, [&](const core::WarmImage& image) { return image.memory == gone.memory; });
    }

private:
    std::mutex m_mutex;
    unsigned m_made = 0;
};

} // namespace bulkhead::tests
