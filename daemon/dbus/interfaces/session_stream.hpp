// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

/// What travels over the descriptor of org.bulkhead1.Domain.OpenSession: fixed records, one per SOCK_SEQPACKET packet,
/// in native byte order, between bulkhead-channel and a client (viewer, tray, command line). Part of the contract, like
/// the XML beside it.
///
/// bulkhead-channel keeps the list of the guest's windows and tells each client what is true now, not every step on the
/// way: a guest that changes its windows a thousand times a second costs a client at most kUpdatesPerSecond records for
/// each window (also when it comes and goes), 2 * kMostWindows * kUpdatesPerSecond in all, and two a second for a
/// session that comes and goes. Texts are valid UTF-8, without control or direction-changing characters, cut at a
/// character, ended by a zero byte. Numbers are within the limits below.
namespace bulkhead::session_stream {

constexpr std::uint32_t kMostWindows = 64; ///< a guest's further windows are not told of
constexpr std::uint32_t kMostHeads = 16;
constexpr std::uint32_t kSmallestSide = 64; ///< pixels
constexpr std::uint32_t kLargestSide = 4096;
constexpr std::uint32_t kMostApps = 512;
constexpr unsigned kUpdatesPerSecond = 20;

enum class CommandKind : std::uint32_t {
    CloseWindow = 1,
    ResizeWindow = 2, ///< a = width, b = height in pixels
    ActivateWindow = 3,
    ListApps = 4,  ///< answered by App records, then AppsListed
    LaunchApp = 5, ///< text = the app's id; answered by AppLaunched
    Keyboard = 6,  ///< text = "model\nlayout\nvariant\noptions"
    Dpi = 7,       ///< a = dots per inch, 48 to 480
    Locale = 8,    ///< text = "de_DE.UTF-8", for the apps launched from now on
};

struct Command {
    CommandKind kind{};
    std::uint32_t window = 0;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::array<char, 256> text{};
};

enum class EventKind : std::uint32_t {
    SessionUp = 1, ///< a = heads, b = 1. First on each connection; b = 0: the guest has no session (yet, or any more)
    WindowChanged = 2, ///< text = title, name = class; see the fields
    WindowGone = 3,
    App = 4,         ///< name = id, text = name, extra = categories
    AppsListed = 5,  ///< a = count
    AppLaunched = 6, ///< name = id, a = errno of the guest, 0: started
    Refused = 7,     ///< a = CommandKind that made no sense; the connection stays
};

enum class WindowKind : std::uint32_t { Normal = 0, Dialog = 1, Utility = 2 };

/// Bits of Event::flags.
constexpr std::uint32_t kSharesHead = 1; ///< heads ran out: one of several windows on the last head
constexpr std::uint32_t kWantsAttention = 2;
constexpr std::uint32_t kActive = 4; ///< has the guest's keyboard focus

struct Event {
    EventKind kind{};
    std::uint32_t window = 0; ///< never 0 for a window
    std::uint32_t head = 0;   ///< the SPICE display channel that shows it
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint32_t width = 0; ///< pixels, of its head
    std::uint32_t height = 0;
    std::uint32_t minWidth = 0;
    std::uint32_t minHeight = 0;
    std::uint32_t transientFor = 0; ///< a window, or 0
    WindowKind windowKind{};
    std::uint32_t flags = 0;
    std::array<char, 516> text{};
    std::array<char, 132> name{};
    std::array<char, 260> extra{};
};

static_assert(std::is_trivially_copyable_v<Command> && sizeof(Command) == 272);
static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) == 956);

} // namespace bulkhead::session_stream
