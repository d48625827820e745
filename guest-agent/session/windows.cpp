// SPDX-License-Identifier: Apache-2.0
#include "session/windows.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::session {
namespace {

/// A chain of windows that are transient for each other is followed this far.
constexpr int kLongestChain = 16;
constexpr Size kFirstSize{1024, 768};

} // namespace

Windows::Windows(unsigned heads)
    : m_sizes(std::max(heads, 1U)) {
    m_sizes.front() = kFirstSize;
}

Window& Windows::add(XWindow xid, Facts facts, Size wanted) {
    Window window;
    window.xid = xid;
    window.number = ++m_lastNumber;
    window.facts = std::move(facts);
    window.wanted = wanted;
    return m_windows.emplace_back(std::move(window));
}

void Windows::remove(XWindow xid) {
    std::erase_if(m_windows, [xid](const Window& window) { return window.xid == xid; });
}

const Window* Windows::find(XWindow xid) const {
    const auto found =
        std::find_if(m_windows.begin(), m_windows.end(), [xid](const Window& window) { return window.xid == xid; });
    return found == m_windows.end() ? nullptr : &*found;
}

Window* Windows::find(XWindow xid) {
    return const_cast<Window*>(std::as_const(*this).find(xid));
}

Window* Windows::findNumber(Number number) {
    const auto found = std::find_if(m_windows.begin(), m_windows.end(),
                                    [number](const Window& window) { return window.number == number; });
    return found == m_windows.end() ? nullptr : &*found;
}

bool Windows::resize(Window& window, Size size) {
    if (!window.ownsHead || !window.head) {
        return false;
    }
    auto& head = m_sizes.at(*window.head);
    // Its own size given back does not mean that the host has a will.
    window.sizedByHost = window.sizedByHost || head != clampToHead(size);
    head = clampToHead(size);
    return true;
}

void Windows::wish(Window& window, Size size) {
    window.wanted = size;
    if (window.ownsHead && window.head && !window.sizedByHost && !window.sharesHead) {
        m_sizes.at(*window.head) = clampToHead(size);
    }
}

/// The window that `window` names as its parent, if that is here.
XWindow Windows::parentOf(const Window& window) const {
    const Facts& facts = window.facts;
    if (facts.transientFor != 0 && facts.transientFor != window.xid && find(facts.transientFor) != nullptr) {
        return facts.transientFor;
    }
    if (facts.transientForGroup && facts.group != 0) {
        for (const Window& other : m_windows) {
            if (other.xid != window.xid && other.facts.group == facts.group && !other.facts.transientForGroup) {
                return other.xid;
            }
        }
    }
    return 0;
}

XWindow Windows::anchorOf(const Window& window) const {
    const Window* at = &window;
    for (int i = 0; i < kLongestChain; ++i) {
        const XWindow parent = at->isTooLarge ? 0 : parentOf(*at);
        if (parent == 0) {
            return at == &window ? 0 : at->xid;
        }
        at = find(parent);
    }
    return 0; // a loop
}

/// How many windows have each head for their own.
std::vector<unsigned> Windows::users() const {
    std::vector<unsigned> users(m_sizes.size());
    for (const Window& window : m_windows) {
        if (window.ownsHead && window.head) {
            ++users.at(*window.head);
        }
    }
    return users;
}

/// The first that no window has for its own; heads() when there is none.
unsigned Windows::freeHead() const {
    const auto used = users();
    return static_cast<unsigned>(std::find(used.begin(), used.end(), 0U) - used.begin());
}

/// Once for each, when it comes: it should not jump about when sizes change.
void Windows::judgeDialogs() {
    for (Window& window : m_windows) {
        if (window.ownsHead || std::exchange(window.wasJudged, true)) {
            continue;
        }
        window.anchor = anchorOf(window); // another one, if that of its window was too large just now
        const Window* const anchor = find(window.anchor);
        const Size room = m_sizes.at(*anchor->head).value_or(Size{});
        const unsigned free = freeHead();
        if ((window.wanted.width > room.width || window.wanted.height > room.height) && free < heads()) {
            window.isTooLarge = true;
            window.anchor = 0;
            window.ownsHead = true;
            window.head = free;
            m_sizes.at(free) = clampToHead(window.wanted);
        }
    }
    for (Window& window : m_windows) {
        window.anchor = window.ownsHead ? 0 : anchorOf(window);
    }
}

void Windows::assignHeads() {
    for (Window& window : m_windows) {
        window.anchor = anchorOf(window);
        window.ownsHead = window.anchor == 0;
        if (!window.ownsHead) {
            window.head.reset();
        }
    }
    moveFromShared();
    const unsigned last = heads() - 1;
    for (Window& window : m_windows) {
        if (!window.ownsHead || window.head) {
            continue;
        }
        const unsigned free = freeHead();
        if (free <= last) {
            window.head = free;
            m_sizes.at(free) = clampToHead(window.wanted);
        } else {
            window.head = last;
        }
    }
    judgeDialogs();
    const auto used = users();
    for (Window& window : m_windows) {
        if (!window.ownsHead) {
            window.head = find(window.anchor)->head;
        }
        window.sharesHead = used.at(*window.head) > 1;
    }
    for (unsigned i = 1; i < heads(); ++i) {
        if (used.at(i) == 0) {
            m_sizes.at(i).reset();
        }
    }
}

void Windows::moveFromShared() {
    const unsigned last = heads() - 1;
    bool isFirst = true; // the one that has been there longest stays
    for (Window& window : m_windows) {
        if (!window.ownsHead || window.head != last) {
            continue;
        }
        if (std::exchange(isFirst, false)) {
            continue;
        }
        const unsigned free = freeHead();
        if (free >= last) {
            return;
        }
        m_sizes.at(free) = m_sizes.at(last);
        window.head = free;
    }
}

void Windows::setHeadSizes(const HeadRects& actual) {
    for (std::size_t i = 0; i < m_sizes.size() && i < actual.size(); ++i) {
        if (m_sizes[i] && actual[i]) {
            m_sizes[i] = actual[i]->size;
        }
    }
}

Rect placeDialog(const Rect& head, Size size, std::optional<Point> asked) {
    const Size fitting{std::clamp(size.width, 1, head.size.width), std::clamp(size.height, 1, head.size.height)};
    const Point middle{head.at.x + (head.size.width - fitting.width) / 2,
                       head.at.y + (head.size.height - fitting.height) / 2};
    const Point at = asked.value_or(middle);
    return {{std::clamp(at.x, head.at.x, head.right() - fitting.width),
             std::clamp(at.y, head.at.y, head.bottom() - fitting.height)},
            fitting};
}

} // namespace bulkhead::session
