// SPDX-License-Identifier: Apache-2.0
// open_flags FUNCTION PATH [rdonly|rdwr|wronly|creat]: opens a file with one of libc's functions and prints "rdonly",
// "rdwr" or "wronly" by the descriptor's flags, or "errno N".
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>

extern "C" {
int __open_2(const char* path, int flags);                 // NOLINT: libc's name
int __open64_2(const char* path, int flags);               // NOLINT: libc's name
int __openat_2(int folder, const char* path, int flags);   // NOLINT: libc's name
int __openat64_2(int folder, const char* path, int flags); // NOLINT: libc's name
}

namespace {

int openWith(std::string_view function, const char* path, int flags) {
    constexpr mode_t kMode = 0640;
    if (function == "open") {
        return ::open(path, flags, kMode);
    }
    if (function == "open64") {
        return ::open64(path, flags, kMode);
    }
    if (function == "openat") {
        return ::openat(AT_FDCWD, path, flags, kMode);
    }
    if (function == "openat64") {
        return ::openat64(AT_FDCWD, path, flags, kMode);
    }
    if (function == "__open_2") {
        return ::__open_2(path, flags);
    }
    if (function == "__open64_2") {
        return ::__open64_2(path, flags);
    }
    if (function == "__openat_2") {
        return ::__openat_2(AT_FDCWD, path, flags);
    }
    return ::__openat64_2(AT_FDCWD, path, flags);
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view access = argc > 3 ? argv[3] : "rdwr";
    const int flags = access == "rdonly"   ? O_RDONLY
                      : access == "wronly" ? O_WRONLY
                      : access == "creat"  ? O_RDWR | O_CREAT
                                           : O_RDWR;
    const int fd = openWith(argv[1], argv[2], flags);
    if (fd < 0) {
        std::printf("errno %d", errno);
        return 0;
    }
    const int got = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    std::printf("%s", got == O_RDONLY ? "rdonly" : got == O_RDWR ? "rdwr" : "wronly");
    return 0;
}
