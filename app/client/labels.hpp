// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// Labels: how people tell domains apart. Each has a colour, a pattern and a short text, so that nobody depends on
/// seeing colours. Plain values; widgets/label_paint.hpp draws them.
namespace bulkhead::client {

struct Rgb {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
    bool operator==(const Rgb&) const = default;
};

enum class LabelPattern { Solid, Slashes, Backslashes, Checks, Dots, Bars, Lines, Cross, Zigzag };

/// Light: dark text on a light window.
enum class Theme { Light, Dark };

/// For one theme. The edge surrounds the fill and stands out from every usual window background, so that a pale fill
/// stays visible.
struct LabelColours {
    Rgb fill;
    Rgb edge;
    Rgb ink;  ///< text on the fill
    Rgb mark; ///< the pattern on the fill
};

struct Label {
    std::string_view name; ///< as in a domain's definition; ASCII
    std::string_view text; ///< two or three letters
    LabelPattern pattern = LabelPattern::Solid;
    LabelColours light;
    LabelColours dark;

    [[nodiscard]] const LabelColours& colours(Theme theme) const { return theme == Theme::Dark ? dark : light; }
};

/// All labels, in the order in which a person chooses among them.
std::span<const Label> labels();

/// The label of that name. A name that is none of ours (a definition written by hand, a newer daemon) gives a label of
/// its own, with an empty name, that looks like no other.
const Label& labelNamed(std::string_view name);

/// Contrast of two colours as WCAG 2 defines it, 1 to 21.
double contrast(Rgb one, Rgb other);

} // namespace bulkhead::client
