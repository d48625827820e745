// SPDX-License-Identifier: Apache-2.0
#include "process/boot_counter.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace bulkhead::process {
namespace {

constexpr std::size_t kMostBytes = 256;

Result<std::string> readText(const std::filesystem::path& file) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        return failErrno("reading " + file.string(), errno);
    }
    std::string text(kMostBytes, '\0');
    const ssize_t count = ::read(fd.get(), text.data(), text.size());
    if (count < 0) {
        return failErrno("reading " + file.string(), errno);
    }
    text.resize(static_cast<std::size_t>(count));
    return text;
}

Result<std::string> bootId(const std::filesystem::path& file) {
    auto text = readText(file);
    if (text) {
        text->erase(std::min(text->find('\n'), text->size()));
    }
    return text;
}

} // namespace

Result<std::optional<std::uint64_t>> FileBootCounter::read() {
    const auto boot = bootId(m_bootIdFile);
    if (!boot) {
        return fail(boot.error());
    }
    std::error_code ignored;
    if (!std::filesystem::exists(m_file, ignored)) {
        return std::nullopt;
    }
    const auto text = readText(m_file);
    if (!text) {
        return fail(text.error());
    }
    const auto space = text->find(' ');
    std::uint64_t value = 0;
    if (space != std::string::npos) {
        const auto [end, error] = std::from_chars(text->data() + space + 1, text->data() + text->size(), value);
        if (error == std::errc{} && end == text->data() + text->size() - 1 && *end == '\n') {
            return text->compare(0, space, *boot) == 0 ? std::optional(value) : std::nullopt;
        }
    }
    return fail(ErrorCode::HostFailure, m_file.string() + " is damaged; remove it");
}

Status FileBootCounter::write(std::uint64_t value) {
    const auto boot = bootId(m_bootIdFile);
    if (!boot) {
        return fail(boot.error());
    }
    const std::string text = *boot + ' ' + std::to_string(value) + '\n';
    const std::string temporary = m_file.string() + ".new";
    {
        const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            return failErrno("writing " + temporary, errno);
        }
    }
    if (::rename(temporary.c_str(), m_file.c_str()) != 0) {
        return failErrno("writing " + m_file.string(), errno);
    }
    return {};
}

} // namespace bulkhead::process
