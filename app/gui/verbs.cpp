// SPDX-License-Identifier: Apache-2.0
#include "gui/verbs.hpp"

#include "client/snapshots.hpp"
#include "gui/menu_exports.hpp"
#include "gui/models/domain_model.hpp"
#include "gui/models/job_model.hpp"
#include "gui/models/template_model.hpp"
#include "gui/wording.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::gui {
namespace {

QString problemFrom(const client::Failure& failure) {
    const QString advice = adviceFor(failure);
    return advice.isEmpty() ? sentence(failure) : sentence(failure) + QLatin1Char(' ') + advice;
}

bool mayBegin(Task current, Task wanted) {
    return current == Task::None ||
           (wanted == Task::ForceStopping && (current == Task::Starting || current == Task::Stopping));
}

/// What a job's result has to say for people.
QString noteIn(const QVariantMap& result) {
    const QString note = result.value(QStringLiteral("note")).toString();
    return note.isEmpty() ? QString() : sentence({{}, note.toStdString()});
}

client::Failure noDaemon() {
    return {client::code::kDaemonNotRunning, "bulkheadd is not running"};
}

} // namespace

Verbs::Verbs(client::DaemonLink& link, DomainModel& domains, JobModel& jobs, TemplateModel& templates, QObject* parent)
    : QObject(parent)
    , m_link(link)
    , m_domains(domains)
    , m_jobs(jobs)
    , m_templates(templates) {
    connect(&link, &client::DaemonLink::stateChanged, this, [this] {
        // Questions to a daemon that went stay unanswered; what they counted is over.
        if (!m_link.isAvailable() && (m_disposables > 0 || m_isExamining)) {
            m_disposables = 0;
            m_isExamining = false;
            Q_EMIT busyChanged();
        }
    });
}

template <class T> bool Verbs::refuseWithoutDaemon(const client::Callback<T>& done) const {
    if (m_link.isAvailable()) {
        return false;
    }
    done(tl::unexpected<client::Failure>(noDaemon()));
    return true;
}

void Verbs::act(const QString& path, Task task, const QString& title, const Begin& begin, Then then) {
    const auto* row = m_domains.find(path);
    client::Domain* domain = m_domains.proxy(path);
    if (row == nullptr || domain == nullptr || !mayBegin(row->task, task)) {
        return;
    }
    m_domains.setProblem(path, {});
    m_domains.setNote(path, {});
    m_domains.setTask(path, task);
    begin(*domain, [this, path, task, title, then = std::move(then)](client::Outcome<QDBusObjectPath> job) {
        if (!job) {
            endTask(path, task, &job.error());
            return;
        }
        m_jobs.follow(*job, title, [this, path, task, then](client::Outcome<QVariantMap> outcome) {
            endTask(path, task, outcome ? nullptr : &outcome.error());
            if (!outcome) {
                return;
            }
            m_domains.setNote(path, noteIn(*outcome));
            if (then) {
                then(*outcome);
            }
        });
    });
}

void Verbs::endTask(const QString& path, Task task, const client::Failure* failure) {
    const auto* row = m_domains.find(path);
    if (row != nullptr && row->task == task) { // a forced stop may have taken its place
        m_domains.setTask(path, Task::None);
    }
    if (failure != nullptr && failure->code != client::code::kCancelled) {
        m_domains.setProblem(path, problemFrom(*failure));
    }
    m_domains.refresh();
}

void Verbs::start(const QString& path) {
    withRunning(path, nullptr);
}

void Verbs::withRunning(const QString& path, std::function<void()> then) {
    const auto* row = m_domains.find(path);
    if (row == nullptr) {
        return;
    }
    if (row->info.state == QLatin1String("running")) {
        if (then) {
            then();
        }
        return;
    }
    if (isPaused(row->info)) {
        unpause(path, std::move(then));
        return;
    }
    const QString title = isSuspended(row->info) ? tr("Resuming %1") : tr("Starting %1");
    act(
        path, Task::Starting, title.arg(shown(row->info.name, 64)),
        [](client::Domain& domain, client::Callback<QDBusObjectPath> done) { domain.start(false, std::move(done)); },
        [then = std::move(then)](const QVariantMap& /*result*/) {
            if (then) {
                then();
            }
        });
}

void Verbs::stop(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        act(path, Task::Stopping, tr("Stopping %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                domain.stop(false, std::nullopt, std::move(done));
            });
    }
}

void Verbs::forceStop(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        act(path, Task::ForceStopping, tr("Cutting the power of %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                domain.stop(true, std::nullopt, std::move(done));
            });
    }
}

