// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"
#include "client/info.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>

#include <chrono>
#include <memory>
#include <optional>

class DomainProxy;

namespace bulkhead::client {

struct TerminalSize {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    bool operator==(const TerminalSize&) const = default;
};

/// How to run a program; an empty member leaves the choice to the daemon.
struct ExecOptions {
    QString user;
    QString cwd;
    QStringList environment;                          ///< NAME=VALUE
    std::optional<std::chrono::milliseconds> timeout; ///< wall clock limit of the program
    bool terminal = false;
    TerminalSize size; ///< with terminal
    QString term;      ///< TERM, with terminal
};

struct SnapshotOptions {
    bool isDiskOnly = false; ///< without the memory of a running domain
    QString reason;          ///< empty: the daemon's word for "asked for by hand"
    QString label;
};

/// An empty text: as the source has it.
struct ForkOptions {
    QString label;
    QString egress;
    bool isDiskOnly = false;
};
/// As the contract has them.
QVariantMap optionsFrom(const ForkOptions& fork);

/// What Exec hands out; see dbus/interfaces/exec_stream.hpp. They outlive the daemon and the bus connection.
struct ExecStreams {
    std::uint64_t exec = 0;
    Descriptor control;
    Descriptor input;
    Descriptor output;
    Descriptor error;
};

/// org.bulkhead1.Domain: one domain. Every method returns at once and calls back from the event loop. One thread.
class Domain {
public:
    Domain(const QDBusConnection& connection, const QDBusObjectPath& path);
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    void describe(Callback<DomainInfo> done);
    /// Changes its definition; gives what it is then. `changes` by the keys of the contract. A failure that is about
    /// one of them begins with its key and ": ".
    void setDefinition(const QVariantMap& changes, Callback<DomainInfo> done);
    /// Only while it runs.
    void status(Callback<GuestStatus> done);
    /// The job ends when the domain can run programs.
    /// `isCold`: boots, although there may be a warm image to begin from.
    void start(bool isCold, Callback<QDBusObjectPath> done);
    void stop(bool force, std::optional<std::chrono::milliseconds> grace, Callback<QDBusObjectPath> done);
    /// Cuts the power and goes back to the domain's last snapshot; what it did since is gone.
    void discard(Callback<QDBusObjectPath> done);
    /// `forGood`: it cannot be restored.
    void remove(bool force, bool forGood, Callback<QDBusObjectPath> done);
    /// The job's result: snapshot (its id), pause-ms, note (for people; may be empty).
    void snapshot(const SnapshotOptions& options, Callback<QDBusObjectPath> done);
    void suspend(Callback<QDBusObjectPath> done);
    /// It stands still, with all that it has in memory, until it is unpaused.
    void pause(Callback<QDBusObjectPath> done);
    void unpause(Callback<QDBusObjectPath> done);
    /// It stands still, and what it is now is kept as evidence.
    void contain(Callback<QDBusObjectPath> done);
    /// A new domain that begins where this one stands now. The job's result: domain (its path).
    void fork(const QString& name, const ForkOptions& options, Callback<QDBusObjectPath> done);
    struct Picture {
        std::shared_ptr<Descriptor> bytes; ///< a file in memory
        QString type;                      ///< "image/png"
    };
    /// What a head shows now.
    void screenshot(unsigned head, Callback<Picture> done);
    /// The domain's windows and apps; see dbus/interfaces/session_stream.hpp.
    void openSession(Callback<std::shared_ptr<Descriptor>> done);
    /// One connection to its SPICE server; a client needs one for each channel.
    void openDisplay(Callback<std::shared_ptr<Descriptor>> done);
    void exec(const QStringList& argv, const ExecOptions& options, Callback<std::shared_ptr<ExecStreams>> done);

private:
    std::unique_ptr<DomainProxy> m_proxy;
};

} // namespace bulkhead::client
