// SPDX-License-Identifier: Apache-2.0
#include "memory/capture_lines.hpp"

#include "base/escaping.hpp"

#include <charconv>
#include <optional>

namespace bulkhead::memory {

namespace {

constexpr std::string_view kErrorWord = "error ";
/// Leaves room for the words before it.
constexpr std::size_t kMaxMessage = kMaxLine - 128;

std::optional<ErrorCode> codeOf(std::string_view name) {
    for (int value = 0; value <= static_cast<int>(ErrorCode::HostFailure); ++value) {
        if (nameOf(static_cast<ErrorCode>(value)) == name) {
            return static_cast<ErrorCode>(value);
        }
    }
    return std::nullopt;
}

/// Takes a line apart from the left; after the first mismatch nothing matches any more.
class Fields {
public:
    explicit Fields(std::string_view line)
        : m_rest(line) {}

    void word(std::string_view expected) {
        if (m_good && m_rest.starts_with(expected)) {
            m_rest.remove_prefix(expected.size());
        } else {
            m_good = false;
        }
    }
    std::uint64_t number(std::string_view name) {
        word(name);
        std::uint64_t value = 0;
        if (m_good) {
            const auto [end, error] = std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value);
            m_good = error == std::errc();
            m_rest.remove_prefix(static_cast<std::size_t>(end - m_rest.data()));
        }
        return value;
    }
    std::string digest(std::string_view name) {
        word(name);
        std::string value(m_rest);
        m_good = m_good && isDigest(value);
        m_rest = {};
        return value;
    }
    [[nodiscard]] bool isComplete() const { return m_good && m_rest.empty(); }

private:
    std::string_view m_rest;
    bool m_good = true;
};

/// Why a line is not the answer that was expected.
Error errorOf(std::string_view line) {
    if (line.starts_with(kErrorWord)) {
        line.remove_prefix(kErrorWord.size());
        const auto space = line.find(' ');
        const auto code = codeOf(line.substr(0, space));
        if (code && space != std::string_view::npos) {
            return {*code, escapeUntrusted(line.substr(space + 1), kMaxMessage)};
        }
    }
    return {ErrorCode::HostFailure, "the capture helper gave an answer that makes no sense: " + escapeUntrusted(line)};
}

} // namespace

std::string encode(const PreparedCapture& answer) {
    return "prepared pages=" + std::to_string(answer.pages) + " capacity=" + std::to_string(answer.capacity);
}

std::string encode(const CapturedPages& answer) {
    return "captured pages=" + std::to_string(answer.pages) + " usec=" + std::to_string(answer.duration.count());
}

std::string encode(const FinishedCapture& answer) {
    return "written bytes=" + std::to_string(answer.delta.size) + " data=" + std::to_string(answer.delta.dataPages) +
           " zero=" + std::to_string(answer.delta.zeroPages) + " same=" + std::to_string(answer.samePages) +
           " digest=" + answer.delta.digest;
}

std::string encode(const Error& error) {
    std::string text = error.message.substr(0, kMaxMessage);
    for (char& c : text) {
        c = c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
    }
    return std::string(kErrorWord) + std::string(nameOf(error.code)) + ' ' + text;
}

Result<PreparedCapture> decodePrepared(std::string_view line) {
    Fields fields(line);
    PreparedCapture answer;
    answer.pages = fields.number("prepared pages=");
    answer.capacity = fields.number(" capacity=");
    return fields.isComplete() ? Result<PreparedCapture>(answer) : fail(errorOf(line));
}

Result<CapturedPages> decodeCaptured(std::string_view line) {
    Fields fields(line);
    CapturedPages answer;
    answer.pages = fields.number("captured pages=");
    const std::uint64_t microseconds = fields.number(" usec=");
    answer.duration = std::chrono::microseconds(static_cast<std::int64_t>(microseconds));
    return fields.isComplete() ? Result<CapturedPages>(answer) : fail(errorOf(line));
}

Result<FinishedCapture> decodeFinished(std::string_view line) {
    Fields fields(line);
    FinishedCapture answer;
    answer.delta.size = fields.number("written bytes=");
    answer.delta.dataPages = fields.number(" data=");
    answer.delta.zeroPages = fields.number(" zero=");
    answer.samePages = fields.number(" same=");
    answer.delta.digest = fields.digest(" digest=");
    return fields.isComplete() ? Result<FinishedCapture>(answer) : fail(errorOf(line));
}

} // namespace bulkhead::memory
