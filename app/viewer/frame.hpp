// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/labels.hpp"

#include <QFont>
#include <QMargins>
#include <QRect>
#include <QString>

class QPainter;

namespace bulkhead::viewer {

/// What a domain has of sound, and its user has made of it.
enum class SoundState { None, On, Muted };

/// What the frame around a guest window says. All of it is the host's own knowledge.
struct FrameLook {
    QString domain;
    client::Label label;
    client::Theme theme = client::Theme::Light;
    QString stateWords; ///< empty while there is nothing to say
    SoundState sound = SoundState::None;
};

/// The frame's measures, in logical pixels. Multiples of four: whole pixels of the screen at every scale in quarters,
/// so that the guest's picture starts on one and stays sharp.
inline constexpr int kFrameBorder = 4;
inline constexpr int kFrameStrip = 28;

/// Where the switch for the sound is, at the right end of the strip; empty when there is none.
QRect soundSwitchRect(QSize window, SoundState sound);

/// Room that the frame takes on each side.
inline QMargins frameMargins() {
    return {kFrameBorder, kFrameStrip, kFrameBorder, kFrameBorder};
}

/// Paints the frame of a window of this size: borders in the label's colour and pattern, and above the picture a strip
/// with the label's text, the domain's name, a field of the pattern, and the state in words.
void paintFrame(QPainter& painter, QSize window, const FrameLook& look, const QFont& font);

} // namespace bulkhead::viewer
