// SPDX-License-Identifier: Apache-2.0
#include "session/randr_heads.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <tuple>

namespace bulkhead::session {
namespace {

constexpr std::string_view kModePrefix = "bulkhead-";
/// Only for the reported physical size.
constexpr int kDotsPerInch = 96;

std::pair<std::string_view, std::string_view> splitNumber(std::string_view name) {
    std::size_t digits = 0;
    while (digits < name.size() && std::isdigit(static_cast<unsigned char>(name[name.size() - 1 - digits])) != 0) {
        ++digits;
    }
    return {name.substr(0, name.size() - digits), name.substr(name.size() - digits)};
}

std::uint32_t millimetres(int pixels) {
    return static_cast<std::uint32_t>(std::max(pixels * 254 / (kDotsPerInch * 10), 1));
}

/// A virtual device has no beam: any porches do, as long as they are in order.
xcb_randr_mode_info_t timingFor(Size size) {
    xcb_randr_mode_info_t mode{};
    mode.width = static_cast<std::uint16_t>(size.width);
    mode.height = static_cast<std::uint16_t>(size.height);
    mode.hsync_start = static_cast<std::uint16_t>(size.width + 8);
    mode.hsync_end = static_cast<std::uint16_t>(size.width + 40);
    mode.htotal = static_cast<std::uint16_t>(size.width + 80);
    mode.vsync_start = static_cast<std::uint16_t>(size.height + 3);
    mode.vsync_end = static_cast<std::uint16_t>(size.height + 9);
    mode.vtotal = static_cast<std::uint16_t>(size.height + 24);
    mode.dot_clock = 60U * mode.htotal * mode.vtotal;
    return mode;
}

} // namespace

bool isOutputBefore(const std::string& a, const std::string& b) {
    const auto [textA, numberA] = splitNumber(a);
    const auto [textB, numberB] = splitNumber(b);
    // Without leading zeros a longer number is a larger one.
    return std::forward_as_tuple(textA, numberA.size(), numberA) <
           std::forward_as_tuple(textB, numberB.size(), numberB);
}

RandrHeads::RandrHeads(const Connection& connection, unsigned most)
    : m_connection(connection)
    , m_screen(connection.firstScreenSize())
    , m_largestScreen(connection.firstScreenSize()) {
    xcb_connection_t* const x = connection.x();
    const auto* const extension = xcb_get_extension_data(x, &xcb_randr_id);
    if (extension != nullptr && extension->present != 0) {
        const Reply version(xcb_randr_query_version_reply(x, xcb_randr_query_version(x, 1, 3), nullptr));
        const bool hasOutputs =
            version && std::pair(version->major_version, version->minor_version) >= std::pair(1U, 3U);
        if (hasOutputs) {
            m_firstEvent = extension->first_event;
            xcb_randr_select_input(x, connection.root(), XCB_RANDR_NOTIFY_MASK_OUTPUT_CHANGE);
            findOutputs(most);
        }
    }
    if (m_outputs.empty()) {
        m_rects.assign(1, Rect{{0, 0}, m_screen});
        return;
    }
    m_rects.resize(m_outputs.size());
    readModes();
    readRects();
}

RandrHeads::~RandrHeads() = default;

void RandrHeads::findOutputs(unsigned most) {
    xcb_connection_t* const x = m_connection.x();
    if (const Reply range(
            xcb_randr_get_screen_size_range_reply(x, xcb_randr_get_screen_size_range(x, m_connection.root()), nullptr));
        range) {
        m_largestScreen = {std::min<int>(range->max_width, kLargestScreen.width),
                           std::min<int>(range->max_height, kLargestScreen.height)};
    }
    // "Current": the other request makes the server look at the hardware, which takes time and changes nothing here.
    const Reply resources(xcb_randr_get_screen_resources_current_reply(
        x, xcb_randr_get_screen_resources_current(x, m_connection.root()), nullptr));
    if (!resources) {
        return;
    }
    m_configTime = resources->config_timestamp;
    const auto* const ids = xcb_randr_get_screen_resources_current_outputs(resources.get());
    const int count = xcb_randr_get_screen_resources_current_outputs_length(resources.get());
    std::vector<Output> outputs;
    std::vector<std::vector<xcb_randr_crtc_t>> possible;
    for (int i = 0; i < count; ++i) {
        const Reply info(
            xcb_randr_get_output_info_reply(x, xcb_randr_get_output_info(x, ids[i], m_configTime), nullptr));
        if (!info) {
            continue;
        }
        Output output;
        output.id = ids[i];
        output.connection = info->connection;
        output.name.assign(reinterpret_cast<const char*>(xcb_randr_get_output_info_name(info.get())),
                           static_cast<std::size_t>(xcb_randr_get_output_info_name_length(info.get())));
        const auto* const modes = xcb_randr_get_output_info_modes(info.get());
        output.modes.assign(modes, modes + xcb_randr_get_output_info_modes_length(info.get()));
        const auto* const crtcs = xcb_randr_get_output_info_crtcs(info.get());
        std::vector<xcb_randr_crtc_t> ways(crtcs, crtcs + xcb_randr_get_output_info_crtcs_length(info.get()));
        if (info->crtc != 0) {
            ways.insert(ways.begin(), info->crtc); // it has one: keep that
        }
        outputs.push_back(std::move(output));
        possible.push_back(std::move(ways));
    }
    std::vector<std::size_t> order(outputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return isOutputBefore(outputs[a].name, outputs[b].name); });
    std::vector<xcb_randr_crtc_t> taken;
    for (const std::size_t i : order) {
        const auto free = std::find_if(possible[i].begin(), possible[i].end(), [&](xcb_randr_crtc_t crtc) {
            return std::find(taken.begin(), taken.end(), crtc) == taken.end();
        });
        if (free == possible[i].end() || m_outputs.size() >= most) {
            break; // head n is output n: no gaps
        }
        outputs[i].crtc = *free;
        taken.push_back(*free);
        m_outputs.push_back(std::move(outputs[i]));
    }
}

