// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_error.hpp"

#include "base/escaping.hpp"

#include <libvirt/virterror.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace bulkhead::hypervisor {
namespace {

constexpr std::size_t kMaxText = 600;

/// QEMU's own words come with the log lines around them: one line, and without "internal error: ", which tells nobody
/// anything.
std::string cleaned(const char* message) {
    std::string text = message != nullptr ? message : "no reason given";
    constexpr std::string_view noise = "internal error: ";
    if (text.starts_with(noise)) {
        text.erase(0, noise.size());
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.pop_back();
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return escapeUntrusted(text, kMaxText);
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

bool isConnectionError(const virError& error) {
    return error.code == VIR_ERR_NO_CONNECT || error.code == VIR_ERR_RPC || error.code == VIR_ERR_INVALID_CONN ||
           error.domain == VIR_FROM_RPC || error.domain == VIR_FROM_REMOTE;
}

/// libvirt gives many causes no number, only the text of QEMU or of strerror() in the C locale.
ErrorCode codeOf(const virError& error, std::string_view text) {
    if (error.code == VIR_ERR_NO_MEMORY || has(text, "Cannot allocate memory") ||
        has(text, "cannot set up guest memory")) {
        return ErrorCode::LimitExceeded;
    }
    if ((error.code == VIR_ERR_SYSTEM_ERROR && (error.int1 == ENOSPC || error.int1 == EDQUOT)) ||
        has(text, "No space left on device")) {
        return ErrorCode::NoSpace;
    }
    if (isConnectionError(error)) {
        return ErrorCode::Unavailable;
    }
    // "domain is already active", "domain '…' already exists with uuid …": as "operation invalid" or "failed".
    if (has(text, "is already active") || has(text, "already exists with uuid")) {
        return ErrorCode::AlreadyExists;
    }
    // Of libvirt's two hundred codes these mean something of their own to us.
    const int code = error.code;
    switch (code) {
    case VIR_ERR_NO_DOMAIN:
        return ErrorCode::NotFound;
    case VIR_ERR_DOM_EXIST:
        return ErrorCode::AlreadyExists;
    case VIR_ERR_OPERATION_INVALID:
        return ErrorCode::WrongState;
    case VIR_ERR_OPERATION_TIMEOUT:
        return ErrorCode::TimedOut;
    case VIR_ERR_RESOURCE_BUSY:
        return ErrorCode::Busy;
    case VIR_ERR_AUTH_FAILED:
    case VIR_ERR_AUTH_CANCELLED:
    case VIR_ERR_AUTH_UNAVAILABLE:
    case VIR_ERR_ACCESS_DENIED:
        return ErrorCode::Unavailable;
    default:
        break;
    }
    return ErrorCode::HostFailure;
}

std::string_view hintFor(const virError& error, ErrorCode code, std::string_view text) {
    if (code == ErrorCode::Unavailable) {
        return isConnectionError(error) ? "; is libvirtd running?" : "; libvirt does not accept this user";
    }
    if (code == ErrorCode::HostFailure && has(text, "Permission denied") && has(text, "master-key.aes")) {
        return "; the emulator's user cannot enter libvirt's folder: run bulkhead doctor";
    }
    return "";
}

} // namespace

Error errorFrom(const virError* error, std::string_view what) {
    if (error == nullptr || error->code == VIR_ERR_OK) {
        return {ErrorCode::HostFailure, std::string(what) + ": libvirt gave no reason"};
    }
    const std::string text = cleaned(error->message);
    const ErrorCode code = codeOf(*error, text);
    return {code, fmt::format("{}: {}{}", what, text, hintFor(*error, code, text))};
}

Error lastLibvirtError(std::string_view what) {
    return errorFrom(virGetLastError(), what);
}

bool lastErrorIsNoDomain() {
    const virError* error = virGetLastError();
    return error != nullptr && error->code == VIR_ERR_NO_DOMAIN;
}

} // namespace bulkhead::hypervisor
