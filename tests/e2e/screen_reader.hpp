// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDBusArgument>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusVariant>
#include <QRect>
#include <QString>
#include <QStringList>

#include <functional>
#include <optional>

namespace bulkhead::e2e {

/// What a screen reader knows of the programs of a session: the accessibility bus (at-spi). Of windows only what shows.
class ScreenReader {
public:
    struct Item {
        QString service; ///< the program's name on that bus
        QString path;
        QString name;
    };

    /// Over the bus of the session, which starts what it needs. False: no accessibility there.
    bool open(const QString& sessionBus) {
        auto session = QDBusConnection::connectToBus(sessionBus, "screen-reader-session");
        const auto reply =
            session.call(QDBusMessage::createMethodCall("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"));
        m_bus = QDBusConnection::connectToBus(reply.arguments().value(0).toString(), "screen-reader");
        return m_bus.isConnected();
    }
    /// The first item, top down, whose name has this beginning.
    [[nodiscard]] std::optional<Item> find(const QString& beginning) const {
        return first([&](const Item& item) { return item.name.startsWith(beginning); });
    }
    [[nodiscard]] std::optional<Item> exactly(const QString& name) const {
        return first([&](const Item& item) { return item.name == name; });
    }
    /// All that can be read.
    [[nodiscard]] QStringList names() const {
        QStringList found;
        first([&](const Item& item) {
            found << item.name;
            return false;
        });
        found.removeAll({});
        return found;
    }
    /// Where it is on the screen.
    [[nodiscard]] QRect area(const Item& item) const {
        const auto reply = call(item, "org.a11y.atspi.Component", "GetExtents", {quint32{0}});
        int x = 0;
        int y = 0;
        int width = 0;
        int height = 0;
        if (reply.arguments().isEmpty()) {
            return {};
        }
        const auto argument = reply.arguments().constFirst().value<QDBusArgument>();
        argument.beginStructure();
        argument >> x >> y >> width >> height;
        argument.endStructure();
        return {x, y, width, height};
    }
    /// Does what the item is for, as a key on a button does.
    [[nodiscard]] bool press(const Item& item) const {
        return call(item, "org.a11y.atspi.Action", "DoAction", {0}).arguments().value(0).toBool();
    }

private:
    static constexpr int kShowing = 25; ///< the number of that state in at-spi's list

    QDBusMessage call(const Item& item, const QString& interface, const QString& method,
                      const QVariantList& arguments = {}) const {
        auto message = QDBusMessage::createMethodCall(item.service, item.path, interface, method);
        message.setArguments(arguments);
        return m_bus.call(message, QDBus::Block, 10'000);
    }
    QList<Item> children(const Item& item) const {
        QList<Item> found;
        const auto reply = call(item, "org.a11y.atspi.Accessible", "GetChildren");
        if (reply.type() != QDBusMessage::ReplyMessage) {
            return found; // it went meanwhile
        }
        const auto argument = reply.arguments().constFirst().value<QDBusArgument>();
        argument.beginArray();
        while (!argument.atEnd()) {
            Item child;
            QDBusObjectPath path;
            argument.beginStructure();
            argument >> child.service >> path;
            argument.endStructure();
            child.path = path.path();
            found << child;
        }
        argument.endArray();
        return found;
    }
    QString nameOf(const Item& item) const {
        const auto reply = call(item, "org.freedesktop.DBus.Properties", "Get", {"org.a11y.atspi.Accessible", "Name"});
        return reply.arguments().value(0).value<QDBusVariant>().variant().toString();
    }
    bool shows(const Item& item) const {
        const auto reply = call(item, "org.a11y.atspi.Accessible", "GetState");
        QList<quint32> words;
        if (reply.type() == QDBusMessage::ReplyMessage) {
            reply.arguments().constFirst().value<QDBusArgument>() >> words;
        }
        return !words.isEmpty() && (words[0] & (1U << kShowing)) != 0;
    }
    std::optional<Item> first(const std::function<bool(const Item&)>& matches) const {
        for (const Item& program :
             children({.service = "org.a11y.atspi.Registry", .path = "/org/a11y/atspi/accessible/root", .name = {}})) {
            for (Item& window : children(program)) {
                if (auto found = firstBelow(window, matches)) {
                    return found;
                }
            }
        }
        return std::nullopt;
    }
    std::optional<Item> firstBelow(Item& item, const std::function<bool(const Item&)>& matches) const {
        if (!shows(item)) {
            return std::nullopt;
        }
        item.name = nameOf(item);
        if (matches(item)) {
            return item;
        }
        for (Item& child : children(item)) {
            if (auto found = firstBelow(child, matches)) {
                return found;
            }
        }
        return std::nullopt;
    }

    QDBusConnection m_bus{QString()};
};

} // namespace bulkhead::e2e
