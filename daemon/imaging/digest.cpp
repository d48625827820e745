// SPDX-License-Identifier: Apache-2.0
#include "imaging/digest.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sodium.h>
#include <stdexcept>
#include <unistd.h>
#include <vector>

namespace bulkhead::imaging {

namespace {
constexpr std::size_t kDigestBytes = 32;
}

struct Digest::State {
    crypto_generichash_state hash;
};

Digest::Digest()
    : m_state(std::make_unique<State>()) {
    if (sodium_init() < 0) {
        throw std::runtime_error("libsodium cannot be initialised");
    }
    crypto_generichash_init(&m_state->hash, nullptr, 0, kDigestBytes);
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::string_view bytes) {
    // The library speaks of unsigned bytes.
    const void* const data = bytes.data();
    crypto_generichash_update(&m_state->hash, static_cast<const unsigned char*>(data), bytes.size());
}

void Digest::addNumber(std::uint64_t number) {
    std::array<char, 8> bytes{};
    for (char& byte : bytes) {
        byte = static_cast<char>(number & 0xffU);
        number >>= 8U;
    }
    add({bytes.data(), bytes.size()});
}

void Digest::addText(std::string_view text) {
    addNumber(text.size());
    add(text);
}

std::string Digest::finish() {
    std::array<unsigned char, kDigestBytes> digest{};
    crypto_generichash_final(&m_state->hash, digest.data(), digest.size());
    std::array<char, 2 * kDigestBytes + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
    return hex.data();
}

Result<std::string> digestOfFile(const std::filesystem::path& file) {
    const std::string what = "cannot read " + file.string();
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        return failErrno(what, errno);
    }
    Digest digest;
    std::vector<char> buffer(256 * 1024);
    while (true) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno(what, errno);
        }
        if (got == 0) {
            return digest.finish();
        }
        digest.add({buffer.data(), static_cast<std::size_t>(got)});
    }
}

} // namespace bulkhead::imaging
