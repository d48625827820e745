// SPDX-License-Identifier: Apache-2.0
#include "client/labels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bulkhead::client {
namespace {

constexpr Rgb rgb(std::uint32_t value) {
    return {static_cast<std::uint8_t>(value >> 16U), static_cast<std::uint8_t>(value >> 8U),
            static_cast<std::uint8_t>(value)};
}

// A test checks the contrasts, and that no two labels share a pattern or a text.
constexpr std::array kLabels{
    Label{.name = "red",
          .text = "RED",
          .pattern = LabelPattern::Slashes,
          .light = {rgb(0xc4262e), rgb(0x8e1219), rgb(0xffffff), rgb(0x7d0d14)},
          .dark = {rgb(0xe5534b), rgb(0xff8a80), rgb(0x1c0302), rgb(0x94221c)}},
    Label{.name = "orange",
          .text = "ORG",
          .pattern = LabelPattern::Backslashes,
          .light = {rgb(0xf08a1d), rgb(0x9a4b00), rgb(0x1b1200), rgb(0xa95200)},
          .dark = {rgb(0xee9033), rgb(0xffb870), rgb(0x1b1000), rgb(0x9d5200)}},
    Label{.name = "yellow",
          .text = "YEL",
          .pattern = LabelPattern::Checks,
          .light = {rgb(0xf5cd2f), rgb(0x7d6300), rgb(0x1f1900), rgb(0xa88500)},
          .dark = {rgb(0xecc835), rgb(0xffe27a), rgb(0x1a1500), rgb(0x957700)}},
    Label{.name = "green",
          .text = "GRN",
          .pattern = LabelPattern::Solid,
          .light = {rgb(0x23803c), rgb(0x125a26), rgb(0xffffff), rgb(0x23803c)},
          .dark = {rgb(0x3fae5e), rgb(0x7fd898), rgb(0x03170a), rgb(0x3fae5e)}},
    Label{.name = "gray",
          .text = "GRY",
          .pattern = LabelPattern::Dots,
          .light = {rgb(0x6b737b), rgb(0x4a5158), rgb(0xffffff), rgb(0xc6cdd4)},
          .dark = {rgb(0x98a1a9), rgb(0xc3cad0), rgb(0x101417), rgb(0x545c63)}},
    Label{.name = "blue",
          .text = "BLU",
          .pattern = LabelPattern::Bars,
          .light = {rgb(0x1f66c1), rgb(0x12458a), rgb(0xffffff), rgb(0x0f3a75)},
          .dark = {rgb(0x5b9bee), rgb(0x9cc5ff), rgb(0x04122a), rgb(0x275a9f)}},
    Label{.name = "purple",
          .text = "PUR",
          .pattern = LabelPattern::Cross,
          .light = {rgb(0x7f3fb0), rgb(0x592a7e), rgb(0xffffff), rgb(0xbd8ee2)},
          .dark = {rgb(0xb58be0), rgb(0xd7bbf5), rgb(0x180528), rgb(0x6f429d)}},
    Label{.name = "black",
          .text = "BLK",
          .pattern = LabelPattern::Lines,
          .light = {rgb(0x1c1f22), rgb(0x000000), rgb(0xffffff), rgb(0x7b848c)},
          .dark = {rgb(0x0c0e10), rgb(0xaab1b8), rgb(0xf4f6f8), rgb(0x767f87)}},
};

constexpr Label kUnknown{.name = "",
                         .text = "??",
                         .pattern = LabelPattern::Zigzag,
                         .light = {rgb(0xf2f2f2), rgb(0x5a5a5a), rgb(0x202020), rgb(0x8a8a8a)},
                         .dark = {rgb(0x3a3f44), rgb(0xb0b6bc), rgb(0xf4f6f8), rgb(0x959ca3)}};

double linear(std::uint8_t channel) {
    const double part = channel / 255.0;
    return part <= 0.03928 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
}

double luminance(Rgb colour) {
    return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

} // namespace

std::span<const Label> labels() {
    return kLabels;
}

const Label& labelNamed(std::string_view name) {
    const auto* found = std::find_if(kLabels.begin(), kLabels.end(),
                                     [name](const Label& label) { return !name.empty() && label.name == name; });
    return found == kLabels.end() ? kUnknown : *found;
}

double contrast(Rgb one, Rgb other) {
    const auto [low, high] = std::minmax({luminance(one), luminance(other)});
    return (high + 0.05) / (low + 0.05);
}

} // namespace bulkhead::client
