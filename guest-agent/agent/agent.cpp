// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.hpp"

#include "agent/exec_request.hpp"

#include <utility>

namespace bulkhead::agent {

using protocol::StreamId;

Agent::Agent(World world, const protocol::Token& token, protocol::RandomSource random, std::function<void()> onReady)
    : m_world(world)
    , m_onReady(std::move(onReady))
    , m_session(protocol::Role::Guest, token, std::move(random), *this) {}

Agent::~Agent() = default;

void Agent::onReady() {
    m_onReady();
}

void Agent::onSessionReset() {
    dropAll();
}

void Agent::dropAll() {
    const bool wasAnothers = m_world.picture.endsWith(m_session);
    while (!m_execs.empty()) {
        const auto running = m_execs.begin();
        std::unique_ptr<Exec>& exec = running->second.exec;
        if (exec && wasAnothers && !exec->isOver()) {
            m_world.detached.add(std::move(exec));
        } else if (exec) {
            exec->hangUp();
        }
        drop(running);
    }
    if (m_world.bridge != nullptr) {
        m_world.bridge->detach(m_session);
    }
    m_over.clear();
    m_streams.clear();
    m_control.reset();
    m_controlStream = 0;
}

void Agent::drop(std::map<std::uint64_t, Running>::iterator running) {
    // Destroyed in tidy(): its own code may be on the stack.
    m_dropped.push_back(std::move(running->second.exec));
    m_over.erase(running->first);
    m_execs.erase(running);
}

void Agent::onStreamOpened(StreamId stream) {
    m_streams.try_emplace(stream);
}

void Agent::onData(StreamId id, std::span<const std::byte> bytes) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        m_session.consumed(id, bytes.size());
        return;
    }
    Stream& stream = found->second;
    switch (stream.kind) {
    case Kind::Unknown:
    case Kind::Control:
    case Kind::Exec:
        readMessages(id, stream, bytes);
        break;
    case Kind::Stdio:
        giveInput(id, stream, bytes);
        break;
    case Kind::Errors:
        m_session.consumed(id, bytes.size()); // nothing is meant to come here
        break;
    case Kind::Session:
        if (!m_world.bridge->isAttachedTo(m_session, id)) {
            m_session.consumed(id, bytes.size()); // the host has one on a newer connection
        } else if (!m_world.bridge->fromHost(bytes)) {
            breakStream(id);
        }
        break;
    }
}

void Agent::readMessages(StreamId id, Stream& stream, std::span<const std::byte> bytes) {
    bool valid = stream.reader.feed(bytes);
    while (valid) {
        const auto message = stream.reader.next();
        if (!message) {
            break;
        }
        valid = handleMessage(id, stream, *message);
        if (valid && (stream.kind == Kind::Stdio || stream.kind == Kind::Errors || stream.kind == Kind::Session)) {
            const auto rest = stream.reader.takeRest();
            m_session.consumed(id, bytes.size() - rest.size());
            onData(id, rest);
            return;
        }
    }
    if (valid) {
        m_session.consumed(id, bytes.size());
    } else {
        breakStream(id);
    }
}

bool Agent::handleMessage(StreamId id, Stream& stream, const std::string& message) {
    switch (stream.kind) {
    case Kind::Unknown:
        return handleHeader(id, stream, message);
    case Kind::Control:
        return m_control && m_control->handle(message);
    case Kind::Exec:
        return handleExecInput(stream, message);
    case Kind::Stdio:
    case Kind::Errors:
    case Kind::Session:
        break;
    }
    return false;
}

