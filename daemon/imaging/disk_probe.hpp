// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "imaging/disk_space.hpp"

#include <filesystem>

namespace bulkhead::imaging {

/// The finding "disk": a warning below 6 GiB, a problem from 95 % used on.
class DiskProbe final : public core::HostProbe {
public:
    explicit DiskProbe(std::filesystem::path stateFolder, SpaceProbe space = fileSystemSpace)
        : m_stateFolder(std::move(stateFolder))
        , m_space(std::move(space)) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    std::filesystem::path m_stateFolder;
    SpaceProbe m_space;
};

/// The finding "memory": can the default size of each template be started now.
class MemoryProbe final : public core::HostProbe {
public:
    /// Both must outlive this.
    MemoryProbe(core::HostMemory& memory, core::DefinitionStore& definitions)
        : m_memory(memory)
        , m_definitions(definitions) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    core::HostMemory& m_memory;
    core::DefinitionStore& m_definitions;
};

/// The finding "templates": which are built, which are not or no longer up to date, whose packages nobody has looked
/// after for two weeks, which files are broken.
class TemplatesProbe final : public core::HostProbe {
public:
    /// All must outlive this.
    TemplatesProbe(core::DefinitionStore& definitions, core::TemplateStore& store, core::TemplateBuilder& builder,
                   core::Clock& clock)
        : m_definitions(definitions)
        , m_store(store)
        , m_builder(builder)
        , m_clock(clock) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    core::DefinitionStore& m_definitions;
    core::TemplateStore& m_store;
    core::TemplateBuilder& m_builder;
    core::Clock& m_clock;
};

} // namespace bulkhead::imaging
