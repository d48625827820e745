// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/connection.hpp"
#include "session/heads.hpp"

#include <xcb/randr.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bulkhead::session {

/// Heads as RandR outputs: head n is the nth output by name and number (Virtual-1, Virtual-2, …). A mode of exactly the
/// wanted size is made for each, also on an output that says it is disconnected: on a virtual device that only means
/// that the host has not asked for it. A server that takes no new modes keeps the size it has.
class RandrHeads final : public Heads {
public:
    /// At most `most` heads. Without RandR there is one head, the whole screen.
    RandrHeads(const Connection& connection, unsigned most);
    ~RandrHeads() override;

    [[nodiscard]] unsigned count() const override { return static_cast<unsigned>(m_rects.size()); }
    [[nodiscard]] Size largestScreen() const override { return m_largestScreen; }
    [[nodiscard]] const HeadRects& rects() const override { return m_rects; }
    [[nodiscard]] Size screen() const override { return m_screen; }
    void apply(const HeadRects& wanted) override;
    /// Sets each head anew as it is. In a machine that goes on in a snapshot's memory every head shows the whole
    /// screen: QEMU 7.2 brings back what an output of virtio-gpu shows, but not which part of it (virtio_gpu_load()).
    void showAgain();
    /// An event of X. True: it says that the host plugged a head in or out, so what failed before may work now, and
    /// what worked may be gone.
    bool handle(const xcb_generic_event_t& event);

private:
    struct Output {
        xcb_randr_output_t id = 0;
        xcb_randr_crtc_t crtc = 0;
        std::string name;
        std::vector<xcb_randr_mode_t> modes; ///< those that were there before us, and ours
        std::uint8_t connection = 0;
    };
    struct Mode {
        xcb_randr_mode_t id = 0;
        Size size;
        bool isOurs = false;
    };

    void findOutputs(unsigned most);
    void readModes();
    void readOutputModes(Output& output);
    void readRects();
    [[nodiscard]] std::optional<xcb_randr_mode_t> modeFor(Output& output, Size size);
    bool resizeScreen(Size size);
    bool setHead(std::size_t head, const std::optional<Rect>& rect);
    void forgetUnusedModes();

    const Connection& m_connection;
    std::vector<Output> m_outputs;
    std::vector<Mode> m_modes;
    HeadRects m_rects;
    Size m_screen;
    Size m_largestScreen;
    std::uint8_t m_firstEvent = 0; ///< 0: no RandR
    xcb_timestamp_t m_configTime = XCB_CURRENT_TIME;
};

/// Orders output names: by their text, and a number at the end by its value.
[[nodiscard]] bool isOutputBefore(const std::string& a, const std::string& b);

} // namespace bulkhead::session
