// SPDX-License-Identifier: Apache-2.0
#include "channel_rig.hpp"

#include <QFile>
#include <QtGlobal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::channel::test {

using protocol::StreamId;

namespace {

void fillRandom(std::span<std::byte> out) {
    if (::getrandom(out.data(), out.size(), 0) < 0) {
        qFatal("getrandom");
    }
}

std::span<const std::byte> bytesOf(const std::string& text) {
    return std::as_bytes(std::span(text));
}

void setNonBlocking(int fd) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

} // namespace

// ---- guest ---------------------------------------------------------------------------------------------------------

FakeGuest::FakeGuest(UniqueFd fd, const protocol::Token& token)
    : m_fd(std::move(fd))
    , m_session(protocol::Role::Guest, token, fillRandom, *this) {
    setNonBlocking(m_fd.get());
    hello.mutable_hello()->set_version(1);
    hello.mutable_hello()->set_agent_version("fake");
    hello.mutable_hello()->add_features(protocol::kFeatureCloseOutput);
}

void FakeGuest::pump() {
    if (!m_fd) {
        return;
    }
    std::array<std::byte, 65536> buffer;
    for (int i = 0; reads && i < 16; ++i) {
        const ssize_t count = ::read(m_fd.get(), buffer.data(), buffer.size());
        if (count <= 0) {
            break;
        }
        (void)m_session.feed(std::span(buffer).first(static_cast<std::size_t>(count)));
    }
    for (auto& [stream, out] : m_out) {
        out.done += m_session.write(stream, bytesOf(out.bytes).subspan(out.done));
        if (out.finish && out.done == out.bytes.size()) {
            m_session.finish(stream);
            out.finish = false;
        }
    }
    for (auto pending = m_session.pendingOutput(); !pending.empty(); pending = m_session.pendingOutput()) {
        const ssize_t count = ::send(m_fd.get(), pending.data(), pending.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            break;
        }
        m_session.outputWritten(static_cast<std::size_t>(count));
    }
}