bool Agent::handleHeader(StreamId id, Stream& stream, const std::string& message) {
    StreamHeader header;
    if (!header.ParseFromString(message)) {
        return false;
    }
    switch (header.kind_case()) {
    case StreamHeader::kControl:
        if (m_control || header.control().version() != protocol::kProtocolVersion) {
            return false;
        }
        stream.kind = Kind::Control;
        m_controlStream = id;
        m_control = std::make_unique<ControlStream>(m_session, id, m_world.system, m_world.picture,
                                                    [this](std::chrono::milliseconds grace) { m_shutdown = grace; });
        m_control->greet();
        return true;
    case StreamHeader::kStdio:
    case StreamHeader::kErr: {
        const Kind kind = header.has_stdio() ? Kind::Stdio : Kind::Errors;
        const std::uint64_t execId = header.has_stdio() ? header.stdio().exec_id() : header.err().exec_id();
        if (m_execs.contains(execId) || streamFor(kind, execId)) {
            return false; // too late, or twice
        }
        stream.kind = kind;
        stream.execId = execId;
        return true;
    }
    case StreamHeader::kExec:
        if (m_execs.contains(header.exec().exec_id())) {
            return false;
        }
        stream.kind = Kind::Exec;
        stream.execId = header.exec().exec_id();
        beginExec(id, header.exec());
        return true;
    case StreamHeader::kSession:
        if (m_world.bridge == nullptr || !m_world.bridge->attach(m_session, id)) {
            return false;
        }
        stream.kind = Kind::Session;
        return true;
    case StreamHeader::KIND_NOT_SET:
        break;
    }
    return false;
}

bool Agent::handleExecInput(const Stream& stream, const std::string& message) {
    ExecInput input;
    if (!input.ParseFromString(message)) {
        return false;
    }
    Exec* const exec = execOf(stream.execId);
    switch (input.kind_case()) {
    case ExecInput::kSignal:
        if (exec != nullptr) {
            exec->signal(input.signal());
        }
        return true;
    case ExecInput::kWindow:
        if (exec != nullptr) {
            exec->resize(input.window().rows(), input.window().columns());
        }
        return true;
    case ExecInput::kCloseOutput:
        if (exec != nullptr) {
            exec->closeOutput();
        }
        return true;
    case ExecInput::KIND_NOT_SET:
        break;
    }
    return false;
}

void Agent::giveInput(StreamId id, Stream& stream, std::span<const std::byte> bytes) {
    if (Exec* const exec = execOf(stream.execId)) {
        exec->addInput(bytes);
    } else if (stream.discard) {
        m_session.consumed(id, bytes.size());
    } else {
        stream.early.insert(stream.early.end(), bytes.begin(), bytes.end());
    }
}

void Agent::beginExec(StreamId id, const ExecRequest& request) {
    const std::uint64_t execId = request.exec_id();
    Running& running = m_execs[execId];
    running.stream = id;
    running.stdio = {streamFor(Kind::Stdio, execId), streamFor(Kind::Errors, execId)};
    running.writer = std::make_unique<MessageWriter>(m_session, id);
    if (const auto refused = startExec(running, request)) {
        for (const auto& stream : {running.stdio.stdio, running.stdio.errors}) {
            if (stream) {
                m_session.finish(*stream);
            }
        }
        ExecEvent event;
        event.mutable_failed()->set_reason(*refused);
        report(execId, event);
    }
}

std::optional<ExecFailed::Reason> Agent::startExec(Running& running, const ExecRequest& request) {
    if (m_execs.size() > protocol::kMaxConcurrentExecs) {
        return ExecFailed::LIMIT;
    }
    const auto plan = planFor(request, m_world.system.canChangeAccount());
    if (!plan) {
        return plan.error();
    }
    auto child = startChild(*plan);
    if (!child) {
        return ExecFailed::LIMIT;
    }
    if (plan->terminal && running.stdio.errors) {
        m_session.finish(*running.stdio.errors); // a terminal has one output
    }
    Exec::Streams streams = running.stdio;
    if (plan->terminal) {
        streams.errors.reset();
    }
    const std::uint64_t execId = request.exec_id();
    running.exec = std::make_unique<Exec>(m_world.loop, m_session, streams, std::move(*child), plan->terminal,
                                          [this, execId](const ExecEvent& event) { report(execId, event); });
    running.exec->start();
    if (running.stdio.stdio) {
        Stream& stdio = m_streams.at(*running.stdio.stdio);
        running.exec->addInput(std::exchange(stdio.early, {}));
        if (stdio.peerFinished) {
            running.exec->finishInput();
        }
    }
    return std::nullopt;
}

void Agent::report(std::uint64_t execId, const ExecEvent& event) {
    const auto found = m_execs.find(execId);
    if (found == m_execs.end()) {
        return;
    }
    found->second.writer->send(event);
    if (!event.has_started()) {
        found->second.writer->finish();
        m_over.insert(execId);
    }
}

