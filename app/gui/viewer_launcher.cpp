// SPDX-License-Identifier: Apache-2.0
#include "gui/viewer_launcher.hpp"

#include "client/descriptor.hpp"
#include "gui/wording.hpp"

#include <QCoreApplication>
#include <QProcess>
#include <QSocketNotifier>
#include <QStandardPaths>

#include <memory>
#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::gui {
namespace {

QString findViewer() {
    const QString name = QStringLiteral("bulkhead-viewer");
    const QString beside = QStandardPaths::findExecutable(name, {QCoreApplication::applicationDirPath()});
    return beside.isEmpty() ? QStandardPaths::findExecutable(name) : beside;
}

} // namespace

ViewerLauncher::ViewerLauncher(QString program, QObject* parent)
    : QObject(parent)
    , m_program(std::move(program)) {}

ViewerLauncher::~ViewerLauncher() = default;

QString ViewerLauncher::ensure(const QString& domainName) {
    return m_running.contains(domainName) ? QString() : start(domainName, {QStringLiteral("--background"), domainName});
}

QString ViewerLauncher::present(const QString& domainName) {
    return start(domainName, {domainName});
}

QString ViewerLauncher::start(const QString& domainName, const QStringList& arguments) {
    const QString program = m_program.isEmpty() ? findViewer() : m_program;
    qint64 pid = 0;
    QProcess viewer;
    viewer.setProgram(program);
    viewer.setArguments(arguments);
    // It outlives us, and whoever reads our output must not wait for it.
    viewer.setStandardInputFile(QProcess::nullDevice());
    viewer.setStandardOutputFile(QProcess::nullDevice());
    viewer.setStandardErrorFile(QProcess::nullDevice());
    if (program.isEmpty() || !viewer.startDetached(&pid)) {
        return tr("The windows of %1 cannot be shown: bulkhead-viewer is not installed.").arg(shown(domainName, 64));
    }
    auto process =
        std::make_shared<client::Descriptor>(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U)));
    if (!process->isOpen() || m_running.contains(domainName)) {
        return {}; // it has ended already, or will soon
    }
    auto* end = new QSocketNotifier(process->get(), QSocketNotifier::Read, this);
    m_running.insert(domainName, end);
    connect(end, &QSocketNotifier::activated, this, [this, end, process, domainName] {
        end->setEnabled(false);
        m_running.remove(domainName);
        end->deleteLater();
    });
    return {};
}

} // namespace bulkhead::gui
