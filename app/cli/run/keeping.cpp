// SPDX-License-Identifier: Apache-2.0
#include "cli/run/keeping.hpp"

#include "client/terminal_text.hpp"

namespace bulkhead::cli {
namespace {

client::Outcome<QVariantMap> suspend(Session& session, Place& place, const RunArguments& arguments) {
    const auto job = session.await<QDBusObjectPath>([&](auto done) { place.domain->suspend(std::move(done)); });
    if (!job) {
        return tl::unexpected<client::Failure>(job.error());
    }
    return session.follow(*job, "Suspending " + client::terminalSafe(place.name), styleFor(arguments));
}

} // namespace

KeptDomain keepAsItIs(Session& session, Place& place, const KeepSubject& subject, const RunArguments& arguments) {
    KeptDomain kept;
    kept.domain = place.name;
    kept.isDisposable = subject.isDisposable;
    if (subject.wasLeft) {
        // A picture of it now would bring back a program that is just being ended.
        kept.isLeftToDaemon = subject.isDisposable;
        kept.failure = {client::code::kInterrupted, "its command was left"};
        kept.state = subject.isDisposable ? std::string() : stateOf(session, place);
        return kept;
    }
    const auto suspended = suspend(session, place, arguments);
    kept.isSuspended = suspended.has_value();
    if (!suspended) {
        kept.failure = suspended.error();
        kept.isLeftToDaemon = subject.isDisposable && (suspended.error().code == client::code::kInterrupted ||
                                                       suspended.error().code == client::code::kCancelled);
        kept.state = kept.isLeftToDaemon ? std::string() : stateOf(session, place);
    }
    return kept;
}

} // namespace bulkhead::cli
