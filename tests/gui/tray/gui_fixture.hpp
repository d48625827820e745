// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dbus/interfaces/session_stream.hpp"
#include "fake_bulkhead.hpp"
#include "private_bus.hpp"

#include "gui/desk.hpp"
#include "gui/main_window.hpp"

#include <QAbstractButton>
#include <QApplication>
#include <QDBusArgument>
#include <QDBusMetaType>
#include <QDir>
#include <QSignalSpy>
#include <QTest>
#include <QWidget>

#include <cstring>
#include <memory>
#include <sys/socket.h>

/// Runs the test class in a QApplication without a screen. Ends the file, before the moc output.
#define BULKHEAD_GUI_TEST_MAIN(TestClass)                                                                              \
    int main(int argc, char** argv) {                                                                                  \
        qputenv("QT_QPA_PLATFORM", "offscreen");                                                                       \
        qputenv("XDG_DATA_HOME", "/nonexistent");                                                                      \
        qputenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");                                                 \
        QApplication application(argc, argv);                                                                          \
        TestClass subject;                                                                                             \
        return QTest::qExec(&subject, argc, argv);                                                                     \
    }

namespace bulkhead::tests {

/// a{s(tu)}, as the daemon sends the sizes of a template.
struct SizeOnBus {
    qulonglong memory = 0;
    uint vcpus = 0;
    bool operator==(const SizeOnBus&) const = default;
};
using SizesOnBus = QMap<QString, SizeOnBus>;
QDBusArgument& operator<<(QDBusArgument& argument, const SizeOnBus& size);
const QDBusArgument& operator>>(const QDBusArgument& argument, SizeOnBus& size);

/// Everything of one test: a bus, a double of the daemon on it, and what main() of the tray makes, with its window
/// shown. All in one thread, so every wait runs the event loop.
class GuiFixture {
public:
    GuiFixture() {
        qputenv("BULKHEAD_BUS_ADDRESS", bus.address().toUtf8());
        qDBusRegisterMetaType<SizeOnBus>();
        qDBusRegisterMetaType<SizesOnBus>();
        startDaemon();
        fake->templates = {templateMap("desktop", true), templateMap("minimal", false)};
    }

    static QVariantMap templateMap(const QString& name, bool isBuilt) {
        return {
            {"name", name},
            {"description", "Debian with a desktop: a browser, an editor, a terminal"},
            {"built", isBuilt},
            {"stale", false},
            {"sizes", QVariant::fromValue(SizesOnBus{{"small", {1'073'741'824, 2}}, {"large", {4'294'967'296, 4}}})},
            {"default-size", "small"},
            {"size-on-disk", 1'503'238'553ULL}};
    }

    void startDaemon() { fake = std::make_unique<FakeBulkhead>(bus.address()); }

    FakeDomain& add(const QString& name, const QString& state, const QString& label = "blue",
                    const QString& kind = "app") {
        FakeDomain& domain = fake->addDomain(name, kind);
        domain.description["state"] = state;
        domain.description["label"] = label;
        domain.description["template"] = "desktop";
        domain.description["file"] =
            kind == "disposable" ? QString() : "/var/lib/bulkhead/domains/1000/" + name + ".toml";
        domain.status = {{"uptime-ms", 60'000ULL},
                         {"memory-total", 1'073'741'824ULL},
                         {"memory-available", 600'000'000ULL},
                         {"system-total", 8'000'000'000ULL},
                         {"system-available", 5'600'000'000ULL},
                         {"home-total", 4'000'000'000ULL},
                         {"home-available", 3'000'000'000ULL}};
        return domain;
    }

    /// Makes desk and window, and waits until they know of the daemon's domains.
    void open(const QString& viewer = {}) {
        desk = std::make_unique<gui::Desk>(viewer);
        window = std::make_unique<gui::MainWindow>(*desk);
        desk->link.open();
        window->present();
        QVERIFY(QTest::qWaitForWindowActive(window.get()));
        QTRY_VERIFY(desk->domains.isLoaded());
        QTRY_VERIFY(desk->templates.isLoaded());
    }

    static QString path(const QString& name) { return FakeBulkhead::pathOf(name); }
    [[nodiscard]] const gui::DomainModel::Row* row(const QString& name) const { return desk->domains.find(path(name)); }

    /// A visible widget by its accessible name, wherever it is; null when there is none.
    template <class T = QWidget> static T* find(const QString& accessibleName) {
        for (QWidget* widget : QApplication::allWidgets()) {
            auto* wanted = qobject_cast<T*>(widget);
            if (wanted != nullptr && widget->isVisible() && widget->accessibleName() == accessibleName) {
                return wanted;
            }
        }
        return nullptr;
    }
    static void click(const QString& accessibleName) {
        auto* button = find<QAbstractButton>(accessibleName);
        QVERIFY2(button != nullptr, qPrintable("no button " + accessibleName));
        QTest::mouseClick(button, Qt::LeftButton);
    }
    /// Whether some visible label or line says so.
    static bool says(const QString& text);

    /// What the guest's session says, on our end of the stream that the tray opened.
    static void tell(const FakeDomain& domain, const session_stream::Event& event) {
        ::send(domain.sessions.back().get(), &event, sizeof event, MSG_NOSIGNAL);
    }
    static session_stream::Event appEvent(const char* id, const char* name, const char* categories) {
        session_stream::Event event{.kind = session_stream::EventKind::App};
        std::strncpy(event.name.data(), id, event.name.size() - 1);
        std::strncpy(event.text.data(), name, event.text.size() - 1);
        std::strncpy(event.extra.data(), categories, event.extra.size() - 1);
        return event;
    }
    static void tellApps(const FakeDomain& domain) {
        using session_stream::EventKind;
        tell(domain, {.kind = EventKind::SessionUp, .a = 8, .b = 1});
        tell(domain, appEvent("firefox-esr", "Firefox ESR", "Network;WebBrowser"));
        tell(domain, appEvent("mousepad", "Mousepad", "Utility;TextEditor"));
        tell(domain, appEvent("pcmanfm", "File Manager", "System;FileManager"));
        tell(domain, appEvent("xterm", "XTerm", "System;TerminalEmulator"));
        tell(domain, appEvent("galculator", "Calculator", "Utility;Calculator"));
        tell(domain, {.kind = EventKind::AppsListed, .a = 5});
    }
    /// The next command of the tray on that stream; none when it has sent none.
    static std::optional<session_stream::Command> command(const FakeDomain& domain) {
        session_stream::Command record;
        return ::recv(domain.sessions.back().get(), &record, sizeof record, MSG_DONTWAIT) == sizeof record
                   ? std::optional(record)
                   : std::nullopt;
    }

    /// Where pictures are kept, for people to look at.
    static QString artefact(const QString& name) {
        const QString folder = QStringLiteral(BULKHEAD_BUILD_DIR) + "/artefacts";
        QDir().mkpath(folder);
        return folder + "/" + name;
    }

    PrivateBus bus;
    std::unique_ptr<FakeBulkhead> fake;
    std::unique_ptr<gui::Desk> desk;
    std::unique_ptr<gui::MainWindow> window;
};

} // namespace bulkhead::tests

Q_DECLARE_METATYPE(bulkhead::tests::SizeOnBus)
Q_DECLARE_METATYPE(bulkhead::tests::SizesOnBus)
