// SPDX-License-Identifier: Apache-2.0
#include "viewer/guest_window_info.hpp"

#include <QList>

#include <algorithm>
#include <array>
#include <cstring>

namespace bulkhead::viewer {
namespace {

namespace stream = session_stream;

constexpr qsizetype kTitleLength = 160;

bool isSide(std::uint32_t side) {
    return side >= 1 && side <= stream::kLargestSide;
}

bool isKind(stream::WindowKind kind) {
    return kind == stream::WindowKind::Normal || kind == stream::WindowKind::Dialog ||
           kind == stream::WindowKind::Utility;
}

QSize sizeOf(std::uint32_t width, std::uint32_t height) {
    return {static_cast<int>(width), static_cast<int>(height)};
}

/// Characters that show nothing, break lines, or change how others show.
bool isHarmful(char32_t character) {
    constexpr std::array kHarmful{QChar::Other_Control,      QChar::Other_Format,      QChar::Other_Surrogate,
                                  QChar::Other_PrivateUse,   QChar::Other_NotAssigned, QChar::Separator_Line,
                                  QChar::Separator_Paragraph};
    return std::find(kHarmful.begin(), kHarmful.end(), QChar::category(character)) != kHarmful.end();
}

bool isMark(char32_t character) {
    const QChar::Category category = QChar::category(character);
    return category == QChar::Mark_NonSpacing || category == QChar::Mark_Enclosing;
}

} // namespace

QString displayText(const QString& text, qsizetype most) {
    constexpr int kMostMarks = 2; // a pile of them would reach over what is above and below the text
    QString clean;
    qsizetype length = 0;
    int marks = 0;
    bool blank = true; // drops leading blanks, and all but one in a row
    for (const uint character : text.toUcs4()) {
        const bool isBlank = QChar::isSpace(character);
        marks = isMark(character) ? marks + 1 : 0;
        if ((isHarmful(character) && !isBlank) || (isBlank && blank) || marks > kMostMarks) {
            continue;
        }
        if (length == most - 1) {
            clean += QChar(0x2026);
            break;
        }
        blank = isBlank;
        const char32_t one = character;
        clean += isBlank ? QStringLiteral(" ") : QString::fromUcs4(&one, 1);
        ++length;
    }
    return clean.trimmed();
}

QString hostTitle(const QString& domain, const QString& guestTitle) {
    // "[*]" is Qt's own mark for a changed document; a guest's is to show as it is.
    const QString title = displayText(guestTitle, kTitleLength).replace(QLatin1String("[*]"), QLatin1String("[*][*]"));
    return title.isEmpty() ? QLatin1Char('[') + domain + QLatin1Char(']')
                           : QLatin1Char('[') + domain + QLatin1String("] ") + title;
}

std::optional<QString> textOf(const char* field, std::size_t size) {
    const auto* end = static_cast<const char*>(std::memchr(field, '\0', size));
    if (end == nullptr) {
        return std::nullopt;
    }
    return QString::fromUtf8(field, end - field);
}

std::optional<GuestWindow> guestWindowFrom(const stream::Event& event) {
    const auto title = textOf(event.text.data(), event.text.size());
    const auto appClass = textOf(event.name.data(), event.name.size());
    const bool sane = event.window != 0 && event.head < stream::kMostHeads && isSide(event.width) &&
                      isSide(event.height) && event.minWidth <= stream::kLargestSide &&
                      event.minHeight <= stream::kLargestSide && isKind(event.windowKind) &&
                      event.transientFor != event.window;
    if (!sane || !title || !appClass) {
        return std::nullopt;
    }
    GuestWindow window;
    window.id = event.window;
    window.head = event.head;
    window.size = sizeOf(event.width, event.height);
    window.minimum = sizeOf(event.minWidth, event.minHeight);
    window.transientFor = event.transientFor;
    window.kind = event.windowKind;
    window.sharesHead = (event.flags & stream::kSharesHead) != 0;
    window.wantsAttention = (event.flags & stream::kWantsAttention) != 0;
    window.active = (event.flags & stream::kActive) != 0;
    window.title = *title;
    window.appClass = *appClass;
    return window;
}

} // namespace bulkhead::viewer
