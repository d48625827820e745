// SPDX-License-Identifier: Apache-2.0
#include "viewer/framed_window.hpp"

#include "dbus/interfaces/session_stream.hpp"
#include "viewer/sound_button.hpp"
#include "widgets/app_picture.hpp"
#include "widgets/label_paint.hpp"

#include <QCloseEvent>
#include <QPainter>
#include <QScreen>
#include <QSignalBlocker>
#include <QTabBar>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace bulkhead::viewer {
namespace {

constexpr int kSmallestCanvas = 64; ///< logical pixels
constexpr int kRoomForTitleBar = 40;
constexpr std::chrono::milliseconds kPicturePatience{500};

QSize logicalOf(QSize pixels, double ratio) {
    return {static_cast<int>(std::ceil(pixels.width() / ratio)), static_cast<int>(std::ceil(pixels.height() / ratio))};
}

QSize withinLimits(QSize pixels) {
    const auto side = [](int value) {
        return std::clamp(value, static_cast<int>(session_stream::kSmallestSide),
                          static_cast<int>(session_stream::kLargestSide));
    };
    return {side(pixels.width()), side(pixels.height())};
}

} // namespace

FramedWindow::FramedWindow(SurfaceSource& source, KeySink& keys, const FrameLook& look)
    : QWidget(nullptr, Qt::Window)
    , m_look(look) {
    setAttribute(Qt::WA_OpaquePaintEvent);
    m_tabs = new QTabBar(this);
    m_tabs->setExpanding(false);
    m_tabs->setElideMode(Qt::ElideRight);
    m_tabs->setUsesScrollButtons(true);
    m_tabs->setDrawBase(false);
    m_tabs->setFocusPolicy(Qt::NoFocus); // the keyboard is the guest's
    m_tabs->setAutoFillBackground(true);
    m_tabs->setAccessibleName(tr("Windows that share this screen"));
    m_tabs->hide();
    m_canvas = new Canvas(source, keys, this);
    m_overlay = new StateOverlay(this);
    m_soundButton = new SoundButton(this);
    connect(m_soundButton, &SoundButton::clicked, this, &FramedWindow::soundSwitched);
    setFocusProxy(m_canvas);
    m_canvas->setLive(true);
    m_resizeTimer.setSingleShot(true);
    connect(&m_resizeTimer, &QTimer::timeout, this, &FramedWindow::planResize);
    connect(m_tabs, &QTabBar::currentChanged, this, [this](int index) {
        if (index >= 0 && static_cast<std::size_t>(index) < m_view.tabs.size()) {
            Q_EMIT tabChosen(m_view.tabs.at(static_cast<std::size_t>(index)).window);
        }
    });
    connect(m_overlay, &StateOverlay::actionChosen, this, &FramedWindow::actionChosen);
    connect(m_canvas, &Canvas::pixelsChanged, this, [this](QSize pixels) {
        m_plan.want(withinLimits(pixels), Clock::now());
        planResize();
    });
    connect(m_canvas, &Canvas::pictureSizeChanged, this, [this](QSize size) {
        if (size.isEmpty()) {
            m_pictureTimer.start();
            return;
        }
        m_pictureTimer.stop();
        m_plan.arrived(size);
        planResize();
        if (std::exchange(m_lacksPicture, false)) {
            Q_EMIT pictureChanged();
        }
    });
    m_pictureTimer.setSingleShot(true);
    m_pictureTimer.setInterval(kPicturePatience);
    connect(&m_pictureTimer, &QTimer::timeout, this, [this] {
        m_lacksPicture = true;
        Q_EMIT pictureChanged();
    });
    if (m_canvas->pictureSize().isEmpty()) {
        m_pictureTimer.start();
    } else {
        m_plan.arrived(m_canvas->pictureSize());
    }
    setLook(look);
}

QMargins FramedWindow::margins() const {
    QMargins margins = frameMargins();
    if (m_view.tabs.size() > 1) {
        // Rounded up to fours for the same reason as the frame's own measures.
        margins.setTop(margins.top() + (m_tabs->sizeHint().height() + 3) / 4 * 4);
    }
    return margins;
}

void FramedWindow::layOut() {
    const QRect frame = rect().marginsRemoved(frameMargins());
    const QRect inside = rect().marginsRemoved(margins());
    m_tabs->setGeometry(frame.x(), frame.y(), frame.width(), inside.y() - frame.y());
    m_canvas->setGeometry(inside);
    m_overlay->setGeometry(inside);
    const QRect button = soundSwitchRect(size(), m_look.sound);
    m_soundButton->setGeometry(button);
    m_soundButton->setVisible(!button.isEmpty());
}

void FramedWindow::sizeFor(QSize pixels) {
    const QSize wanted = logicalOf(pixels, devicePixelRatioF()).grownBy(margins());
    const QRect room = screen()->availableGeometry().adjusted(0, 0, 0, -kRoomForTitleBar);
    resize(wanted.boundedTo(room.size()));
}

