// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::link {

/// What the administrator asked for with --transport.
enum class TransportWish { Auto, Vsock, VirtioSerial };
/// InvalidArgument for what is not one of "auto", "vsock", "virtio-serial".
Result<TransportWish> transportWish(std::string_view word);

/// core::TransportProbe: looks whether this host can give guests an AF_VSOCK address. libvirt (root, as the daemon is)
/// opens /dev/vhost-vsock itself, sets the address and hands the descriptor to the emulator, whose user therefore
/// needs no access to the device. Opening it also loads the kernel's module where there is one.
class VsockTransport final : public core::TransportProbe {
public:
    struct Options {
        TransportWish wish = TransportWish::Auto;
        std::filesystem::path device = "/dev/vhost-vsock";
    };
    explicit VsockTransport(Options options)
        : m_options(std::move(options)) {}

    Result<Outcome> choose() override;
    bool isCidFree(std::uint32_t cid) override;

    /// Why guests cannot have vsock here; none: they can.
    [[nodiscard]] std::optional<std::string> obstacle() const;
    /// What to do about an obstacle.
    static constexpr std::string_view kRemedy = "modprobe vhost_vsock (for each boot: echo vhost_vsock > "
                                                "/etc/modules-load.d/vhost_vsock.conf); a kernel without "
                                                "that module: apt install linux-image-amd64";

private:
    Options m_options;
};

} // namespace bulkhead::link
