// SPDX-License-Identifier: Apache-2.0
#include "client/failure.hpp"

#include <QDBusError>

#include <string_view>

namespace bulkhead::client {

Failure failureFrom(const std::string& errorName, const std::string& text) {
    constexpr std::string_view kOurs = "org.bulkhead1.Error.";
    constexpr std::string_view kBus = "org.freedesktop.DBus.Error.";
    const std::string_view name = errorName;
    if (name.starts_with(kOurs)) {
        return {std::string(name.substr(kOurs.size())), text};
    }
    if (name.starts_with(kBus)) {
        const std::string_view kind = name.substr(kBus.size());
        if (kind == "ServiceUnknown" || kind == "NameHasNoOwner" || kind.starts_with("Spawn.")) {
            return {code::kDaemonNotRunning, "bulkheadd is not running"};
        }
        // The bus answers NoReply for a service that left it with our call unanswered; our own calls have no time-out.
        if (kind == "NoReply" || kind == "Disconnected") {
            return {code::kDaemonLost, "bulkheadd went away before it answered"};
        }
        if (kind == "AccessDenied" || kind == "AuthFailed" || kind == "InteractiveAuthorizationRequired") {
            return {code::kNotAuthorized, "the message bus refused the call: " + text};
        }
        if (kind == "UnknownObject") {
            return {code::kNotFound, text};
        }
        if (kind == "UnknownMethod" || kind == "UnknownInterface" || kind == "InvalidSignature" ||
            kind == "InvalidArgs") {
            return {code::kVersionMismatch, "this bulkheadd is of another version: " + text};
        }
        if (kind == "NoServer" || kind == "FileNotFound") {
            return {code::kBusUnavailable, text};
        }
    }
    if (name.starts_with("org.freedesktop.systemd1.")) { // bus activation through systemd
        return {code::kDaemonNotRunning, "bulkheadd could not be started: " + text};
    }
    return {code::kHostFailure, text.empty() ? errorName : text};
}

Failure failureFrom(const QDBusError& error) {
    if (error.type() == QDBusError::InvalidSignature) {
        return {code::kVersionMismatch, "this bulkheadd is of another version: " + error.message().toStdString()};
    }
    return failureFrom(error.name().toStdString(), error.message().toStdString());
}

} // namespace bulkhead::client