void RandrHeads::readModes() {
    xcb_connection_t* const x = m_connection.x();
    const Reply resources(xcb_randr_get_screen_resources_current_reply(
        x, xcb_randr_get_screen_resources_current(x, m_connection.root()), nullptr));
    if (!resources) {
        return;
    }
    const auto* const modes = xcb_randr_get_screen_resources_current_modes(resources.get());
    const int count = xcb_randr_get_screen_resources_current_modes_length(resources.get());
    const auto* const names =
        reinterpret_cast<const char*>(xcb_randr_get_screen_resources_current_names(resources.get()));
    std::string_view left(
        names, static_cast<std::size_t>(xcb_randr_get_screen_resources_current_names_length(resources.get())));
    m_modes.clear();
    for (int i = 0; i < count; ++i) {
        const std::string_view name = left.substr(0, modes[i].name_len);
        left.remove_prefix(name.size());
        m_modes.push_back({modes[i].id, {modes[i].width, modes[i].height}, name.starts_with(kModePrefix)});
    }
}

void RandrHeads::readRects() {
    xcb_connection_t* const x = m_connection.x();
    std::vector<xcb_randr_get_crtc_info_cookie_t> cookies;
    for (const Output& output : m_outputs) {
        cookies.push_back(xcb_randr_get_crtc_info(x, output.crtc, m_configTime));
    }
    for (std::size_t i = 0; i < m_outputs.size(); ++i) {
        m_rects[i].reset();
        const Reply info(xcb_randr_get_crtc_info_reply(x, cookies[i], nullptr));
        if (info && info->mode != 0) {
            m_rects[i] = Rect{{info->x, info->y}, {info->width, info->height}};
        }
    }
    if (const Reply root(xcb_get_geometry_reply(x, xcb_get_geometry(x, m_connection.root()), nullptr)); root) {
        m_screen = {root->width, root->height};
    }
}

std::optional<xcb_randr_mode_t> RandrHeads::modeFor(Output& output, Size size) {
    xcb_connection_t* const x = m_connection.x();
    auto known = std::find_if(m_modes.begin(), m_modes.end(), [&](const Mode& mode) {
        const bool isHere = std::find(output.modes.begin(), output.modes.end(), mode.id) != output.modes.end();
        return mode.size == size && (mode.isOurs || isHere);
    });
    if (known == m_modes.end()) {
        const std::string name =
            std::string(kModePrefix) + std::to_string(size.width) + "x" + std::to_string(size.height);
        auto timing = timingFor(size);
        timing.name_len = static_cast<std::uint16_t>(name.size());
        const auto cookie = xcb_randr_create_mode(x, m_connection.root(), timing, timing.name_len, name.c_str());
        const Reply reply(xcb_randr_create_mode_reply(x, cookie, nullptr));
        if (!reply) {
            return std::nullopt;
        }
        m_modes.push_back({reply->mode, size, true});
        known = std::prev(m_modes.end());
    }
    if (std::find(output.modes.begin(), output.modes.end(), known->id) == output.modes.end()) {
        const Reply error(xcb_request_check(x, xcb_randr_add_output_mode_checked(x, output.id, known->id)));
        if (error) {
            return std::nullopt;
        }
        output.modes.push_back(known->id);
    }
    return known->id;
}

/// A device that is plugged in brings modes of its own.
void RandrHeads::readOutputModes(Output& output) {
    xcb_connection_t* const x = m_connection.x();
    const Reply info(
        xcb_randr_get_output_info_reply(x, xcb_randr_get_output_info(x, output.id, m_configTime), nullptr));
    if (info) {
        const auto* const modes = xcb_randr_get_output_info_modes(info.get());
        output.modes.assign(modes, modes + xcb_randr_get_output_info_modes_length(info.get()));
        output.connection = info->connection;
    }
}

