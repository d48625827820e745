// SPDX-License-Identifier: Apache-2.0
#include "memcap/session.hpp"

#include "memcap/hardening.hpp"

#include <array>
#include <cerrno>
#include <optional>
#include <unistd.h>

namespace bulkhead::memcap {

namespace {

/// False when nobody listens any more.
bool answer(int out, std::string line) {
    line += '\n';
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t written = ::write(out, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// The next line; none at the end of the input or for one that is too long, which is no command of ours.
class Commands {
public:
    explicit Commands(int in)
        : m_in(in) {}

    std::optional<std::string> next() {
        while (true) {
            if (const auto end = m_bytes.find('\n'); end != std::string::npos) {
                std::string line = m_bytes.substr(0, end);
                m_bytes.erase(0, end + 1);
                return line;
            }
            std::array<char, memory::kMaxLine> piece{};
            const ssize_t got = ::read(m_in, piece.data(), piece.size());
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0 || m_bytes.size() > memory::kMaxLine) {
                return std::nullopt;
            }
            m_bytes.append(piece.data(), static_cast<std::size_t>(got));
        }
    }

private:
    int m_in;
    std::string m_bytes;
};

template <class Answer> Result<std::string> lineOf(const Result<Answer>& result) {
    return result ? Result<std::string>(memory::encode(*result)) : fail(result.error());
}

Result<std::string> act(Capturer& capturer, std::string_view command) {
    if (command == memory::kPrepare) {
        return lineOf(capturer.prepare());
    }
    if (command == memory::kFinish) {
        return lineOf(capturer.finish());
    }
    auto captured = capturer.capture();
    if (auto dropped = giveUpReading(); captured && !dropped) {
        return fail(dropped.error());
    }
    return lineOf(captured);
}

} // namespace

void answerError(int out, const Error& error) {
    answer(out, memory::encode(error));
}

int runSession(Capturer& capturer, int in, int out) {
    Commands commands(in);
    for (const std::string_view expected : {memory::kPrepare, memory::kCapture, memory::kFinish}) {
        const auto command = commands.next();
        if (!command || *command == memory::kAbort) {
            return 0;
        }
        if (*command != expected) {
            answerError(out, {ErrorCode::WrongState, "\"" + std::string(expected) + "\" is the command expected now"});
            return 2;
        }
        const auto line = act(capturer, *command);
        if (!line) {
            answerError(out, line.error());
            return 1;
        }
        if (!answer(out, *line)) {
            return 1;
        }
    }
    return 0;
}

} // namespace bulkhead::memcap
