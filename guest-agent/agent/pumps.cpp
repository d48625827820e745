// SPDX-License-Identifier: Apache-2.0
#include "agent/pumps.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

constexpr std::size_t kBlock = std::size_t{32} * 1024;
/// Blocks in a row before others get their turn.
constexpr int kBlocksPerTurn = 8;

} // namespace

OutputPump::OutputPump(EventLoop& loop, protocol::Session& session, std::optional<protocol::StreamId> stream,
                       UniqueFd source, std::function<void()> onEnd)
    : m_loop(loop)
    , m_session(&session)
    , m_stream(stream)
    , m_source(std::move(source))
    , m_onEnd(std::move(onEnd)) {}

OutputPump::~OutputPump() {
    listen(false);
}

void OutputPump::start() {
    listen(m_stream.has_value());
}

void OutputPump::listen(bool on) {
    m_loop.cancel(std::exchange(m_nextTurn, 0));
    if (on == (m_watch != 0)) {
        return;
    }
    if (on) {
        m_watch = m_loop.watch(m_source.get(), EPOLLIN, [this](std::uint32_t) { pump(); });
        return;
    }
    // Not only masked: the hang-up of a closed pipe is always reported and would keep the loop spinning.
    m_loop.unwatch(m_watch);
    m_watch = 0;
}

bool OutputPump::send() {
    if (m_sent < m_block.size()) {
        if (m_stream) {
            m_sent += m_session->write(*m_stream, std::span(m_block).subspan(m_sent));
        } else {
            m_sent = m_block.size();
        }
    }
    return m_sent == m_block.size();
}

OutputPump::Step OutputPump::step() {
    if (!send()) {
        return Step::Blocked;
    }
    m_sent = 0;
    m_block.resize(kBlock);
    const ssize_t count = ::read(m_source.get(), m_block.data(), m_block.size());
    const int why = errno;
    m_block.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    if (count > 0) {
        // At once: a program that waits for an answer writes nothing more that would bring us back here.
        return send() ? Step::Again : Step::Blocked;
    }
    if (count < 0 && why == EINTR) {
        return Step::Again;
    }
    if (count < 0 && why == EAGAIN) {
        return m_endWhenEmpty ? Step::Ended : Step::Wait;
    }
    return Step::Ended; // end of file; EIO: no program has the terminal open any more
}

void OutputPump::pump() {
    if (m_pumping || m_ended) {
        return;
    }
    m_pumping = true;
    Step last = Step::Again;
    for (int i = 0; i < kBlocksPerTurn && last == Step::Again; ++i) {
        last = step();
    }
    m_pumping = false;
    if (last == Step::Ended) {
        end();
        return;
    }
    listen(last != Step::Blocked);
    if (last == Step::Again && m_endWhenEmpty) {
        // The source may be empty by now, and then no event would tell that this is its end.
        m_nextTurn = m_loop.after(EventLoop::Clock::duration::zero(), [this] {
            m_nextTurn = 0;
            pump();
        });
    }
}

void OutputPump::end() {
    listen(false);
    m_source.reset();
    m_ended = true;
    if (m_stream) {
        m_session->finish(*m_stream);
    }
    m_onEnd();
}

void OutputPump::onWritable() {
    pump();
}

void OutputPump::endWhenEmpty() {
    m_endWhenEmpty = true;
    // What is still in the terminal comes in turns until it is empty.
    pump();
}

void OutputPump::abandon() {
    if (m_ended) {
        return;
    }
    listen(false);
    m_source.reset();
    m_block.clear();
    m_sent = 0;
    m_ended = true;
    m_stream.reset();
    m_onEnd();
}

void OutputPump::detach() {
    m_session = nullptr;
    if (m_ended || !m_stream) {
        return;
    }
    m_stream.reset();
    m_isThrownAway = true;
    m_block.clear();
    m_sent = 0;
    // It may have waited for the stream, and then nothing else would make it go on.
    pump();
}

void OutputPump::close() {
    if (m_stream && !m_ended) {
        m_session->finish(*m_stream);
    }
    abandon();
}

InputPump::InputPump(EventLoop& loop, protocol::Session& session, std::optional<protocol::StreamId> stream,
                     UniqueFd sink, bool terminal)
    : m_loop(loop)
    , m_session(&session)
    , m_stream(stream)
    , m_sink(std::move(sink))
    , m_terminal(terminal) {}

InputPump::~InputPump() {
    stopListening();
}

void InputPump::start() {
    if (!m_stream) {
        discard();
        return;
    }
    pump();
}

void InputPump::stopListening() {
    m_loop.unwatch(m_watch);
    m_watch = 0;
}

void InputPump::listen(bool forWriting) {
    if (!forWriting && m_terminal) {
        // A terminal that nobody has open reports its hang-up without end; the output side deals with that.
        stopListening();
        return;
    }
    // Without any bit EPOLLERR still comes: the program closed its end.
    const std::uint32_t events = forWriting ? std::uint32_t{EPOLLOUT} : std::uint32_t{0};
    if (m_watch != 0) {
        m_loop.change(m_watch, events);
        return;
    }
    m_watch = m_loop.watch(m_sink.get(), events, [this](std::uint32_t got) {
        if ((got & EPOLLERR) != 0) {
            discard();
        } else {
            pump();
        }
    });
}

void InputPump::add(std::span<const std::byte> bytes) {
    if (!m_sink) {
        taken(bytes.size());
        return;
    }
    m_queue.insert(m_queue.end(), bytes.begin(), bytes.end());
    pump();
}

void InputPump::finish() {
    m_finished = true;
    pump();
}

void InputPump::pump() {
    if (!m_sink) {
        return;
    }
    while (m_done < m_queue.size()) {
        const ssize_t count = ::write(m_sink.get(), m_queue.data() + m_done, m_queue.size() - m_done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            listen(true);
            return;
        }
        if (count < 0) {
            discard();
            return;
        }
        m_done += static_cast<std::size_t>(count);
        taken(static_cast<std::size_t>(count));
    }
    m_queue.clear();
    m_done = 0;
    if (!m_finished) {
        listen(false);
        return;
    }
    if (m_terminal) {
        sendEndOfFile();
    } else {
        discard();
    }
}

void InputPump::sendEndOfFile() {
    termios settings{};
    if (::tcgetattr(m_sink.get(), &settings) == 0 && (settings.c_lflag & ICANON) != 0) {
        const unsigned char character = settings.c_cc[VEOF];
        if (::write(m_sink.get(), &character, 1) < 0 && errno == EAGAIN) {
            listen(true);
            return;
        }
    }
    discard();
}

void InputPump::discard() {
    stopListening();
    m_sink.reset();
    const std::size_t left = m_queue.size() - m_done;
    m_queue.clear();
    m_done = 0;
    taken(left);
}

void InputPump::taken(std::size_t count) {
    if (m_stream && count > 0) {
        m_session->consumed(*m_stream, count);
    }
}

void InputPump::detach() {
    m_session = nullptr;
    m_stream.reset();
}

} // namespace bulkhead::agent
