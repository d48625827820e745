// SPDX-License-Identifier: Apache-2.0
#include "viewer/arguments.hpp"
#include "viewer/bus_gate.hpp"
#include "viewer/confinement.hpp"
#include "viewer/file_access.hpp"
#include "viewer/pulse_sound.hpp"
#include "viewer/single_instance.hpp"
#include "viewer/viewer.hpp"

#include "client/bus.hpp"
#include "client/manager.hpp"
#include "client/terminal_text.hpp"

#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QIcon>

#include <csignal>
#include <cstdio>
#include <exception>
#include <glib-unix.h>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace bulkhead;
using namespace bulkhead::viewer;

constexpr int kFailed = 1;
constexpr int kNoSuchThing = 4;
constexpr int kNotAuthorised = 5;

void complain(const std::string& text) {
    std::fprintf(stderr, "bulkhead-viewer: %s\n", client::terminalSafe(text).c_str());
}

int statusFor(const client::Failure& failure) {
    if (failure.code == client::code::kNotFound) {
        return kNoSuchThing;
    }
    return failure.code == client::code::kNotAuthorized ? kNotAuthorised : kFailed;
}

/// spice-client-glib lives in GLib's event loop. Qt's own would run, and no picture would ever come.
bool hasGlibEventLoop() {
    const QAbstractEventDispatcher* dispatcher = QAbstractEventDispatcher::instance();
    return dispatcher != nullptr && QByteArray(dispatcher->metaObject()->className()).contains("Glib");
}

bool hasScreen() {
    return qEnvironmentVariableIsSet("QT_QPA_PLATFORM") || !qEnvironmentVariableIsEmpty("DISPLAY") ||
           !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
}

/// From the domain's name to a viewer that runs, without waiting for anything in the GUI thread.
class Startup {
public:
    Startup(const QDBusConnection& connection, const Invocation& invocation)
        : m_connection(connection)
        , m_invocation(invocation)
        , m_manager(connection) {}

    /// The user ends the program: orderly, since a display server does not bear a client that is cut off.
    void quit() {
        if (m_viewer) {
            m_viewer->quit();
        } else {
            QApplication::exit(0);
        }
    }

    void begin() {
        m_manager.findDomain(m_invocation.domain, [this](client::Outcome<QDBusObjectPath> path) {
            if (!path) {
                giveUp(path.error());
                return;
            }
            m_path = *path;
            m_domain = std::make_unique<client::Domain>(m_connection, m_path);
            m_domain->describe([this](client::Outcome<client::DomainInfo> info) {
                if (!info) {
                    giveUp(info.error());
                } else {
                    claim(*info);
                }
            });
        });
    }

private:
    static void giveUp(const client::Failure& failure) {
        complain(failure.message);
        QApplication::exit(statusFor(failure));
    }

    void claim(const client::DomainInfo& info) {
        // Groups the windows of a domain in task bars: the class on X11, the app id on Wayland.
        QApplication::setApplicationName(QStringLiteral("bulkhead-") + info.name);
        QApplication::setDesktopFileName(QStringLiteral("org.bulkhead.") + info.name);
        m_instance = std::make_unique<SingleInstance>(info.id);
        if (m_instance->claim() == SingleInstance::Outcome::Second) {
            QApplication::exit(0);
            return;
        }
        if (const auto confined = confine(); !confined) {
            giveUp(confined.error());
            return;
        }
        show(info.name);
    }

    void show(const QString& name) {
        m_gate = std::make_unique<BusGate>(m_connection, m_path);
        m_viewer = std::make_unique<Viewer>(*m_gate, m_invocation.options,
                                            std::make_unique<PulseSound>(QStringLiteral("Bulkhead: ") + name));
        QObject::connect(m_viewer.get(), &Viewer::finished, qApp, [](int status, const QString& why) {
            if (!why.isEmpty()) {
                complain(why.toStdString());
            }
            QApplication::exit(status);
        });
        QObject::connect(m_instance.get(), &SingleInstance::raiseAsked, m_viewer.get(), &Viewer::raiseAll);
        m_viewer->start();
    }

    QDBusConnection m_connection;
    Invocation m_invocation;
    client::Manager m_manager;
    QDBusObjectPath m_path;
    std::unique_ptr<client::Domain> m_domain;
    std::unique_ptr<SingleInstance> m_instance;
    std::unique_ptr<BusGate> m_gate;
    std::unique_ptr<Viewer> m_viewer;
};

int run(int argc, char** argv) {
    const QStringList words = [&] {
        QStringList list;
        for (int i = 1; i < argc; ++i) {
            list.append(QString::fromLocal8Bit(argv[i]));
        }
        return list;
    }();
    const auto parsed = parseArguments(words);
    if (const auto* end = std::get_if<ParseEnd>(&parsed)) {
        std::fputs(end->text.toUtf8().constData(), end->status == 0 ? stdout : stderr);
        return end->status;
    }
    if (!hasScreen()) {
        complain("there is no screen to show windows on: neither WAYLAND_DISPLAY nor DISPLAY is set");
        return kFailed;
    }
    // Before Qt's threads begin, which would not be bound by it.
    const auto confined = giveUpFiles(filesOfAViewer([](const char* name) { return qgetenv(name).toStdString(); }));
    if (!confined) {
        complain(confined.error().message);
        return kFailed;
    }
    if (!*confined) {
        complain("this kernel has no Landlock: the viewer can open every file that you can");
    }
    int noArguments = 1; // a domain's name is not an option of Qt
    char* name[] = {argv[0], nullptr};
    QApplication application(noArguments, name);
    QApplication::setQuitOnLastWindowClosed(false);
    if (!hasGlibEventLoop()) {
        complain("Qt does not run on GLib's event loop, which the display needs: unset QT_NO_GLIB, and use a Qt with "
                 "GLib support");
        return kFailed;
    }
    const auto connection = client::connectToBus();
    if (!connection) {
        complain(connection.error().message);
        return kFailed;
    }
    Startup startup(*connection, std::get<Invocation>(parsed));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        g_unix_signal_add(
            signal,
            [](gpointer data) -> gboolean {
                static_cast<Startup*>(data)->quit();
                return G_SOURCE_CONTINUE;
            },
            &startup);
    }
    startup.begin();
    return QApplication::exec();
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& fault) {
        complain(std::string("internal fault: ") + fault.what());
        return kFailed;
    }
}
