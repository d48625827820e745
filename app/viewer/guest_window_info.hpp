// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dbus/interfaces/session_stream.hpp"

#include <QSize>
#include <QString>

#include <optional>
#include <string_view>

namespace bulkhead::viewer {

/// One of the guest's windows as a value that is within its limits. All of it is the guest's word: for show, never for
/// trust.
struct GuestWindow {
    std::uint32_t id = 0;   ///< never 0
    std::uint32_t head = 0; ///< the SPICE display channel that shows it
    QSize size;             ///< of its head, pixels
    QSize minimum;          ///< pixels; zero: any
    std::uint32_t transientFor = 0;
    session_stream::WindowKind kind = session_stream::WindowKind::Normal;
    bool sharesHead = false;
    bool wantsAttention = false;
    bool active = false;
    QString title;
    QString appClass;
    bool operator==(const GuestWindow&) const = default;
};

/// Foreign text for a title, a tab or a label: without characters that break lines, change direction or do not show,
/// and not longer than `most` characters, the last being "…" when something was cut.
QString displayText(const QString& text, qsizetype most);

/// "[domain] title", cut for a title bar.
QString hostTitle(const QString& domain, const QString& guestTitle);

/// Checks a WindowChanged record. nullopt: a field is out of its range or a text has no end.
std::optional<GuestWindow> guestWindowFrom(const session_stream::Event& event);

/// The text of a field of a record; nullopt when no zero byte ends it.
std::optional<QString> textOf(const char* field, std::size_t size);

} // namespace bulkhead::viewer
