// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace bulkhead::viewer {

/// Interleaved samples of 16 bits with a sign, in the host's byte order.
struct SoundFormat {
    unsigned channels = 0;
    unsigned rate = 0; ///< samples of one channel a second
    bool operator==(const SoundFormat&) const = default;
};

/// What a guest's machine may ask for, and a host plays: one or two channels of 8 to 96 kHz.
constexpr bool isPlayable(const SoundFormat& format) {
    constexpr unsigned kLeastRate = 8'000;
    constexpr unsigned kMostRate = 96'000;
    constexpr unsigned kMostChannels = 2;
    return format.channels >= 1 && format.channels <= kMostChannels && format.rate >= kLeastRate &&
           format.rate <= kMostRate;
}

/// Where a guest's sound goes. What is told of it comes from the guest's machine, at whatever rate. GUI thread; nothing
/// blocks.
class SoundOutput {
public:
    SoundOutput() = default;
    SoundOutput(const SoundOutput&) = delete;
    SoundOutput& operator=(const SoundOutput&) = delete;
    virtual ~SoundOutput() = default;

    /// isPlayable() formats only. Also in the middle, and again.
    virtual void begin(const SoundFormat& format) = 0;
    /// What cannot be taken now is dropped: sound that is late is worse than none.
    virtual void play(std::span<const std::byte> samples) = 0;
    virtual void end() = 0;
    /// While it is muted, samples go nowhere.
    virtual void setMuted(bool isMuted) = 0;
};

} // namespace bulkhead::viewer
