// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/session_stream.hpp"

#include <QList>
#include <QObject>
#include <QString>
#include <QStringList>

namespace bulkhead::gui {

/// An app of a domain, as its guest names it: foreign texts.
struct AppEntry {
    QString id;
    QString name;
    QStringList categories;
    bool operator==(const AppEntry&) const = default;
};

/// The tray's side of what OpenSession hands out: lists apps and launches them; windows are the viewer's. Never blocks.
/// One thread, needs an event loop.
class SessionClient : public QObject {
    Q_OBJECT

public:
    explicit SessionClient(client::Descriptor stream, QObject* parent = nullptr);

    void listApps();
    void launch(const QString& appId);

Q_SIGNALS:
    /// The guest's desktop session is there, or is not (yet, or any more).
    void sessionChanged(bool isUp);
    void appsListed(const QList<bulkhead::gui::AppEntry>& apps);
    /// `errorNumber`: the guest's errno; 0: started.
    void launched(const QString& appId, int errorNumber);
    void refused(bulkhead::session_stream::CommandKind kind);
    /// The other end hung up, or takes nothing any more; nothing comes after it.
    void closed();

private:
    void take(const session_stream::Event& event);
    void send(session_stream::CommandKind kind, const QString& text = {});

    client::SessionStream m_stream;
    QList<AppEntry> m_listing;
};

} // namespace bulkhead::gui