void Verbs::takeSnapshot(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        act(
            path, Task::Snapshotting, tr("Taking a snapshot of %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                domain.snapshot({}, std::move(done));
            },
            [this, path](const QVariantMap& result) {
                const QString id = result.value(QStringLiteral("snapshot")).toString();
                const QStringList said{tr("Snapshot %1 is taken. “Revert to…” under More goes back to it.")
                                           .arg(shown(client::shortId(id), 16)),
                                       noteIn(result)};
                m_domains.setNote(path, said.join(QLatin1Char(' ')).trimmed());
            });
    }
}

void Verbs::suspend(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        act(path, Task::Suspending, tr("Suspending %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) { domain.suspend(std::move(done)); });
    }
}

void Verbs::pause(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        act(path, Task::Pausing, tr("Pausing %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) { domain.pause(std::move(done)); });
    }
}

void Verbs::unpause(const QString& path, std::function<void()> then) {
    if (const auto* row = m_domains.find(path)) {
        act(
            path, Task::Unpausing, tr("Unpausing %1").arg(shown(row->info.name, 64)),
            [](client::Domain& domain, client::Callback<QDBusObjectPath> done) { domain.unpause(std::move(done)); },
            [then = std::move(then)](const QVariantMap& /*result*/) {
                if (then) {
                    then();
                }
            });
    }
}

void Verbs::revert(const QString& path, const QString& snapshot, const client::RevertOptions& options) {
    const auto* row = m_domains.find(path);
    if (row == nullptr || !m_link.isAvailable()) {
        return;
    }
    act(
        path, Task::Reverting, tr("Reverting %1").arg(shown(row->info.name, 64)),
        [this, snapshot, options](client::Domain& /*domain*/, client::Callback<QDBusObjectPath> done) {
            m_link.manager()->revert(snapshot, options, std::move(done));
        },
        [this, path, snapshot](const QVariantMap& result) {
            const QString kept = result.value(QStringLiteral("kept")).toString();
            QStringList said{tr("It is what it was at snapshot %1.").arg(shown(client::shortId(snapshot), 16))};
            if (!kept.isEmpty()) {
                said.append(tr("What was there before is snapshot %1.").arg(shown(client::shortId(kept), 16)));
            }
            said.append(noteIn(result));
            m_domains.setNote(path, said.join(QLatin1Char(' ')).trimmed());
        });
}

void Verbs::fork(const QString& path, const QString& snapshot, const QString& name, const client::ForkOptions& options,
                 client::Callback<QString> done) {
    const auto* row = m_domains.find(path);
    client::Domain* domain = m_domains.proxy(path);
    if (refuseWithoutDaemon(done) || row == nullptr || domain == nullptr || !mayBegin(row->task, Task::Forking)) {
        return;
    }
    m_domains.setTask(path, Task::Forking);
    const auto end = [this, path, done = std::move(done)](client::Outcome<QString> made) {
        endTask(path, Task::Forking, nullptr);
        done(std::move(made));
    };
    const auto follow = [this, name, end](client::Outcome<QDBusObjectPath> job) {
        if (!job) {
            end(tl::unexpected<client::Failure>(job.error()));
            return;
        }
        m_jobs.follow(*job, tr("Making %1").arg(shown(name, 64)), [end](client::Outcome<QVariantMap> outcome) {
            end(outcome.map([](const QVariantMap& result) {
                return result.value(QStringLiteral("domain")).value<QDBusObjectPath>().path();
            }));
        });
    };
    if (snapshot.isEmpty()) {
        domain->fork(name, options, follow);
    } else {
        m_link.manager()->forkSnapshot(snapshot, name, options, follow);
    }
}

void Verbs::listSnapshots(const QString& path, client::Callback<QList<client::SnapshotInfo>> done) {
    if (refuseWithoutDaemon(done)) {
        return;
    }
    m_link.manager()->listSnapshots(
        [path, done = std::move(done)](client::Outcome<QList<client::SnapshotInfo>> snapshots) {
            if (snapshots) {
                snapshots->removeIf([&](const auto& one) { return one.domain != path; });
                std::reverse(snapshots->begin(), snapshots->end());
            }
            done(std::move(snapshots));
        });
}

void Verbs::remove(const QString& path) {
    if (const auto* row = m_domains.find(path)) {
        const bool force = row->info.state != QLatin1String("stopped") && !isSuspended(row->info);
        act(
            path, Task::Removing, tr("Removing %1").arg(shown(row->info.name, 64)),
            [force](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                domain.remove(force, false, std::move(done));
            },
            [this, name = row->info.name](const QVariantMap& /*result*/) {
                const QString problem = canBeInMenu(name) ? takeOutOfMenu(name) : QString();
                if (!problem.isEmpty()) {
                    Q_EMIT failed(tr("Take the apps of %1 out of the desktop's menu").arg(shown(name, 64)),
                                  {client::code::kHostFailure, problem.toStdString()});
                }
            });
    }
}

void Verbs::listDeleted(client::Callback<QList<client::DeletedInfo>> done) {
    if (!refuseWithoutDaemon(done)) {
        m_link.manager()->listDeleted(false, std::move(done));
    }
}

void Verbs::restore(const QString& id, const QString& otherName, client::Callback<QString> done) {
    if (refuseWithoutDaemon(done)) {
        return;
    }
    m_link.manager()->restoreDomain(id, otherName,
                                    [this, done = std::move(done)](client::Outcome<QDBusObjectPath> path) {
                                        m_domains.refresh();
                                        done(path.map([](const QDBusObjectPath& restored) { return restored.path(); }));
                                    });
}

void Verbs::create(const QString& name, const client::CreateOptions& options, client::Callback<QString> done) {
    if (refuseWithoutDaemon(done)) {
        return;
    }
    m_link.manager()->createDomain(name, options,
                                   [this, done = std::move(done)](client::Outcome<QDBusObjectPath> path) {
                                       m_domains.refresh();
                                       done(path.map([](const QDBusObjectPath& made) { return made.path(); }));
                                   });
}

void Verbs::setDefinition(const QString& path, const QVariantMap& changes, client::Callback<client::DomainInfo> done) {
    client::Domain* domain = m_domains.proxy(path);
    if (refuseWithoutDaemon(done) || domain == nullptr) {
        return;
    }
    domain->setDefinition(changes, [this, path, done = std::move(done)](client::Outcome<client::DomainInfo> info) {
        if (info) {
            m_domains.learn(path, *info);
        }
        done(std::move(info));
    });
}

void Verbs::startDisposable() {
    if (!m_link.isAvailable() || m_disposables > 0) {
        return;
    }
    ++m_disposables;
    Q_EMIT busyChanged();
    const auto end = [this](const client::Failure* failure) {
        if (m_disposables > 0) {
            --m_disposables;
            Q_EMIT busyChanged();
        }
        if (failure != nullptr && failure->code != client::code::kCancelled) {
            Q_EMIT failed(tr("Start a disposable"), *failure);
        }
        m_domains.refresh();
    };
    m_link.manager()->startDisposable({m_templates.preferred(), {}}, [this, end](client::Outcome<QDBusObjectPath> job) {
        if (!job) {
            end(&job.error());
            return;
        }
        m_jobs.follow(*job, tr("Starting a disposable"), [this, end](client::Outcome<QVariantMap> outcome) {
            end(outcome ? nullptr : &outcome.error());
            if (outcome) {
                if (const QString note = noteIn(*outcome); !note.isEmpty()) {
                    Q_EMIT told(tr("The disposable has started. %1").arg(note));
                }
                Q_EMIT disposableStarted(outcome->value(QStringLiteral("domain")).value<QDBusObjectPath>().path());
            }
        });
    });
}

void Verbs::examine(bool refresh, client::Callback<QVariantMap> done) {
    if (m_isExamining || refuseWithoutDaemon(done)) {
        return;
    }
    m_isExamining = true;
    Q_EMIT busyChanged();
    const auto end = [this, done = std::move(done)](client::Outcome<QVariantMap> outcome) {
        m_isExamining = false;
        Q_EMIT busyChanged();
        done(std::move(outcome));
    };
    m_link.manager()->doctor(refresh, [this, end](client::Outcome<QDBusObjectPath> job) {
        if (!job) {
            end(tl::unexpected<client::Failure>(job.error()));
            return;
        }
        m_jobs.follow(*job, tr("Examining this host"), end);
    });
}

void Verbs::buildTemplate(const QString& name) {
    if (!m_link.isAvailable()) {
        return;
    }
    const QString what = tr("Build template %1").arg(shown(name, 64));
    const auto fail = [this, what](const client::Failure& failure) {
        if (failure.code != client::code::kCancelled) {
            Q_EMIT failed(what, failure);
        }
        m_templates.refresh();
    };
    m_link.manager()->buildTemplate(name, {}, [this, name, fail](client::Outcome<QDBusObjectPath> job) {
        if (!job) {
            fail(job.error());
            return;
        }
        m_jobs.follow(*job, tr("Building template %1").arg(shown(name, 64)),
                      [this, fail](client::Outcome<QVariantMap> outcome) {
                          if (!outcome) {
                              fail(outcome.error());
                          } else {
                              m_templates.refresh();
                          }
                      });
    });
}

} // namespace bulkhead::gui
