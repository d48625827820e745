// SPDX-License-Identifier: Apache-2.0
#include "client/manager.hpp"

#include "client/bus.hpp"
#include "client/pending_reply.hpp"
#include "manager_proxy.h"

namespace bulkhead::client {
namespace {

void insertText(QVariantMap& options, const char* key, const QString& value) {
    if (!value.isEmpty()) {
        options.insert(QLatin1String(key), value);
    }
}

QDBusObjectPath pathOf(const QDBusPendingReply<QDBusObjectPath>& reply) {
    return reply.value();
}

} // namespace

Manager::Manager(const QDBusConnection& connection)
    : m_proxy(std::make_unique<ManagerProxy>(QLatin1String(kServiceName), QLatin1String(kManagerPath), connection)) {
    m_proxy->setTimeout(kNoTimeout);
}

Manager::~Manager() = default;

void Manager::describe(Callback<ManagerInfo> done) {
    whenDone(m_proxy->Describe(), m_proxy.get(), std::move(done),
             [](const auto& reply) { return managerInfoFrom(reply.value()); });
}

void Manager::listDomains(bool all, Callback<QList<DomainInfo>> done) {
    QVariantMap options;
    if (all) {
        options.insert(QStringLiteral("all"), true);
    }
    whenDone(m_proxy->ListDomains(options), m_proxy.get(), std::move(done), [](const auto& reply) {
        QList<DomainInfo> domains;
        const ObjectDescriptions described = reply.value();
        for (auto one = described.cbegin(); one != described.cend(); ++one) {
            DomainInfo info = domainInfoFrom(one.value());
            info.path = one.key().path();
            domains.append(info);
        }
        return domains;
    });
}

void Manager::findDomain(const QString& name, Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->FindDomain(name), m_proxy.get(), std::move(done), pathOf);
}

void Manager::createDomain(const QString& name, const CreateOptions& create, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    insertText(options, "template", create.templateName);
    insertText(options, "size", create.size);
    insertText(options, "label", create.label);
    insertText(options, "egress", create.egress);
    insertText(options, "home-size", create.homeSize);
    if (!create.tags.isEmpty()) {
        options.insert(QStringLiteral("tags"), create.tags);
    }
    whenDone(m_proxy->CreateDomain(name, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::startDisposable(const DisposableOptions& disposable, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    insertText(options, "template", disposable.templateName);
    insertText(options, "size", disposable.size);
    insertText(options, "from", disposable.from);
    if (disposable.isDiskOnly) {
        options.insert(QStringLiteral("disk"), true);
    }
    if (disposable.isKept) {
        options.insert(QStringLiteral("keep"), true);
    }
    whenDone(m_proxy->StartDisposable(options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::listDeleted(bool all, Callback<QList<DeletedInfo>> done) {
    QVariantMap options;
    if (all) {
        options.insert(QStringLiteral("all"), true);
    }
    whenDone(m_proxy->ListDeleted(options), m_proxy.get(), std::move(done), [](const auto& reply) {
        QList<DeletedInfo> domains;
        for (const QVariantMap& map : reply.value()) {
            domains.append(deletedInfoFrom(map));
        }
        return domains;
    });
}

void Manager::restoreDomain(const QString& which, const QString& otherName, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    insertText(options, "as", otherName);
    whenDone(m_proxy->RestoreDomain(which, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::purgeDomain(const QString& which, Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->PurgeDomain(which, {}), m_proxy.get(), std::move(done), pathOf);
}

void Manager::listSnapshots(Callback<QList<SnapshotInfo>> done) {
    whenDone(m_proxy->ListSnapshots(), m_proxy.get(), std::move(done), [](const auto& reply) {
        QList<SnapshotInfo> snapshots;
        for (const QVariantMap& map : reply.value()) {
            snapshots.append(snapshotInfoFrom(map));
        }
        return snapshots;
    });
}

void Manager::setSnapshot(const QString& id, const QVariantMap& changes, Callback<SnapshotInfo> done) {
    whenDone(m_proxy->SetSnapshot(id, changes), m_proxy.get(), std::move(done),
             [](const auto& reply) { return snapshotInfoFrom(reply.value()); });
}

void Manager::removeSnapshot(const QString& id, bool isCascade, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (isCascade) {
        options.insert(QStringLiteral("cascade"), true);
    }
    whenDone(m_proxy->RemoveSnapshot(id, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::revert(const QString& id, const RevertOptions& revert, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (!revert.keepsPresent) {
        options.insert(QStringLiteral("keep"), false);
    }
    if (revert.isDiskOnly) {
        options.insert(QStringLiteral("disk"), true);
    }
    whenDone(m_proxy->Revert(id, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::forkSnapshot(const QString& id, const QString& name, const ForkOptions& options,
                           Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->ForkSnapshot(id, name, optionsFrom(options)), m_proxy.get(), std::move(done), pathOf);
}

void Manager::inspect(const QString& a, const QString& b, Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Inspect(a, b, {}), m_proxy.get(), std::move(done), pathOf);
}

void Manager::listTemplates(Callback<QList<TemplateInfo>> done) {
    whenDone(m_proxy->ListTemplates(), m_proxy.get(), std::move(done), [](const auto& reply) {
        QList<TemplateInfo> templates;
        for (const QVariantMap& map : reply.value()) {
            templates.append(templateInfoFrom(map));
        }
        return templates;
    });
}

void Manager::describeTemplate(const QString& name, Callback<TemplateInfo> done) {
    whenDone(m_proxy->DescribeTemplate(name), m_proxy.get(), std::move(done),
             [](const auto& reply) { return templateInfoFrom(reply.value()); });
}

void Manager::buildTemplate(const QString& name, const BuildOptions& build, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (build.force) {
        options.insert(QStringLiteral("force"), true);
    }
    if (build.update) {
        options.insert(QStringLiteral("update"), true);
    }
    if (!build.packages.isEmpty()) {
        options.insert(QStringLiteral("packages"), build.packages);
    }
    whenDone(m_proxy->BuildTemplate(name, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::makeWarmImage(const QString& name, const QString& size, bool force, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    insertText(options, "size", size);
    if (force) {
        options.insert(QStringLiteral("force"), true);
    }
    whenDone(m_proxy->MakeWarmImage(name, options), m_proxy.get(), std::move(done), pathOf);
}

void Manager::doctor(bool refresh, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (refresh) {
        options.insert(QStringLiteral("refresh"), true);
    }
    whenDone(m_proxy->Doctor(options), m_proxy.get(), std::move(done), pathOf);
}

} // namespace bulkhead::client
