// SPDX-License-Identifier: Apache-2.0
#include "protocol/session.hpp"

namespace bulkhead::protocol {

std::string_view nameOf(Violation violation) {
    switch (violation) {
    case Violation::None:
        return "None";
    case Violation::BadVersion:
        return "BadVersion";
    case Violation::BadType:
        return "BadType";
    case Violation::BadFlags:
        return "BadFlags";
    case Violation::FrameTooLarge:
        return "FrameTooLarge";
    case Violation::WindowExceeded:
        return "WindowExceeded";
    case Violation::WindowOverflow:
        return "WindowOverflow";
    case Violation::UnknownStream:
        return "UnknownStream";
    case Violation::BadStreamId:
        return "BadStreamId";
    case Violation::TooManyStreams:
        return "TooManyStreams";
    case Violation::TooManyControlFrames:
        return "TooManyControlFrames";
    case Violation::BadProof:
        return "BadProof";
    case Violation::GoAway:
        return "GoAway";
    case Violation::MessageTooLarge:
        return "MessageTooLarge";
    case Violation::BadMessage:
        return "BadMessage";
    }
    return "Unknown";
}

} // namespace bulkhead::protocol
