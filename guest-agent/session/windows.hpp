// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/geometry.hpp"
#include "session/layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The rules of which window is on which head: values only, nothing of X.
namespace bulkhead::session {

using XWindow = std::uint32_t; ///< X's id; X uses it again for another window
using Number = std::uint32_t;  ///< ours, never used again

enum class Kind { Normal, Dialog, Utility };

/// What its program says of a window.
struct Facts {
    Kind kind = Kind::Normal;
    XWindow transientFor = 0;       ///< 0: none
    bool transientForGroup = false; ///< for all windows of its group
    XWindow group = 0;              ///< group leader, or 0
    std::string title;
    std::string appClass;
    Size least; ///< 0: any
    bool urgent = false;
};

struct Window {
    XWindow xid = 0;
    Number number = 0;
    Facts facts;
    Size wanted;             ///< the size it had or asked for when it came
    bool ownsHead = true;    ///< false: it is on the head of `anchor`
    XWindow anchor = 0;      ///< the window with a head of its own that it belongs to, or 0
    bool isTooLarge = false; ///< did not fit its anchor's head when it came, and got one of its own
    bool wasJudged = false;
    std::optional<unsigned> head;
    bool sharesHead = false;
    bool demandsAttention = false;
    bool sizedByHost = false; ///< from then on its own wishes for another size do not count
};

/// The windows that are managed, in the order they came, and the heads they are on.
class Windows {
public:
    explicit Windows(unsigned heads);

    Window& add(XWindow xid, Facts facts, Size wanted);
    void remove(XWindow xid);
    [[nodiscard]] Window* find(XWindow xid);
    [[nodiscard]] const Window* find(XWindow xid) const;
    [[nodiscard]] Window* findNumber(Number number);
    [[nodiscard]] const std::vector<Window>& all() const { return m_windows; }
    [[nodiscard]] std::vector<Window>& all() { return m_windows; }

    /// The host's word on a window's size, which is its head's. False: it has no head of its own.
    bool resize(Window& window, Size size);
    /// The program's wish; counts until the host has given the window a size.
    void wish(Window& window, Size size);

    /// Gives each window its head, after windows came or went or changed what they are transient for. Who has a head
    /// keeps it; windows that share the last one move to heads that became free. A dialog is on its window's head,
    /// unless it is larger than that and another one is free.
    void assignHeads();

    /// What each head is to measure; head 0 is never off, so that the machine always has a screen.
    [[nodiscard]] const HeadSizes& headSizes() const { return m_sizes; }
    /// What the heads measure in truth.
    void setHeadSizes(const HeadRects& actual);
    [[nodiscard]] unsigned heads() const { return static_cast<unsigned>(m_sizes.size()); }

private:
    [[nodiscard]] XWindow anchorOf(const Window& window) const;
    [[nodiscard]] XWindow parentOf(const Window& window) const;
    [[nodiscard]] std::vector<unsigned> users() const;
    void moveFromShared();
    [[nodiscard]] unsigned freeHead() const;
    void judgeDialogs();

    std::vector<Window> m_windows;
    HeadSizes m_sizes;
    Number m_lastNumber = 0;
};

/// Where a dialog goes on its head: where it asks to be (relative to the screen), else in the middle; never over the
/// head's border, never larger than the head.
[[nodiscard]] Rect placeDialog(const Rect& head, Size size, std::optional<Point> asked);

} // namespace bulkhead::session