void Agent::onPeerFinished(StreamId id) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        return;
    }
    Stream& stream = found->second;
    stream.peerFinished = true;
    if (stream.kind == Kind::Unknown) {
        breakStream(id); // ended before it said what it is for
    } else if (stream.kind == Kind::Session) {
        m_world.bridge->detach(m_session);
        m_session.finish(id);
        forget(id);
    } else if (Exec* const exec = execOf(stream.execId); exec != nullptr && stream.kind == Kind::Stdio) {
        exec->finishInput();
    } else if (stream.discard) {
        forget(id);
    }
}

void Agent::onStreamReset(StreamId id) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        return;
    }
    const Kind kind = found->second.kind;
    const auto running = m_execs.find(found->second.execId);
    forget(id);
    if (kind == Kind::Control) {
        m_control.reset();
    } else if (kind == Kind::Session) {
        m_world.bridge->detach(m_session);
    }
    if (running == m_execs.end() || running->second.exec == nullptr) {
        return;
    }
    Exec& exec = *running->second.exec;
    if (kind == Kind::Exec) {
        exec.kill();
        const Exec::Streams streams = running->second.stdio;
        drop(running);
        for (const auto& stream : {streams.stdio, streams.errors}) {
            if (stream && m_streams.contains(*stream)) {
                breakStream(*stream);
            }
        }
    } else if (kind == Kind::Stdio) {
        running->second.stdio.stdio.reset();
        exec.abandonStdio();
    } else if (kind == Kind::Errors) {
        running->second.stdio.errors.reset();
        exec.abandonErrors();
    }
}

void Agent::onWritable(StreamId id) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        return;
    }
    const Stream& stream = found->second;
    if (stream.kind == Kind::Control && m_control) {
        m_control->flush();
        return;
    }
    if (stream.kind == Kind::Session) {
        if (m_world.bridge->isAttachedTo(m_session, id)) {
            m_world.bridge->onWritable();
        }
        return;
    }
    const auto running = m_execs.find(stream.execId);
    if (running == m_execs.end()) {
        return;
    }
    if (stream.kind == Kind::Exec) {
        running->second.writer->flush();
    } else if (running->second.exec) {
        running->second.exec->onWritable(id);
    }
}

void Agent::lookForEnds(std::set<pid_t>& leaders) {
    for (const auto& [id, running] : m_execs) {
        if (running.exec) {
            running.exec->lookForEnd();
            leaders.insert(running.exec->pid());
        }
    }
    for (const auto& exec : m_dropped) {
        if (exec) {
            leaders.insert(exec->pid());
        }
    }
}

void Agent::tidy() {
    m_dropped.clear();
    for (auto over = m_over.begin(); over != m_over.end();) {
        const auto found = m_execs.find(*over);
        if (found == m_execs.end()) {
            over = m_over.erase(over);
            continue;
        }
        if (found->second.writer->unsent() > 0) {
            ++over; // the host is slow to take the last event
            continue;
        }
        const Exec::Streams streams = found->second.stdio;
        retire(found->second.stream);
        for (const auto& stream : {streams.stdio, streams.errors}) {
            if (stream) {
                retire(*stream);
            }
        }
        m_execs.erase(found);
        over = m_over.erase(over);
    }
}

void Agent::retire(StreamId id) {
    const auto found = m_streams.find(id);
    if (found == m_streams.end()) {
        return;
    }
    Stream& stream = found->second;
    stream.discard = true;
    if (const std::size_t left = std::exchange(stream.early, {}).size(); left > 0) {
        m_session.consumed(id, left);
    }
    if (stream.peerFinished) {
        forget(id);
    }
}

void Agent::breakStream(StreamId id) {
    m_session.resetStream(id);
    onStreamReset(id);
}

void Agent::forget(StreamId id) {
    m_streams.erase(id);
}

Exec* Agent::execOf(std::uint64_t execId) {
    const auto found = m_execs.find(execId);
    return found == m_execs.end() ? nullptr : found->second.exec.get();
}

std::optional<StreamId> Agent::streamFor(Kind kind, std::uint64_t execId) const {
    for (const auto& [id, stream] : m_streams) {
        if (stream.kind == kind && stream.execId == execId && !stream.discard) {
            return id;
        }
    }
    return std::nullopt;
}

} // namespace bulkhead::agent
