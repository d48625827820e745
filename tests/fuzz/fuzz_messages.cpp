// SPDX-License-Identifier: Apache-2.0
// Each message that the host takes from a guest, through the channel's validators. What passes must be within the
// promises of validator.hpp.
#include "channel/validator.hpp"
#include "protocol/agent.pb.h"
#include "protocol/limits.hpp"

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
    if (data[0] % 2 == 0) {
        const auto news = checkExecEvent(message);
        if (news && std::holds_alternative<ProgramEnded>(*news)) {
            checkEnd(std::get<ProgramEnded>(*news));
        }
    } else if (const auto reply = checkReply(message)) {
        checkBody(*reply);
    }
    return 0;
}
