// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Hard limits of the channel. Every length is checked against these before anything is allocated.
namespace bulkhead::protocol {

constexpr std::uint32_t kProtocolVersion = 1;
/// A protobuf message, without its length prefix (bytes).
constexpr std::size_t kMaxMessage = std::size_t{64} * 1024;
/// The payload of one yamux data frame (bytes). Larger ones break the session.
constexpr std::size_t kMaxFramePayload = std::size_t{64} * 1024;
/// yamux's initial receive window of a stream (bytes), as its specification says.
constexpr std::uint32_t kInitialWindow = 256 * 1024;
/// Streams open at once in a session.
constexpr std::size_t kMaxStreams = 256;
/// Bytes that wait to be sent on the whole session; write() takes no more until they are gone.
constexpr std::size_t kMaxOutputQueue = std::size_t{1024} * 1024;
/// Control frames (window updates, pings, resets) that a peer may make us queue before the session is broken.
constexpr std::size_t kMaxQueuedControlFrames = 4096;

constexpr std::size_t kTokenSize = 32;
constexpr std::size_t kNonceSize = 16;

constexpr std::size_t kMaxArguments = 1024;
constexpr std::size_t kMaxEnvironment = 256;
constexpr std::size_t kMaxConcurrentExecs = 64;
constexpr std::size_t kMaxFeatures = 64;
constexpr std::size_t kMaxFeatureName = 64;

/// Names in Control.features and Hello.features.
constexpr const char* kFeatureCloseOutput = "close-output";
constexpr const char* kFeatureSession = "session"; ///< takes a stream of kind session

constexpr const char* kFeatureImage = "image"; ///< takes QuiesceRequest and RejuvenateRequest

constexpr const char* kFeatureSnapshot = "snapshot"; ///< takes FreezeRequest, ThawRequest and SetHostnameRequest

constexpr std::size_t kMinEntropy = 32;
constexpr std::size_t kMaxEntropy = 512;

/// AF_VSOCK port on which the agent listens.
constexpr std::uint32_t kVsockPort = 1914;
/// Name of the virtio-serial port.
constexpr const char* kSerialPortName = "org.bulkhead.agent.0";
/// Where the guest finds its token (QEMU fw_cfg, read-only for root).
constexpr const char* kTokenFwCfgName = "opt/org.bulkhead/token";

} // namespace bulkhead::protocol
