// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/domain.hpp"
#include "client/terminal_text.hpp"

#include <QFile>
#include <QSaveFile>

namespace bulkhead::cli {
namespace {

int report(const DomainScreenshotArguments& arguments, const client::Failure& failure) {
    printFailure("domain " + arguments.name, failure, arguments.json);
    return exitCodeFor(failure);
}

/// Written beside it first, so that the file is whole or not there.
client::Outcome<qint64> save(const client::Domain::Picture& picture, const std::string& path) {
    QFile bytes;
    QSaveFile file(QFile::decodeName(path.c_str()));
    if (!bytes.open(picture.bytes->get(), QIODevice::ReadOnly) || !file.open(QIODevice::WriteOnly)) {
        return client::failed(client::code::kHostFailure,
                              "cannot write " + path + ": " + file.errorString().toStdString());
    }
    const QByteArray content = bytes.readAll();
    if (file.write(content) != content.size() || !file.commit()) {
        return client::failed(client::code::kHostFailure,
                              "cannot write " + path + ": " + file.errorString().toStdString());
    }
    return content.size();
}

} // namespace

int screenshotDomain(const DomainScreenshotArguments& arguments, Session& session) {
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().findDomain(QString::fromStdString(arguments.name), std::move(done)); });
    if (!path) {
        return report(arguments, path.error());
    }
    client::Domain domain(session.connection(), *path);
    const auto picture =
        session.await<client::Domain::Picture>([&](auto done) { domain.screenshot(arguments.head, std::move(done)); });
    if (!picture) {
        return report(arguments, picture.error());
    }
    if (picture->type != QLatin1String("image/png")) {
        return report(arguments, {client::code::kHostFailure, "this host's libvirt makes pictures as " +
                                                                  picture->type.toStdString() + ", not PNG"});
    }
    const auto saved = save(*picture, arguments.file);
    if (!saved) {
        return report(arguments, saved.error());
    }
    return printOut(arguments.json
                        ? jsonText(Json{{"domain", arguments.name}, {"file", arguments.file}, {"bytes", *saved}})
                        : "Saved " + client::terminalSafe(arguments.file) + ".\n");
}

} // namespace bulkhead::cli
