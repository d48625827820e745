// SPDX-License-Identifier: Apache-2.0
#include "viewer/session_link.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bulkhead::viewer {
namespace {

namespace stream = session_stream;
using stream::CommandKind;
using stream::EventKind;

constexpr std::chrono::milliseconds kRetry{50};
constexpr std::size_t kMostWaiting = 256;

stream::Command commandOf(CommandKind kind, std::uint32_t window) {
    stream::Command command;
    command.kind = kind;
    command.window = window;
    return command;
}

/// Only the last size of a window, the last settings and one activation matter: a newer command takes the place of one
/// that has not left yet.
bool replaces(const stream::Command& newer, const stream::Command& older) {
    return newer.kind == older.kind && newer.window == older.window;
}

} // namespace

SessionLink::SessionLink(client::Descriptor descriptor, QObject* parent)
    : QObject(parent)
    , m_stream(std::move(descriptor),
               {.received = [this](const stream::Event& event) { take(event); }, .ended = [this] { Q_EMIT ended(); }}) {
    m_retry.setSingleShot(true);
    m_retry.setInterval(kRetry);
    connect(&m_retry, &QTimer::timeout, this, &SessionLink::flush);
}

SessionLink::~SessionLink() = default;

void SessionLink::take(const stream::Event& event) {
    switch (event.kind) {
    case EventKind::SessionUp:
        Q_EMIT sessionState(event.b != 0, std::exchange(m_hadState, true));
        return;
    case EventKind::WindowChanged:
        if (const auto window = guestWindowFrom(event)) {
            Q_EMIT windowChanged(*window);
        } else {
            ++m_malformed;
        }
        return;
    case EventKind::WindowGone:
        Q_EMIT windowGone(event.window);
        return;
    case EventKind::App:
    case EventKind::AppsListed:
    case EventKind::AppLaunched:
    case EventKind::Refused:
        return; // nothing that a viewer asks for
    }
    ++m_malformed;
}

void SessionLink::send(const stream::Command& command) {
    std::erase_if(m_outgoing, [&](const stream::Command& waiting) { return replaces(command, waiting); });
    if (m_outgoing.size() >= kMostWaiting) {
        m_outgoing.pop_front();
    }
    m_outgoing.push_back(command);
    flush();
}

void SessionLink::flush() {
    while (!m_outgoing.empty() && m_stream.send(m_outgoing.front())) {
        m_outgoing.pop_front();
    }
    if (!m_outgoing.empty()) {
        m_retry.start(); // it takes no more for now; or it has ended, which is told apart
    }
}

void SessionLink::closeWindow(std::uint32_t window) {
    send(commandOf(CommandKind::CloseWindow, window));
}

void SessionLink::resizeWindow(std::uint32_t window, QSize pixels) {
    const auto side = [](int value) {
        return std::clamp(static_cast<std::uint32_t>(std::max(value, 0)), stream::kSmallestSide, stream::kLargestSide);
    };
    stream::Command command = commandOf(CommandKind::ResizeWindow, window);
    command.a = side(pixels.width());
    command.b = side(pixels.height());
    send(command);
}

void SessionLink::activateWindow(std::uint32_t window) {
    send(commandOf(CommandKind::ActivateWindow, window));
}

void SessionLink::setKeyboard(const QString& model, const QString& layout, const QString& variant,
                              const QString& options) {
    const QString text = QStringList{model, layout, variant, options}.join(QLatin1Char('\n'));
    if (static_cast<std::size_t>(text.toUtf8().size()) < stream::Command().text.size()) { // half would be another one
        send(client::commandWith(CommandKind::Keyboard, text));
    }
}

void SessionLink::setDpi(int dpi) {
    stream::Command command = commandOf(CommandKind::Dpi, 0);
    command.a = static_cast<std::uint32_t>(std::clamp(dpi, 48, 480));
    send(command);
}

void SessionLink::setLocale(const QString& locale) {
    send(client::commandWith(CommandKind::Locale, locale));
}

} // namespace bulkhead::viewer
