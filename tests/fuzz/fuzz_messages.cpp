// SPDX-License-Identifier: Apache-2.0
// Each message that the host takes from a guest, through the channel's validators. What passes must be within the
// promises of validator.hpp.
#include "base/escaping.hpp"
#include "channel/session_validator.hpp"
#include "channel/validator.hpp"
#include "protocol/agent.pb.h"
#include "protocol/limits.hpp"
#include "protocol/session_limits.hpp"

#include <cstdlib>
#include <google/protobuf/stubs/logging.h>

using namespace bulkhead;
using namespace bulkhead::channel;
using exec_stream::ClientEventKind;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void checkEnd(const ProgramEnded& end) {
    switch (end.kind) {
    case ClientEventKind::Exited:
        require(end.a <= 255 && end.b == 0);
        return;
    case ClientEventKind::Signalled:
        require(end.a >= 1 && end.a <= 64 && (end.b == 0 || end.b == 1));
        return;
    case ClientEventKind::Failed:
        require(agent::ExecFailed::Reason_IsValid(static_cast<int>(end.a)) && end.b >= 0 && end.b <= 4095);
        return;
    case ClientEventKind::Started:
    case ClientEventKind::TimedOut:
    case ClientEventKind::Lost:
        break;
    }
    std::abort();
}

void checkBody(const GuestReply& reply) {
    require((reply.errorNumber == 0) == (reply.body.index() != 0));
    if (const auto* const hello = std::get_if<GuestHello>(&reply.body)) {
        require(reply.id == 0 && hello->features.size() <= protocol::kMaxFeatures);
        for (const auto& feature : hello->features) {
            require(!feature.empty() && feature.size() <= protocol::kMaxFeatureName);
        }
    }
    if (const auto* const status = std::get_if<GuestStatus>(&reply.body)) {
        require(status->memoryAvailable <= status->memoryTotal && status->systemAvailable <= status->systemTotal &&
                status->homeAvailable <= status->homeTotal);
    }
}

template <std::size_t N> void checkText(const std::array<char, N>& text) {
    require(text.back() == '\0');
    const std::string shown(text.data());
    require(isValidUtf8(shown) && cleanUntrusted(shown, N) == shown);
}

void checkSession(const SessionNews& news) {
    using namespace session_stream;
    if (const auto* const up = std::get_if<SessionIsUp>(&news)) {
        require(up->heads >= 1 && up->heads <= kMostHeads);
    } else if (const auto* const window = std::get_if<WindowIsThere>(&news)) {
        const Event& event = window->event;
        require(event.kind == EventKind::WindowChanged && event.window != 0 && event.head < kMostHeads);
        require(event.width >= kSmallestSide && event.width <= kLargestSide);
        require(event.height >= kSmallestSide && event.height <= kLargestSide);
        require(event.windowKind <= WindowKind::Utility);
        checkText(event.text);
        checkText(event.name);
    } else if (const auto* const app = std::get_if<AppIsThere>(&news)) {
        require(app->event.kind == EventKind::App && protocol::isAppId(app->event.name.data()));
        checkText(app->event.text);
        checkText(app->event.extra);
    } else if (const auto* const launched = std::get_if<AppIsLaunched>(&news)) {
        require(protocol::isAppId(launched->app) && launched->errorNumber >= 0 && launched->errorNumber <= 4095);
    }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    google::protobuf::SetLogHandler(nullptr);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The first byte chooses the type.
    if (size == 0) {
        return 0;
    }
    const GuestMessage message(std::string(reinterpret_cast<const char*>(data + 1), size - 1));
    if (data[0] % 3 == 0) {
        const auto news = checkExecEvent(message);
        if (news && std::holds_alternative<ProgramEnded>(*news)) {
            checkEnd(std::get<ProgramEnded>(*news));
        }
    } else if (data[0] % 3 == 1) {
        if (const auto reply = checkReply(message)) {
            checkBody(*reply);
        }
    } else if (const auto news = checkSessionEvent(message)) {
        checkSession(*news);
    }
    return 0;
}
