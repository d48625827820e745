// SPDX-License-Identifier: Apache-2.0
#include "gui/wording.hpp"

#include "client/terminal_text.hpp"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <QRegularExpression>

#include <array>
#include <utility>

namespace bulkhead::gui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("wording", text);
}

QString cut(QString safe, qsizetype longest) {
    if (safe.size() > longest) {
        safe.truncate(longest - 1);
        safe.append(QChar(0x2026));
    }
    return safe;
}

} // namespace

QString shown(const QString& foreign, qsizetype longest) {
    return cut(QString::fromStdString(client::terminalSafe(foreign)), longest);
}

QString shown(const std::string& foreign, qsizetype longest) {
    return cut(QString::fromStdString(client::terminalSafe(foreign)), longest);
}

QString stateInWords(const QString& state) {
    static const std::array<std::pair<QLatin1String, const char*>, 7> kWords{
        {{QLatin1String("stopped"), QT_TRANSLATE_NOOP("wording", "Stopped")},
         {QLatin1String("starting"), QT_TRANSLATE_NOOP("wording", "Starting…")},
         {QLatin1String("running"), QT_TRANSLATE_NOOP("wording", "Running")},
         {QLatin1String("paused"), QT_TRANSLATE_NOOP("wording", "Paused")},
         {QLatin1String("suspended"), QT_TRANSLATE_NOOP("wording", "Suspended")},
         {QLatin1String("stopping"), QT_TRANSLATE_NOOP("wording", "Stopping…")},
         {QLatin1String("failed"), QT_TRANSLATE_NOOP("wording", "Failed")}}};
    for (const auto& [word, text] : kWords) {
        if (state == word) {
            return tr(text);
        }
    }
    return shown(state, 32);
}

QString kindInWords(const QString& kind) {
    if (kind == QLatin1String("app")) {
        return tr("app domain");
    }
    if (kind == QLatin1String("disposable")) {
        return tr("disposable");
    }
    if (kind == QLatin1String("standalone")) {
        return tr("standalone domain");
    }
    return shown(kind, 32);
}

QString timeInWords(std::int64_t secondsSinceEpoch) {
    return QLocale().toString(QDateTime::fromSecsSinceEpoch(secondsSinceEpoch), QLocale::ShortFormat);
}

QString snapshotKindInWords(const client::SnapshotInfo& snapshot) {
    return snapshot.isFull()                        ? tr("Disks and memory")
           : snapshot.kind == QLatin1String("disk") ? tr("Disks only")
                                                    : shown(snapshot.kind, 32);
}

QString reasonInWords(const QString& reason) {
    static const std::array<std::pair<QLatin1String, const char*>, 6> kWords{
        {{QLatin1String("manual"), QT_TRANSLATE_NOOP("wording", "Taken by hand")},
         {QLatin1String("before-revert"), QT_TRANSLATE_NOOP("wording", "Before a revert")},
         {QLatin1String("before-upgrade"), QT_TRANSLATE_NOOP("wording", "Before an upgrade")},
         {QLatin1String("on-stop"), QT_TRANSLATE_NOOP("wording", "When it stopped")},
         {QLatin1String("suspend"), QT_TRANSLATE_NOOP("wording", "When it was suspended")},
         {QLatin1String("fork"), QT_TRANSLATE_NOOP("wording", "For a fork")}}};
    for (const auto& [word, text] : kWords) {
        if (reason == word) {
            return tr(text);
        }
    }
    return shown(reason, 80);
}

QString adviceFor(const client::Failure& failure) {
    namespace code = client::code;
    if (failure.code == code::kDaemonNotRunning) {
        return tr("Start it in a terminal: sudo systemctl start bulkheadd");
    }
    if (failure.code == code::kBusUnavailable) {
        return tr("Start the system message bus: sudo systemctl start dbus");
    }
    if (failure.code == code::kDaemonLost) {
        return tr("What was under way may or may not have been done; its log tells: journalctl -u bulkheadd");
    }
    if (failure.code == code::kVersionMismatch) {
        return tr("Restart it after an update: sudo systemctl restart bulkheadd");
    }
    if (failure.code == code::kNotAuthorized) {
        return tr("This is the administrator's to do.");
    }
    if (failure.code == code::kTimedOut) {
        return tr("Try again; if it stays so, “Examine this host” in the search field looks for the cause.");
    }
    if (failure.code == code::kHostFailure) {
        return tr("“Examine this host” in the search field looks for the cause; the log: journalctl -u bulkheadd");
    }
    return {};
}

QString sentence(const client::Failure& failure) {
    QString text = shown(failure.message.empty() ? failure.code : failure.message);
    // "work: start: …" begins with a name, which keeps its spelling.
    static const QRegularExpression kBeginsWithName(QStringLiteral("\\A[^\\s:]+:"));
    if (!text.isEmpty() && !kBeginsWithName.match(text).hasMatch()) {
        text[0] = text[0].toUpper();
    }
    if (!text.endsWith(QLatin1Char('.')) && !text.endsWith(QChar(0x2026))) {
        text.append(QLatin1Char('.'));
    }
    return text;
}

QString shellWord(const QString& foreign) {
    static const QRegularExpression kPlain(QStringLiteral("\\A[A-Za-z0-9_./-]+\\z"));
    QString word = shown(foreign);
    if (kPlain.match(word).hasMatch()) {
        return word;
    }
    return QLatin1Char('\'') + word.replace(QLatin1Char('\''), QLatin1String("'\\''")) + QLatin1Char('\'');
}

QString sizeInWords(const QString& name, const client::TemplateSize& size) {
    const QString processors = size.vcpus == 1 ? tr("1 processor") : tr("%1 processors").arg(size.vcpus);
    return tr("%1: %2 memory, %3").arg(shown(name, 32), bytesInWords(size.memory), processors);
}

QString bytesInWords(std::uint64_t bytes) {
    return QLocale().formattedDataSize(static_cast<qint64>(bytes), 1, QLocale::DataSizeIecFormat);
}

} // namespace bulkhead::gui
