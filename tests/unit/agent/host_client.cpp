// SPDX-License-Identifier: Apache-2.0
#include "host_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace bulkhead::tests {

using protocol::StreamId;

void fillRandom(std::span<std::byte> buffer) {
    static_cast<void>(!::getrandom(buffer.data(), buffer.size(), 0));
}

HostClient::HostClient(UniqueFd fd, const protocol::Token& token)
    : m_fd(std::move(fd))
    , m_token(token) {
    ::fcntl(m_fd.get(), F_SETFL, ::fcntl(m_fd.get(), F_GETFL) | O_NONBLOCK);
}

bool HostClient::begin(int timeoutMs) {
    m_streams.clear();
    m_control = 0;
    m_session = std::make_unique<protocol::Session>(protocol::Role::Host, m_token, fillRandom, *this);
    m_session->start();
    return waitUntil([this] { return m_session->isReady(); }, timeoutMs);
}

void HostClient::onData(StreamId id, std::span<const std::byte> bytes) {
    Stream& stream = m_streams[id];
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    stream.total += bytes.size();
    if (stream.onBytes) {
        stream.onBytes(text);
    }
    if (stream.keep) {
        stream.received.append(text);
    }
    if (stream.consume) {
        m_session->consumed(id, bytes.size());
    }
}

void HostClient::push(StreamId id) {
    Stream& stream = m_streams[id];
    if (!stream.toSend.empty()) {
        const std::size_t taken = m_session->write(id, std::as_bytes(std::span(stream.toSend)));
        stream.toSend.erase(0, taken);
    }
    if (stream.toSend.empty() && stream.finishAfter) {
        stream.finishAfter = false;
        m_session->finish(id);
    }
}

void HostClient::send(StreamId id, const std::string& bytes, bool finishAfter) {
    Stream& stream = m_streams[id];
    stream.toSend += bytes;
    stream.finishAfter = finishAfter;
    push(id);
}

void HostClient::exchange() {
    while (!m_session->pendingOutput().empty()) {
        const auto output = m_session->pendingOutput();
        const ssize_t count = ::send(m_fd.get(), output.data(), output.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            break;
        }
        m_session->outputWritten(static_cast<std::size_t>(count));
    }
    std::array<std::byte, 65536> buffer{};
    const ssize_t count = ::read(m_fd.get(), buffer.data(), buffer.size());
    if (count > 0) {
        static_cast<void>(m_session->feed(std::span(buffer).first(static_cast<std::size_t>(count))));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        m_ended = true;
    }
}

bool HostClient::waitUntil(const std::function<bool()>& done, int timeoutMs) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
    while (!done()) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
        if (left <= 0 || m_ended || m_session->violation() != protocol::Violation::None) {
            return false;
        }
        exchange();
        if (done()) {
            return true;
        }
        pollfd entry{m_fd.get(), POLLIN, 0};
        if (!m_session->pendingOutput().empty()) {
            entry.events |= POLLOUT;
        }
        ::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
    }
    return true;
}

StreamId HostClient::openWith(const StreamHeader& header) {
    const auto id = m_session->open();
    if (!id) {
        return 0;
    }
    sendMessage(*id, header);
    return *id;
}

std::optional<std::string> HostClient::nextMessage(StreamId id, int timeoutMs) {
    const auto lengthOf = [](const std::string& text) -> std::size_t {
        std::uint32_t length = 0;
        if (text.size() < sizeof length) {
            return SIZE_MAX;
        }
        std::memcpy(&length, text.data(), sizeof length);
        return length;
    };
    const auto whole = [&] {
        const std::string& text = m_streams[id].received;
        const std::size_t length = lengthOf(text);
        return length != SIZE_MAX && text.size() - 4 >= length;
    };
    if (!waitUntil([&] { return whole() || m_streams[id].wasReset; }, timeoutMs) || !whole()) {
        return std::nullopt;
    }
    std::string& text = m_streams[id].received;
    const std::size_t length = lengthOf(text);
    std::string message = text.substr(4, length);
    text.erase(0, 4 + length);
    return message;
}

std::optional<Hello> HostClient::hello() {
    StreamHeader header;
    header.mutable_control()->set_version(protocol::kProtocolVersion);
    m_control = openWith(header);
    const auto message = nextMessage(m_control, 10'000);
    Reply reply;
    if (!message || !reply.ParseFromString(*message) || !reply.has_hello()) {
        return std::nullopt;
    }
    return reply.hello();
}

std::optional<Reply> HostClient::ask(Request request) {
    sendMessage(m_control, request);
    const auto message = nextMessage(m_control, 10'000);
    Reply reply;
    if (!message || !reply.ParseFromString(*message)) {
        return std::nullopt;
    }
    return reply;
}

HostClient::Program HostClient::start(ExecRequest request) {
    if (request.exec_id() == 0) {
        request.set_exec_id(m_nextExecId++);
    }
    Program program;
    StreamHeader header;
    header.mutable_stdio()->set_exec_id(request.exec_id());
    program.stdio = openWith(header);
    if (!request.terminal()) {
        header.mutable_err()->set_exec_id(request.exec_id());
        program.errors = openWith(header);
    }
    *header.mutable_exec() = std::move(request);
    program.exec = openWith(header);
    return program;
}

std::optional<ExecEvent> HostClient::nextEvent(const Program& program, int timeoutMs) {
    const auto message = nextMessage(program.exec, timeoutMs);
    ExecEvent event;
    if (!message || !event.ParseFromString(*message)) {
        return std::nullopt;
    }
    return event;
}

std::optional<HostClient::Ended> HostClient::finish(const Program& program, const std::string& input, int timeoutMs) {
    send(program.stdio, input, true);
    Ended ended;
    for (;;) {
        const auto event = nextEvent(program, timeoutMs);
        if (!event) {
            return std::nullopt;
        }
        if (event->has_started()) {
            continue;
        }
        ended.failed = event->has_failed();
        ended.reason = event->failed().reason();
        ended.status = event->exited().status();
        ended.signal = event->exited().signal();
        break;
    }
    const auto closed = [this](StreamId id) { return id == 0 || m_streams[id].finished || m_streams[id].wasReset; };
    if (!waitUntil([&] { return closed(program.stdio) && closed(program.errors) && closed(program.exec); },
                   timeoutMs)) {
        return std::nullopt;
    }
    ended.output = m_streams[program.stdio].received;
    ended.errors = program.errors == 0 ? std::string() : m_streams[program.errors].received;
    return ended;
}

std::optional<HostClient::Ended> HostClient::run(ExecRequest request, const std::string& input, int timeoutMs) {
    return finish(start(std::move(request)), input, timeoutMs);
}

void HostClient::signal(const Program& program, std::uint32_t number) {
    ExecInput message;
    message.set_signal(number);
    sendMessage(program.exec, message);
}

} // namespace bulkhead::tests
