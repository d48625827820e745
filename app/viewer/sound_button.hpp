// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/frame.hpp"

#include <QAbstractButton>

namespace bulkhead::viewer {

/// The switch for a domain's sound, in the frame: a loudspeaker, struck out while it is muted. It takes no keyboard,
/// which is the guest's.
class SoundButton : public QAbstractButton {
    Q_OBJECT

public:
    explicit SoundButton(QWidget* parent = nullptr);

    void setLook(const FrameLook& look);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    FrameLook m_look;
};

} // namespace bulkhead::viewer