void FramedWindow::planResize() {
    const Instant now = Clock::now();
    if (const auto size = m_plan.take(now)) {
        Q_EMIT resizeWanted(*size);
    }
    if (const auto due = m_plan.due()) {
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*due - now);
        m_resizeTimer.start(std::max(wait, std::chrono::milliseconds(0)));
    } else {
        m_resizeTimer.stop();
    }
}

void FramedWindow::repeatResize() {
    m_plan.forget();
    if (!m_canvas->pictureSize().isEmpty()) {
        m_plan.arrived(m_canvas->pictureSize());
    }
    planResize();
}

void FramedWindow::setView(const WindowView& view) {
    if (view == m_view) {
        return;
    }
    const bool tabsChanged = view.tabs != m_view.tabs || view.current != m_view.current;
    const bool isOtherProgram = view.appClass != m_view.appClass;
    m_view = view;
    if (isOtherProgram) {
        drawIcon();
    }
    setWindowTitle(view.title);
    const QString label =
        QString::fromLatin1(m_look.label.name.data(), static_cast<qsizetype>(m_look.label.name.size()));
    setAccessibleName(view.title);
    setAccessibleDescription(tr("A window of the domain %1, label %2").arg(m_look.domain, label));
    if (tabsChanged) {
        showTabs();
    }
    const QSize smallest(std::max(kSmallestCanvas, logicalOf(view.minimum, devicePixelRatioF()).width()),
                         std::max(kSmallestCanvas, logicalOf(view.minimum, devicePixelRatioF()).height()));
    // A guest may say that it needs more than the screen has: then it is shown smaller than it wants.
    const QSize wanted = smallest.grownBy(margins()).boundedTo(screen()->availableGeometry().size() * 3 / 4);
    // … and once it is on the screen its size is the user's: a guest does not make it grow over others.
    setMinimumSize(isVisible() ? wanted.boundedTo(size()) : wanted);
    layOut();
}

void FramedWindow::showTabs() {
    const QSignalBlocker quiet(m_tabs);
    while (m_tabs->count() > static_cast<int>(m_view.tabs.size())) {
        m_tabs->removeTab(m_tabs->count() - 1);
    }
    for (std::size_t i = 0; i < m_view.tabs.size(); ++i) {
        const int index = static_cast<int>(i);
        // "&" would make a shortcut of the next letter.
        const QString text = QString(m_view.tabs[i].title).replace(QLatin1Char('&'), QLatin1String("&&"));
        if (index < m_tabs->count()) {
            m_tabs->setTabText(index, text);
        } else {
            m_tabs->addTab(text);
        }
        if (m_view.tabs[i].window == m_view.current) {
            m_tabs->setCurrentIndex(index);
        }
    }
    m_tabs->setVisible(m_view.tabs.size() > 1);
}

void FramedWindow::setLook(const FrameLook& look) {
    m_look = look;
    m_soundButton->setLook(look);
    layOut();
    drawIcon();
    update();
}

void FramedWindow::drawIcon() {
    constexpr int kSide = 64;
    const QIcon icon = widgets::hostIconFor({m_view.appClass}, {});
    setWindowIcon(QIcon(icon.isNull() ? widgets::swatchPixmap(m_look.label, m_look.theme, kSide, 1)
                                      : widgets::markedPixmap(icon, m_look.label, m_look.theme, kSide, 1)));
}

void FramedWindow::setOverlay(const OverlayText& text) {
    const bool living = text.title.isEmpty();
    const bool hadFocus = isActiveWindow();
    m_canvas->setLive(living);
    m_overlay->setText(text);
    if (hadFocus) {
        (living ? static_cast<QWidget*>(m_canvas) : m_overlay)->setFocus(Qt::OtherFocusReason);
    }
}

void FramedWindow::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    paintFrame(painter, size(), m_look, font());
}

void FramedWindow::resizeEvent(QResizeEvent* /*event*/) {
    layOut();
}

void FramedWindow::closeEvent(QCloseEvent* event) {
    if (m_closable) {
        event->accept();
        Q_EMIT closed();
        return;
    }
    event->ignore(); // the program in the guest decides; it may have to ask whether to save
    Q_EMIT closeAsked();
}

void FramedWindow::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) {
        FrameLook look = m_look;
        look.theme = widgets::themeOf(palette());
        setLook(look);
    }
    if (event->type() == QEvent::ActivationChange && isActiveWindow()) {
        Q_EMIT activated();
    }
}

bool FramedWindow::event(QEvent* event) {
    if (event->type() == QEvent::ScreenChangeInternal) {
        // Another screen may have another scale: the same window then has other pixels.
        m_plan.want(withinLimits(m_canvas->pixels()), Clock::now());
        planResize();
    }
    return QWidget::event(event);
}

} // namespace bulkhead::viewer