void FakeGuest::sendRaw(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            pollfd room{m_fd.get(), POLLOUT, 0};
            if (::poll(&room, 1, 5000) <= 0) {
                return;
            }
            continue;
        }
        if (count < 0) {
            return;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

void FakeGuest::send(StreamId stream, const google::protobuf::MessageLite& message) {
    const auto framed = protocol::frameMessage(message.SerializeAsString());
    m_out[stream].bytes.append(reinterpret_cast<const char*>(framed.data()), framed.size());
}

void FakeGuest::started(const Program& program, std::uint32_t pid) {
    agent::ExecEvent event;
    event.mutable_started()->set_pid(pid);
    send(program.exec, event);
}

void FakeGuest::exited(const Program& program, std::uint32_t status, std::uint32_t signal) {
    agent::ExecEvent event;
    event.mutable_exited()->set_status(status);
    event.mutable_exited()->set_signal(signal);
    send(program.exec, event);
    finish(program.exec);
}

void FakeGuest::onData(StreamId stream, std::span<const std::byte> bytes) {
    In& in = m_in[stream];
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (in.kind == Kind::Stdio) {
        programs[in.exec].input += text;
        if (consumesInput) {
            m_session.consumed(stream, bytes.size());
        }
        return;
    }
    m_session.consumed(stream, bytes.size());
    if (!in.reader.feed(bytes)) {
        qFatal("the host sent a message that is too long");
    }
    while (const auto message = in.reader.next()) {
        onMessage(stream, *message);
        if (in.kind == Kind::Stdio) {
            const auto rest = in.reader.takeRest();
            programs[in.exec].input.append(reinterpret_cast<const char*>(rest.data()), rest.size());
            return;
        }
    }
}

void FakeGuest::onMessage(StreamId stream, const std::string& message) {
    In& in = m_in[stream];
    if (in.kind == Kind::Control) {
        requests.emplace_back().ParseFromString(message);
        return;
    }
    if (in.kind == Kind::Exec) {
        agent::ExecInput input;
        input.ParseFromString(message);
        if (input.has_signal()) {
            programs[in.exec].signalNumbers.push_back(input.signal());
        } else if (input.has_close_output()) {
            programs[in.exec].outputClosed = true;
        } else {
            programs[in.exec].windows.emplace_back(input.window().rows(), input.window().columns());
        }
        return;
    }
    if (in.kind == Kind::Session) {
        commands.emplace_back().ParseFromString(message);
        return;
    }
    agent::StreamHeader header;
    header.ParseFromString(message);
    if (header.has_control()) {
        in.kind = Kind::Control;
        control = stream;
        if (answersHello) {
            send(stream, hello);
        }
    } else if (header.has_exec()) {
        in.kind = Kind::Exec; // the reader keeps what came behind
        in.exec = header.exec().exec_id();
        programs[in.exec].exec = stream;
        programs[in.exec].request = header.exec();
    } else if (header.has_stdio()) {
        in.kind = Kind::Stdio;
        in.exec = header.stdio().exec_id();
        programs[in.exec].stdio = stream;
    } else if (header.has_session()) {
        in.kind = Kind::Session;
        session = stream;
    } else if (header.has_err()) {
        in.kind = Kind::Err;
        in.exec = header.err().exec_id();
        programs[in.exec].err = stream;
    }
}

void FakeGuest::onPeerFinished(StreamId stream) {
    if (m_in[stream].kind == Kind::Stdio) {
        programs[m_in[stream].exec].inputEnded = true;
    }
}

void FakeGuest::onStreamReset(StreamId stream) {
    if (m_in[stream].kind == Kind::Stdio) {
        programs[m_in[stream].exec].stdioReset = true;
    } else if (m_in[stream].kind == Kind::Exec) {
        programs[m_in[stream].exec].execReset = true;
    } else if (m_in[stream].kind == Kind::Err) {
        programs[m_in[stream].exec].errReset = true;
    }
    m_out.erase(stream);
}

// ---- client --------------------------------------------------------------------------------------------------------

namespace {
bool readAll(int fd, std::string& into, std::size_t atMost) {
    std::array<char, 65536> buffer;
    while (atMost > 0) {
        const ssize_t count = ::recv(fd, buffer.data(), std::min(buffer.size(), atMost), MSG_DONTWAIT);
        if (count <= 0) {
            return count == 0;
        }
        into.append(buffer.data(), static_cast<std::size_t>(count));
        atMost -= static_cast<std::size_t>(count);
    }
    return false;
}
} // namespace

void Client::readOutput(std::size_t atMost) {
    outEnded = outEnded || (output && readAll(output.get(), out, atMost));
    errEnded = errEnded || (error && readAll(error.get(), err, atMost));
}

void Client::readEvents() {
    exec_stream::ClientEvent event;
    for (;;) {
        const ssize_t count = ::recv(control.get(), &event, sizeof event, MSG_DONTWAIT);
        if (count != static_cast<ssize_t>(sizeof event)) {
            controlEnded = controlEnded || count == 0;
            return;
        }
        events.push_back(event);
    }
}

std::size_t Client::writeInput(std::string_view bytes) {
    const ssize_t count = ::send(input.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
}

void Client::request(exec_stream::ClientRequestKind kind, std::uint32_t a, std::uint32_t b) {
    const exec_stream::ClientRequest request{kind, a, b};
    if (::send(control.get(), &request, sizeof request, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof request)) {
        qFatal("cannot send a request");
    }
}

// ---- rig -----------------------------------------------------------------------------------------------------------

protocol::Token Rig::token(unsigned char fill) {
    protocol::Token token{};
    token.fill(std::byte{fill});
    return token;
}

Rig::Rig(unsigned char guestsToken)
    : guest(spawn(), token(guestsToken)) {}

namespace {
sockaddr_un addressOf(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

/// Out of the way of the numbers that the child uses.
int raised(int fd) {
    return ::fcntl(fd, F_DUPFD_CLOEXEC, 20);
}
} // namespace

UniqueFd Rig::spawn() {
    std::array<int, 2> stream{};
    std::array<int, 2> secret{};
    const UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address = addressOf(socketPath());
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.data()) != 0 ||
        ::pipe2(secret.data(), O_CLOEXEC) != 0 ||
        ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), 8) != 0) {
        qFatal("cannot prepare the channel's descriptors");
    }
    const auto secretBytes = token(7);
    if (::write(secret[1], secretBytes.data(), secretBytes.size()) != ssize_t(secretBytes.size())) {
        qFatal("cannot write the token");
    }
    const UniqueFd guestFd(raised(stream[1]));
    const UniqueFd listenFd(raised(listener.get()));
    const UniqueFd tokenFd(raised(secret[0]));
    ::close(stream[1]);
    ::close(secret[0]);
    ::close(secret[1]);
    m_pid = ::fork();
    if (m_pid == 0) {
        ::dup2(guestFd.get(), kGuestFd);
        ::dup2(listenFd.get(), kControlListenFd);
        ::dup2(tokenFd.get(), kTokenFd);
        ::execl(BULKHEAD_CHANNEL_PROGRAM, "bulkhead-channel", "test", nullptr);
        ::_exit(127);
    }
    return UniqueFd(stream[0]);
}

