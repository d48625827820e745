// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/deleted_domains.hpp"
#include "imaging/image_layout.hpp"
#include "imaging/layer_files.hpp"

#include <utility>

namespace bulkhead::imaging {

/// core::KeptHomes in ImageLayout's folders.
class FileKeptHomes final : public core::KeptHomes {
public:
    explicit FileKeptHomes(ImageLayout layout)
        : m_layout(std::move(layout))
        , m_layers(m_layout) {}

    Status rename(const DomainId& id, uid_t owner, const std::string& name) override;
    Result<Bytes> sizeOnDisk(const DomainId& id) override;

private:
    ImageLayout m_layout;
    LayerFiles m_layers;
};

} // namespace bulkhead::imaging
