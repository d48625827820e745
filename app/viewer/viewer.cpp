// SPDX-License-Identifier: Apache-2.0
#include "viewer/viewer.hpp"

#include "client/user_locale.hpp"
#include "widgets/label_paint.hpp"

#include <QApplication>
#include <QScreen>
#include <QWindow>

#include <algorithm>
#include <chrono>
#include <utility>

namespace bulkhead::viewer {
namespace {

using namespace std::chrono_literals;

constexpr int kWindowBurst = 16; ///< windows that may open at once
constexpr int kWindowsPerSecond = 4;
constexpr auto kApplyInterval = 30ms; ///< many changes, one repaint
constexpr auto kRefreshTime = 2s;     ///< for the list of windows that a new session stream begins with
constexpr auto kFarewell = 2s;        ///< how long "has stopped" stands before the windows go
constexpr auto kClosePatience = 5s;
constexpr auto kCloseForgotten = 30s;
constexpr qsizetype kTabLength = 40;
constexpr qsizetype kReasonLength = 300;
constexpr QSize kStandInSize(960, 600);
constexpr auto kLasting = 10s;
constexpr auto kStandInDelay = 700ms; ///< a domain with open windows shows those, and nothing flashes up before

/// A connection that held counts as good; one that breaks again and again does not get quicker by that.
void forgiveIfLasting(Backoff& backoff, bool wasUp, Instant since) {
    if (wasUp && Clock::now() - since >= kLasting) {
        backoff.reset();
    }
}

} // namespace

Viewer::Viewer(DomainGate& gate, const ViewerOptions& options, std::unique_ptr<SoundOutput> sound, QObject* parent)
    : QObject(parent)
    , m_gate(gate)
    , m_options(options)
    , m_sound(std::move(sound))
    , m_display([this](client::Callback<client::Descriptor> done) { m_gate.openDisplay(std::move(done)); })
    , m_opening(kWindowBurst, kWindowsPerSecond) {
    for (QTimer* timer : {&m_displayRetry, &m_sessionRetry, &m_refresh, &m_applyTimer, &m_endTimer}) {
        timer->setSingleShot(true);
    }
    m_mayStandIn = m_options.wholeDesktop;
    QTimer::singleShot(kStandInDelay, this, [this] {
        m_mayStandIn = true;
        updateStandIn();
        updateOverlays();
    });
    m_refresh.setInterval(kRefreshTime);
    m_endTimer.setInterval(kFarewell);
    connect(&m_displayRetry, &QTimer::timeout, this, &Viewer::connectDisplay);
    connect(&m_sessionRetry, &QTimer::timeout, this, &Viewer::connectSession);
    connect(&m_refresh, &QTimer::timeout, this, &Viewer::endRefresh);
    connect(&m_applyTimer, &QTimer::timeout, this, &Viewer::apply);
    connect(&m_endTimer, &QTimer::timeout, this, &Viewer::end);
    connect(&m_display, &DisplaySession::connected, this, [this] {
        m_displayLink = Link::Up;
        m_displaySince = Clock::now();
        updateOverlays();
    });
    connect(&m_display, &DisplaySession::lost, this, &Viewer::loseDisplay);
    connect(&m_display, &DisplaySession::idle, this, [this] {
        if (m_ended) {
            Q_EMIT finished(m_status, m_why);
        }
    });
    connect(&m_gate, &DomainGate::factsChanged, this, &Viewer::takeFacts);
    connect(&m_gate, &DomainGate::unreachable, this, &Viewer::noteUnreachable);
    connect(&m_gate, &DomainGate::removed, this, [this] {
        DomainFacts gone = m_facts.value_or(DomainFacts());
        gone.state = QStringLiteral("removed");
        takeFacts(gone);
    });
}

Viewer::~Viewer() {
    // Windows release keys and buttons through the display when they go.
    m_windows.clear();
    m_standIn.reset();
}

void Viewer::start() {
    m_gate.watch();
}

bool Viewer::runs() const {
    return m_facts && (m_facts->state == QLatin1String("running") || m_facts->state == QLatin1String("paused"));
}

bool Viewer::isOver() const {
    static const QStringList kOver{QStringLiteral("stopped"), QStringLiteral("suspended"), QStringLiteral("failed"),
                                   QStringLiteral("removed")};
    return m_facts && kOver.contains(m_facts->state);
}

// --- The domain ------------------------------------------------------------------------------------------------------

void Viewer::takeFacts(const DomainFacts& facts) {
    const bool first = !m_facts;
    if (!first && *m_facts == facts && !m_unreachable) {
        return;
    }
    m_facts = facts;
    m_unreachable = false;
    if (runs()) {
        m_endTimer.stop();
        // Not before its time: a retry that is due waits for its timer.
        if (m_displayLink == Link::Idle) {
            connectDisplay();
        }
        if (m_sessionLink == Link::Idle && !m_options.wholeDesktop) {
            connectSession();
        }
    } else if (isOver()) {
        m_display.stop();
        m_session.reset();
        m_sessionUp = false;
        m_displayLink = m_sessionLink = Link::Idle;
        for (QTimer* timer : {&m_displayRetry, &m_sessionRetry, &m_refresh}) {
            timer->stop();
        }
        const bool shown = !m_windows.empty() || m_standIn;
        if (!shown) {
            const QString why =
                first ? tr("the domain %1 is %2; start it with: bulkhead domain start %1").arg(facts.name, facts.state)
                      : QString();
            finish(first ? 1 : 0, why);
            return;
        }
        // A failure is read by a person before it goes away; an orderly end needs no reading.
        if (facts.state != QLatin1String("failed")) {
            m_endTimer.start();
        }
    }
    updateStandIn();
    for (const auto& [id, window] : m_windows) {
        window->setLook(look());
    }
    updateOverlays();
}

void Viewer::noteUnreachable(const QString& why) {
    if (!m_facts) {
        finish(1, why);
        return;
    }
    m_unreachable = true;
    m_trouble = displayText(why, kReasonLength);
    updateOverlays();
}

void Viewer::finish(int status, const QString& why) {
    if (std::exchange(m_ended, true)) {
        return;
    }
    m_status = status;
    m_why = why;
    for (QTimer* timer : {&m_displayRetry, &m_sessionRetry, &m_refresh, &m_applyTimer, &m_endTimer}) {
        timer->stop();
    }
    disconnect(&m_gate, nullptr, this, nullptr);
    m_windows.clear();
    m_standIn.reset();
    m_session.reset();
    m_display.stop();
    if (m_display.isIdle()) {
        Q_EMIT finished(m_status, m_why);
    }
}

// --- The two connections ---------------------------------------------------------------------------------------------

void Viewer::connectDisplay() {
    if (runs()) {
        m_displayLink = Link::Connecting;
        m_display.setSound(m_facts->hasSound ? m_sound.get() : nullptr);
        m_display.start();
        updateOverlays();
    }
}

void Viewer::loseDisplay(const QString& why) {
    if (m_ended) {
        return;
    }
    m_trouble = displayText(why, kReasonLength);
    forgiveIfLasting(m_displayBackoff, m_displayLink == Link::Up, m_displaySince);
    m_displayLink = runs() ? Link::Waiting : Link::Idle;
    if (runs()) {
        m_displayRetry.start(m_displayBackoff.next());
    }
    updateOverlays();
}

void Viewer::connectSession() {
    if (!runs()) {
        return;
    }
    m_sessionLink = Link::Connecting;
    m_gate.openSession([this](client::Outcome<client::Descriptor> opened) {
        if (m_ended || !runs() || m_sessionLink != Link::Connecting) {
            return;
        }
        if (!opened) {
            loseSession(QString::fromStdString(opened.error().message));
            return;
        }
        m_sessionLink = Link::Up;
        m_sessionSince = Clock::now();
        m_session = std::make_unique<SessionLink>(std::move(*opened));
        connect(m_session.get(), &SessionLink::sessionState, this, &Viewer::takeSessionState);
        connect(m_session.get(), &SessionLink::windowChanged, this,
                [this](const GuestWindow& window) { applySoon(m_model.changed(window)); });
        connect(m_session.get(), &SessionLink::windowGone, this,
                [this](quint32 window) { applySoon(m_model.gone(window)); });
        connect(
            m_session.get(), &SessionLink::ended, this,
            [this, link = m_session.get()] {
                if (m_session.get() == link) {
                    loseSession(tr("the stream of its windows ended"));
                }
            },
            Qt::QueuedConnection);
    });
}

void Viewer::loseSession(const QString& why) {
    m_session.reset();
    m_refresh.stop();
    m_trouble = displayText(why, kReasonLength);
    m_sessionUp = false;
    forgiveIfLasting(m_sessionBackoff, m_sessionLink == Link::Up, m_sessionSince);
    m_sessionLink = runs() ? Link::Waiting : Link::Idle;
    if (runs()) {
        m_sessionRetry.start(m_sessionBackoff.next());
    }
    updateStandIn();
    updateOverlays();
}

void Viewer::takeSessionState(bool up, bool anew) {
    m_sessionUp = up;
    if (!up || anew) {
        m_refresh.stop();
        applySoon(m_model.clear());
    }
    if (up) {
        m_model.beginRefresh();
        m_refresh.start();
        m_toldKeyboard.reset();
        m_toldDpi = 0;
        tellSettings();
        if (const QString locale = client::userLocale(); !locale.isEmpty()) {
            m_session->setLocale(locale);
        }
        for (const auto& [id, window] : m_windows) {
            window->repeatResize();
        }
    }
    updateStandIn();
    updateOverlays();
}

void Viewer::endRefresh() {
    applySoon(m_model.endRefresh());
}

void Viewer::tellSettings() {
    if (!m_session || !m_sessionUp) {
        return;
    }
    const auto keyboard = hostKeyboard();
    if (keyboard && keyboard != m_toldKeyboard) {
        m_toldKeyboard = keyboard;
        m_session->setKeyboard(keyboard->model, keyboard->layout, keyboard->variant, keyboard->options);
    }
    const QScreen* screen = QGuiApplication::primaryScreen();
    if (const FramedWindow* active = qobject_cast<FramedWindow*>(QApplication::activeWindow())) {
        screen = active->screen();
    }
    const int dpi = screen == nullptr ? 0 : guestDpi(*screen);
    if (dpi != 0 && dpi != m_toldDpi) {
        m_toldDpi = dpi;
        m_session->setDpi(dpi);
    }
}

void Viewer::switchSound() {
    if (!m_sound) {
        return;
    }
    m_isMuted = !m_isMuted;
    m_sound->setMuted(m_isMuted);
    for (FramedWindow* window : windows()) {
        window->setLook(look());
    }
    updateOverlays();
}

// --- Windows ---------------------------------------------------------------------------------------------------------

FrameLook Viewer::look() const {
    FrameLook look;
    look.domain = domain();
    look.label = client::labelNamed(m_facts ? m_facts->label.toStdString() : std::string());
    look.theme = widgets::themeOf(QApplication::palette());
    if (m_sound && m_facts && m_facts->hasSound) {
        look.sound = m_isMuted ? SoundState::Muted : SoundState::On;
    }
    return look;
}

void Viewer::applySoon(const WindowModel::Changes& changes) {
    for (const HostWindowChange& change : changes) {
        m_changed.insert(change.host);
    }
    if (!changes.empty() && !m_applyTimer.isActive()) {
        m_applyTimer.start(kApplyInterval);
    }
}

/// Makes the widgets what the model says, however many steps led there.
void Viewer::apply() {
    std::erase_if(m_windows, [this](const auto& entry) { return m_model.host(entry.first) == nullptr; });
    std::erase_if(m_closeAsked, [this](const auto& entry) { return m_model.host(entry.first) == nullptr; });
    std::optional<std::chrono::milliseconds> wait;
    for (const auto& [id, host] : m_model.hosts()) {
        const auto found = m_windows.find(id);
        if (found != m_windows.end()) {
            if (m_changed.contains(id)) {
                updateWindow(*found->second, host);
            }
        } else if (isOver()) {
            continue; // closed by the user meanwhile
        } else if (m_opening.take(Clock::now())) {
            openWindow(host);
        } else {
            wait = m_opening.wait(Clock::now());
        }
    }
    m_changed.clear();
    if (wait) {
        m_applyTimer.start(std::max(*wait, std::chrono::milliseconds(kApplyInterval)));
    }
    updateStandIn();
    updateOverlays();
}

void Viewer::openWindow(const HostWindow& host) {
    const GuestWindow* guest = m_model.window(host.current);
    if (guest == nullptr) {
        return;
    }
    std::unique_ptr<FramedWindow> window;
    if (m_standIn && !m_options.wholeDesktop) {
        window = std::move(m_standIn); // it stood for this one
        disconnect(window.get(), nullptr, this, nullptr);
        window->setClosable(false);
        window->setPlace(PictureFit::Place::TopLeft);
        window->repeatResize();
    } else {
        window = std::make_unique<FramedWindow>(m_display.head(host.head), m_display, look());
    }
    wire(*window, host.id);
    updateWindow(*window, host);
    window->sizeFor(guest->size);
    if (const HostWindow* parent = m_model.hostOf(guest->transientFor); parent != nullptr) {
        const auto shown = m_windows.find(parent->id);
        if (shown != m_windows.end() && guest->kind != session_stream::WindowKind::Normal) {
            window->winId(); // makes the native window that has the property
            shown->second->winId();
            window->windowHandle()->setTransientParent(shown->second->windowHandle());
        }
    }
    FramedWindow& shown = *window;
    m_windows.emplace(host.id, std::move(window));
    // A guest opens windows whenever it likes. One that comes while the user is in another domain, or in a program of
    // the host, must not take the keys that are meant for that: it is shown, and asks for a look.
    const bool takesKeyboard = !std::exchange(m_hadWindows, true) || QApplication::activeWindow() != nullptr;
    shown.setAttribute(Qt::WA_ShowWithoutActivating, !takesKeyboard);
    shown.setOverlay(overlayFor(shown));
    shown.show();
    if (!takesKeyboard) {
        QApplication::alert(&shown);
    }
}

void Viewer::updateWindow(FramedWindow& window, const HostWindow& host) {
    const GuestWindow* current = m_model.window(host.current);
    if (current == nullptr) {
        return;
    }
    WindowView view;
    view.title = hostTitle(domain(), current->title);
    view.appClass = current->appClass;
    view.current = host.current;
    view.minimum = current->minimum;
    for (const std::uint32_t id : host.windows) {
        if (const GuestWindow* guest = m_model.window(id)) {
            const QString title = displayText(guest->title, kTabLength);
            view.tabs.push_back({id, title.isEmpty() ? tr("(no title)") : title});
        }
    }
    window.setSource(m_display.head(host.head));
    window.setView(view);
    if (current->wantsAttention && !window.isActiveWindow()) {
        QApplication::alert(&window);
    }
}

void Viewer::wire(FramedWindow& window, HostWindowId id) {
    connect(&window, &FramedWindow::closeAsked, this, [this, id] { askToClose(id); });
    connect(&window, &FramedWindow::closed, this, [this, id] {
        // Only when the domain is over, so that nothing in the guest is lost by it.
        m_windows.at(id).release()->deleteLater();
        m_windows.erase(id);
        if (m_windows.empty() && !m_standIn) {
            end();
        }
    });
    connect(&window, &FramedWindow::activated, this, [this, id] {
        const HostWindow* host = m_model.host(id);
        if (host != nullptr && m_session) {
            m_session->activateWindow(host->current);
        }
        tellSettings();
    });
    connect(&window, &FramedWindow::soundSwitched, this, &Viewer::switchSound);
    connect(&window, &FramedWindow::pictureChanged, this, &Viewer::updateOverlays);
    connect(&window, &FramedWindow::resizeWanted, this, [this, id](QSize pixels) { sendResize(id, pixels); });
    connect(&window, &FramedWindow::tabChosen, this, [this, id](quint32 chosen) {
        applySoon(m_model.select(id, chosen));
        if (m_session) {
            m_session->activateWindow(chosen);
        }
    });
}

void Viewer::askToClose(HostWindowId id) {
    const HostWindow* host = m_model.host(id);
    if (host == nullptr) {
        return;
    }
    if (m_session) {
        m_session->closeWindow(host->current);
    }
    m_closeAsked.insert_or_assign(id, Clock::now());
    QTimer::singleShot(kClosePatience, this, &Viewer::updateOverlays);
    QTimer::singleShot(kCloseForgotten, this, &Viewer::updateOverlays);
    updateOverlays();
}

void Viewer::sendResize(HostWindowId id, QSize pixels) {
    const HostWindow* host = m_model.host(id);
    if (host != nullptr && m_session) {
        m_session->resizeWindow(host->current, pixels);
    }
}

std::vector<FramedWindow*> Viewer::windows() const {
    std::vector<FramedWindow*> all;
    for (const auto& [id, window] : m_windows) {
        all.push_back(window.get());
    }
    if (m_standIn) {
        all.push_back(m_standIn.get());
    }
    return all;
}

void Viewer::raiseAll() {
    m_options.background = false;
    m_hadWindows = !m_windows.empty();
    m_mayStandIn = true;
    updateStandIn();
    updateOverlays();
    for (FramedWindow* window : windows()) {
        window->show();
        window->raise();
        window->activateWindow();
    }
}

// --- The window that stands for the domain
// -----------------------------------------------------------------------------

bool Viewer::wantsStandIn() const {
    if (!m_facts || m_ended) {
        return false;
    }
    if (m_options.wholeDesktop) {
        return true;
    }
    return m_mayStandIn && m_windows.empty() && m_model.empty() && !m_options.background && !m_hadWindows;
}

void Viewer::updateStandIn() {
    if (!wantsStandIn()) {
        if (m_standIn && !isOver()) {
            m_standIn.reset();
        }
        return;
    }
    if (m_standIn) {
        m_standIn->setLook(look());
        return;
    }
    m_standIn = std::make_unique<FramedWindow>(m_display.head(0), m_display, look());
    m_standIn->setClosable(true);
    m_standIn->setPlace(PictureFit::Place::Centre);
    WindowView view;
    view.title = hostTitle(domain(), m_options.wholeDesktop ? tr("whole desktop") : QString());
    m_standIn->setView(view);
    m_standIn->sizeFor(kStandInSize);
    connect(m_standIn.get(), &FramedWindow::closed, this, [this] {
        m_standIn.release()->deleteLater();
        if (m_windows.empty()) {
            end();
        }
    });
    connect(m_standIn.get(), &FramedWindow::soundSwitched, this, &Viewer::switchSound);
    connect(m_standIn.get(), &FramedWindow::pictureChanged, this, &Viewer::updateOverlays);
    connect(m_standIn.get(), &FramedWindow::actionChosen, this, &Viewer::showWholeDesktop);
    connect(m_standIn.get(), &FramedWindow::resizeWanted, this, [this](QSize pixels) {
        if (m_options.wholeDesktop) {
            m_display.requestHeadSize(0, pixels);
        }
    });
    m_standIn->setOverlay(overlayFor(*m_standIn));
    m_standIn->show();
}

void Viewer::showWholeDesktop() {
    m_options.wholeDesktop = true;
    m_session.reset();
    m_sessionLink = Link::Idle;
    m_sessionRetry.stop();
    if (m_standIn) {
        WindowView view = m_standIn->view();
        view.title = hostTitle(domain(), tr("whole desktop"));
        m_standIn->setView(view);
    }
    updateOverlays();
}

// --- Words
// -------------------------------------------------------------------------------------------------------------

OverlayText Viewer::standInText() const {
    if (m_sessionUp) {
        return {tr("%1 is running").arg(domain()), tr("It has no open windows. Start an app in it to see one here."),
                tr("Show its whole screen")};
    }
    const QString reason = m_sessionLink == Link::Waiting ? m_trouble : QString();
    return {tr("%1 is starting its desktop").arg(domain()),
            reason.isEmpty() ? tr("Windows appear here as soon as it is up.") : reason, tr("Show its whole screen")};
}

OverlayText Viewer::overlayFor(const FramedWindow& window) const {
    const QString state = m_facts ? m_facts->state : QString();
    const bool isStandIn = &window == m_standIn.get();
    const bool wholeDesktop = isStandIn && m_options.wholeDesktop;
    if (state == QLatin1String("failed")) {
        const QString reason = displayText(m_facts->reason, kReasonLength);
        return {tr("Domain stopped: %1").arg(domain()), reason.isEmpty() ? tr("No reason is known.") : reason, {}};
    }
    if (isOver()) {
        return {tr("%1 has stopped").arg(domain()), tr("This window closes by itself."), {}};
    }
    if (state == QLatin1String("starting")) {
        return {tr("%1 is starting").arg(domain()), {}, {}};
    }
    if (state == QLatin1String("stopping")) {
        return {tr("%1 is stopping").arg(domain()), {}, {}};
    }
    if (state == QLatin1String("paused")) {
        // Before what is said of connections: a paused domain takes none.
        const QString reason = displayText(m_facts->reason, kReasonLength);
        return {tr("%1 is paused").arg(domain()),
                reason.isEmpty() ? tr("Nothing in it runs until it is resumed.") : reason,
                {}};
    }
    if (m_displayLink != Link::Up) {
        const bool before = m_displaySince == Instant{};
        const QString trouble = m_displayLink == Link::Waiting || !before ? m_trouble : QString();
        return {before ? tr("Connecting to %1").arg(domain()) : tr("Connection lost – reconnecting"), trouble, {}};
    }
    if (isStandIn && !wholeDesktop) {
        return standInText();
    }
    if (window.lacksPicture()) {
        return {tr("Waiting for the picture"), tr("%1 shows nothing on this screen yet.").arg(domain()), {}};
    }
    return {};
}

void Viewer::updateOverlays() {
    const auto words = [this](const FramedWindow& window, std::optional<Instant> closeAsked, std::size_t shared) {
        if (!window.overlay().title.isEmpty()) {
            return window.overlay().title;
        }
        if (closeAsked && Clock::now() - *closeAsked >= kClosePatience) {
            return tr("asked to close, no answer yet");
        }
        if (closeAsked) {
            return tr("asked to close");
        }
        if (m_unreachable) {
            return tr("daemon not reachable");
        }
        if (!m_options.wholeDesktop && m_sessionLink != Link::Up) {
            return tr("reconnecting to its windows");
        }
        return shared > 1 ? tr("%n windows share this screen", nullptr, static_cast<int>(shared)) : QString();
    };
    const auto update = [&](FramedWindow& window, std::optional<Instant> closeAsked, std::size_t shared) {
        window.setOverlay(overlayFor(window));
        FrameLook frame = window.look();
        const QString now = words(window, closeAsked, shared);
        if (frame.stateWords != now) {
            frame.stateWords = now;
            window.setLook(frame);
        }
    };
    for (const auto& [id, window] : m_windows) {
        auto asked = m_closeAsked.find(id);
        // The user may have answered the program that it is to stay.
        if (asked != m_closeAsked.end() && Clock::now() - asked->second >= kCloseForgotten) {
            m_closeAsked.erase(asked);
            asked = m_closeAsked.end();
        }
        update(*window, asked == m_closeAsked.end() ? std::nullopt : std::optional(asked->second),
               window->view().tabs.size());
        window->setClosable(isOver());
    }
    if (m_standIn) {
        update(*m_standIn, std::nullopt, 0);
    }
}

} // namespace bulkhead::viewer