Rig::~Rig() {
    if (!m_status) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
}

void Rig::connectDaemon() {
    m_daemon.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    records.clear();
    daemonEnded = false;
    const sockaddr_un address = addressOf(socketPath());
    if (::connect(m_daemon.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        qFatal("cannot connect to the channel");
    }
    setNonBlocking(m_daemon.get());
}

void Rig::send(ToChannelKind kind, std::uint64_t request, std::int64_t argument, const std::string& rest) {
    const ToChannel record{kind, 0, request, argument};
    std::string packet(reinterpret_cast<const char*>(&record), sizeof record);
    packet += rest;
    if (::send(m_daemon.get(), packet.data(), packet.size(), MSG_NOSIGNAL) != ssize_t(packet.size())) {
        qFatal("cannot send to the channel");
    }
}

void Rig::receive() {
    while (m_daemon) {
        Received received{};
        iovec part{&received.record, sizeof received.record};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t count = ::recvmsg(m_daemon.get(), &message, MSG_CMSG_CLOEXEC);
        if (count != ssize_t(sizeof received.record)) {
            daemonEnded = daemonEnded || count == 0 || (count < 0 && errno == ECONNRESET);
            return;
        }
        for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
            const std::size_t fds = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < fds; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
                received.fds.emplace_back(fd);
            }
        }
        records.push_back(std::move(received));
    }
}

bool Rig::until(const std::function<bool()>& done, int seconds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (;;) {
        guest.pump();
        receive();
        if (done()) {
            return true;
        }
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        // The conditions look at many descriptors; a short wait on the two busiest is enough to be quick.
        std::array<pollfd, 2> waiting{pollfd{guest.reads ? guest.fd() : -1, POLLIN, 0},
                                      pollfd{daemonEnded ? -1 : m_daemon.get(), POLLIN, 0}};
        ::poll(waiting.data(), waiting.size(), 1);
    }
}

std::optional<Received> Rig::next(FromChannelKind kind, int seconds) {
    std::optional<Received> found;
    (void)until(
        [&] {
            while (!records.empty() && !found) {
                if (records.front().record.kind == kind) {
                    found = std::move(records.front());
                }
                records.pop_front();
            }
            return found.has_value();
        },
        seconds);
    return found;
}

bool Rig::connectAndWaitUntilReady() {
    connectDaemon();
    return next(FromChannelKind::Hello).has_value() && next(FromChannelKind::Ready).has_value();
}

std::optional<Client> Rig::accept(const agent::ExecRequest& request, std::int64_t limitMs) {
    send(ToChannelKind::Exec, 5, limitMs, request.SerializeAsString());
    auto accepted = next(FromChannelKind::ExecAccepted);
    if (!accepted || accepted->fds.size() != 4 || accepted->record.request != 5) {
        return std::nullopt;
    }
    Client client;
    client.control = std::move(accepted->fds[0]);
    client.input = std::move(accepted->fds[1]);
    client.output = std::move(accepted->fds[2]);
    client.error = std::move(accepted->fds[3]);
    return client;
}

std::optional<Client> Rig::exec(const agent::ExecRequest& request, std::int64_t limitMs) {
    const std::size_t before = guest.programs.size();
    auto client = accept(request, limitMs);
    if (!client) {
        return std::nullopt;
    }
    const bool seen = until([&] {
        return guest.programs.size() == before + 1 && program().exec != 0 && program().stdio != 0 &&
               (request.terminal() || program().err != 0);
    });
    return seen ? std::move(client) : std::nullopt;
}

std::optional<int> Rig::exitStatus(int seconds) {
    (void)until(
        [&] {
            int status = 0;
            if (!m_status && ::waitpid(m_pid, &status, WNOHANG) == m_pid) {
                m_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
            }
            return m_status.has_value();
        },
        seconds);
    return m_status;
}

std::string Rig::procStatus() const {
    QFile file(QStringLiteral("/proc/%1/status").arg(m_pid));
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

std::size_t Rig::residentBytes() const {
    QFile file(QStringLiteral("/proc/%1/statm").arg(m_pid));
    if (!file.open(QIODevice::ReadOnly)) {
        return 0;
    }
    return file.readAll().split(' ').value(1).toULongLong() * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace bulkhead::channel::test