bool RandrHeads::handle(const xcb_generic_event_t& event) {
    if (m_firstEvent == 0 || event.response_type != m_firstEvent + XCB_RANDR_NOTIFY) {
        return false;
    }
    const auto& notify = reinterpret_cast<const xcb_randr_notify_event_t&>(event);
    if (notify.subCode != XCB_RANDR_NOTIFY_OUTPUT_CHANGE) {
        return false;
    }
    const auto found = std::find_if(m_outputs.begin(), m_outputs.end(),
                                    [&](const Output& output) { return output.id == notify.u.oc.output; });
    // Told of for whatever we do ourselves, too: only the plug counts.
    if (found == m_outputs.end() || found->connection == notify.u.oc.connection) {
        return false;
    }
    readOutputModes(*found);
    readModes();
    readRects();
    return true;
}

bool RandrHeads::resizeScreen(Size size) {
    if (size == m_screen) {
        return true;
    }
    xcb_connection_t* const x = m_connection.x();
    const auto cookie = xcb_randr_set_screen_size_checked(
        x, m_connection.root(), static_cast<std::uint16_t>(size.width), static_cast<std::uint16_t>(size.height),
        millimetres(size.width), millimetres(size.height));
    const Reply error(xcb_request_check(x, cookie));
    if (error) {
        return false;
    }
    m_screen = size;
    return true;
}

bool RandrHeads::setHead(std::size_t head, const std::optional<Rect>& rect) {
    xcb_connection_t* const x = m_connection.x();
    Output& output = m_outputs[head];
    xcb_randr_set_crtc_config_cookie_t cookie{};
    if (rect) {
        const auto mode = modeFor(output, rect->size);
        if (!mode) {
            return false;
        }
        cookie = xcb_randr_set_crtc_config(x, output.crtc, XCB_CURRENT_TIME, m_configTime,
                                           static_cast<std::int16_t>(rect->at.x), static_cast<std::int16_t>(rect->at.y),
                                           *mode, XCB_RANDR_ROTATION_ROTATE_0, 1, &output.id);
    } else {
        cookie = xcb_randr_set_crtc_config(x, output.crtc, XCB_CURRENT_TIME, m_configTime, 0, 0, XCB_NONE,
                                           XCB_RANDR_ROTATION_ROTATE_0, 0, nullptr);
    }
    const Reply reply(xcb_randr_set_crtc_config_reply(x, cookie, nullptr));
    return reply && reply->status == XCB_RANDR_SET_CONFIG_SUCCESS;
}

void RandrHeads::apply(const HeadRects& wanted) {
    if (m_outputs.empty() || wanted == m_rects) {
        return;
    }
    xcb_connection_t* const x = m_connection.x();
    const Size screen = roomyScreenFor(wanted, m_screen, m_largestScreen);
    // Nobody sees the steps between.
    xcb_grab_server(x);
    bool done = resizeScreen({std::max(screen.width, m_screen.width), std::max(screen.height, m_screen.height)});
    for (std::size_t i = 0; i < m_outputs.size(); ++i) {
        if (wanted[i] != m_rects[i]) {
            done = setHead(i, wanted[i]) && done;
        }
    }
    done = done && resizeScreen(screen);
    xcb_ungrab_server(x);
    if (done) {
        m_rects = wanted;
    } else {
        readRects();
    }
    forgetUnusedModes();
}

void RandrHeads::showAgain() {
    if (m_outputs.empty()) {
        return;
    }
    xcb_grab_server(m_connection.x());
    for (std::size_t i = 0; i < m_outputs.size(); ++i) {
        // The same again would change nothing, so the driver would not do it.
        if (m_rects[i] && !(setHead(i, std::nullopt) && setHead(i, m_rects[i]))) {
            m_rects[i].reset(); // so that the next settling tries it
        }
    }
    xcb_ungrab_server(m_connection.x());
}

/// Each size that a user drags a window through would leave one.
void RandrHeads::forgetUnusedModes() {
    xcb_connection_t* const x = m_connection.x();
    for (std::size_t i = 0; i < m_outputs.size(); ++i) {
        std::erase_if(m_outputs[i].modes, [&](xcb_randr_mode_t id) {
            const auto mode = std::find_if(m_modes.begin(), m_modes.end(), [id](const Mode& m) { return m.id == id; });
            if (mode == m_modes.end() || !mode->isOurs || (m_rects[i] && m_rects[i]->size == mode->size)) {
                return false;
            }
            xcb_randr_delete_output_mode(x, m_outputs[i].id, id);
            return true;
        });
    }
    std::erase_if(m_modes, [&](const Mode& mode) {
        const bool isUsed = std::any_of(m_rects.begin(), m_rects.end(),
                                        [&](const auto& rect) { return rect && rect->size == mode.size; });
        if (mode.isOurs && !isUsed) {
            xcb_randr_destroy_mode(x, mode.id);
        }
        return mode.isOurs && !isUsed;
    });
}

} // namespace bulkhead::session
