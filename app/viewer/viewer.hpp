// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/display_session.hpp"
#include "viewer/domain_gate.hpp"
#include "viewer/framed_window.hpp"
#include "viewer/host_settings.hpp"
#include "viewer/session_link.hpp"
#include "viewer/window_model.hpp"

#include <QObject>
#include <QTimer>

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace bulkhead::viewer {

struct ViewerOptions {
    bool wholeDesktop = false; ///< head 0 in one window, whatever windows the guest has
    bool background = false;   ///< shows nothing until the guest opens a window
};

/// Shows one domain: keeps both connections up while it runs, and its windows what the guest's are. GUI thread.
class Viewer : public QObject {
    Q_OBJECT

public:
    /// `sound`: where that of a domain goes which has some; null: nowhere.
    Viewer(DomainGate& gate, const ViewerOptions& options, std::unique_ptr<SoundOutput> sound = nullptr,
           QObject* parent = nullptr);
    ~Viewer() override;

    void start();
    /// Closes all windows and connections; finished() follows.
    void quit() { end(); }
    /// Brings the windows to the front, or says that there are none.
    void raiseAll();

    [[nodiscard]] std::size_t windowCount() const { return m_windows.size(); }
    /// All windows now: the guest's, and the one that stands for the domain while there is none of those.
    [[nodiscard]] std::vector<FramedWindow*> windows() const;

Q_SIGNALS:
    /// Nothing is left to show. `status` is the program's exit status, `why` is said on the terminal when not empty.
    void finished(int status, const QString& why);

private:
    enum class Link { Idle, Connecting, Up, Waiting };

    void takeFacts(const DomainFacts& facts);
    void noteUnreachable(const QString& why);
    void connectDisplay();
    void connectSession();
    void loseDisplay(const QString& why);
    void loseSession(const QString& why);
    void takeSessionState(bool up, bool anew);
    void endRefresh();
    void tellSettings();
    void switchSound();
    void showWholeDesktop();
    void end() { finish(0, {}); }
    void finish(int status, const QString& why);

    void applySoon(const WindowModel::Changes& changes);
    void apply();
    void openWindow(const HostWindow& host);
    void updateWindow(FramedWindow& window, const HostWindow& host);
    void wire(FramedWindow& window, HostWindowId id);
    void askToClose(HostWindowId id);
    void sendResize(HostWindowId id, QSize pixels);
    void updateOverlays();
    void updateStandIn();
    [[nodiscard]] bool wantsStandIn() const;
    [[nodiscard]] OverlayText overlayFor(const FramedWindow& window) const;
    [[nodiscard]] OverlayText standInText() const;
    [[nodiscard]] FrameLook look() const;
    [[nodiscard]] QString domain() const { return m_facts ? m_facts->name : QString(); }
    [[nodiscard]] bool runs() const;
    [[nodiscard]] bool isOver() const;

    DomainGate& m_gate;
    ViewerOptions m_options;
    std::optional<DomainFacts> m_facts;
    std::unique_ptr<SoundOutput> m_sound;
    bool m_isMuted = false;
    DisplaySession m_display;
    std::unique_ptr<SessionLink> m_session;
    Link m_displayLink = Link::Idle;
    Link m_sessionLink = Link::Idle;
    Backoff m_displayBackoff;
    Backoff m_sessionBackoff;
    Instant m_displaySince{}; ///< since when it is up
    Instant m_sessionSince{};
    QTimer m_displayRetry;
    QTimer m_sessionRetry;
    QTimer m_refresh;
    QTimer m_applyTimer;
    QTimer m_endTimer;
    QString m_trouble; ///< why a link is down, or the daemon out of reach
    bool m_sessionUp = false;
    bool m_unreachable = false;
    bool m_mayStandIn = false;
    bool m_hadWindows = false;
    bool m_ended = false;
    int m_status = 0;
    QString m_why;

    WindowModel m_model;
    RateLimit m_opening;
    std::map<HostWindowId, std::unique_ptr<FramedWindow>> m_windows;
    std::set<HostWindowId> m_changed;
    std::map<HostWindowId, Instant> m_closeAsked;
    std::unique_ptr<FramedWindow> m_standIn; ///< the whole desktop, or why there is nothing yet
    std::optional<KeyboardNames> m_toldKeyboard;
    int m_toldDpi = 0;
};

} // namespace bulkhead::viewer
