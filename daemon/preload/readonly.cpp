// SPDX-License-Identifier: Apache-2.0
// libbulkhead-readonly.so, loaded into emulators older than QEMU 8.2 by LD_PRELOAD.
//
// Those open a memory image for reading and writing even when they map it privately. Images belong to root and have
// mode 0444, so that open fails; made writable, an emulator that a guest has taken over could change the memory of all
// others. Here an open for reading and writing of a file below BULKHEAD_READONLY_DIR becomes one for reading only.
//
// This is no protection by itself: that is the mode of the file. It must only never change an open of any other file.
// So it does not judge by the text of the path: the rest of the path behind the folder's name is opened beneath the
// folder by the kernel (openat2(2), RESOLVE_BENEATH), which follows ".." and links but refuses every path that leaves
// the folder at any step. What is refused there, or is not there, is opened as it was asked for. A path that comes into
// the folder through a link elsewhere is not recognised; it fails by the mode of the file.
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BULKHEAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

char theFolder[PATH_MAX];
std::size_t theFolderLength = 0;

__attribute__((constructor)) void readFolder() {
    const char* const folder = std::getenv("BULKHEAD_READONLY_DIR");
    if (folder == nullptr || folder[0] != '/') {
        return;
    }
    std::size_t length = std::strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        --length;
    }
    // "/" would mean every file.
    if (length > 1 && length < sizeof theFolder) {
        for (std::size_t i = 0; i < length; ++i) {
            theFolder[i] = folder[i];
        }
        theFolderLength = length; // the byte behind it is zero from the start
    }
}

/// A read-only descriptor when `path` is to be opened for reading and writing and lies in the folder; else -1.
int openReadOnly(const char* path, int flags) {
    if (theFolderLength == 0 || path == nullptr || (flags & O_ACCMODE) != O_RDWR || (flags & O_TMPFILE) == O_TMPFILE ||
        std::strncmp(path, theFolder, theFolderLength) != 0 || path[theFolderLength] != '/') {
        return -1;
    }
    const char* rest = path + theFolderLength;
    while (*rest == '/') {
        ++rest;
    }
    const int before = errno;
    const int folder = ::open64(theFolder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        errno = before;
        return -1;
    }
    struct open_how how {};
    how.flags =
        static_cast<unsigned>(flags & (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)) | O_RDONLY | O_LARGEFILE;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const long opened = ::syscall(SYS_openat2, folder, rest, &how, sizeof how);
    ::close(folder);
    errno = before;
    return static_cast<int>(opened);
}

/// The function of this name that comes after ours.
template <class Function> Function nextOf(const char* name) {
    void* const found = ::dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::abort(); // a libc without a function that it had when this was built
    }
    Function function = nullptr;
    std::memcpy(&function, &found, sizeof function);
    return function;
}

bool hasMode(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

} // namespace

// The mode is passed on when there is one, as libc itself decides it.
#define BULKHEAD_OPEN(name)                                                                                            \
    BULKHEAD_EXPORT int name(const char* path, int flags, ...) {                                                       \
        static const auto next = nextOf<int (*)(const char*, int, ...)>(#name);                                        \
        const int readOnly = openReadOnly(path, flags);                                                                \
        if (readOnly >= 0) {                                                                                           \
            return readOnly;                                                                                           \
        }                                                                                                              \
        mode_t mode = 0;                                                                                               \
        if (hasMode(flags)) {                                                                                          \
            va_list arguments;                                                                                         \
            va_start(arguments, flags);                                                                                \
            mode = va_arg(arguments, mode_t);                                                                          \
            va_end(arguments);                                                                                         \
        }                                                                                                              \
        return next(path, flags, mode);                                                                                \
    }

// An absolute path ignores the folder's descriptor, and no other path is ours.
#define BULKHEAD_OPENAT(name)                                                                                          \
    BULKHEAD_EXPORT int name(int folder, const char* path, int flags, ...) {                                           \
        static const auto next = nextOf<int (*)(int, const char*, int, ...)>(#name);                                   \
        const int readOnly = openReadOnly(path, flags);                                                                \
        if (readOnly >= 0) {                                                                                           \
            return readOnly;                                                                                           \
        }                                                                                                              \
        mode_t mode = 0;                                                                                               \
        if (hasMode(flags)) {                                                                                          \
            va_list arguments;                                                                                         \
            va_start(arguments, flags);                                                                                \
            mode = va_arg(arguments, mode_t);                                                                          \
            va_end(arguments);                                                                                         \
        }                                                                                                              \
        return next(folder, path, flags, mode);                                                                        \
    }

// What programs built with _FORTIFY_SOURCE, QEMU among them, call instead when there is no mode.
#define BULKHEAD_OPEN_CHECKED(name)                                                                                    \
    BULKHEAD_EXPORT int name(const char* path, int flags) {                                                            \
        static const auto next = nextOf<int (*)(const char*, int)>(#name);                                             \
        const int readOnly = openReadOnly(path, flags);                                                                \
        return readOnly >= 0 ? readOnly : next(path, flags);                                                           \
    }

#define BULKHEAD_OPENAT_CHECKED(name)                                                                                  \
    BULKHEAD_EXPORT int name(int folder, const char* path, int flags) {                                                \
        static const auto next = nextOf<int (*)(int, const char*, int)>(#name);                                        \
        const int readOnly = openReadOnly(path, flags);                                                                \
        return readOnly >= 0 ? readOnly : next(folder, path, flags);                                                   \
    }

BULKHEAD_OPEN(open)
BULKHEAD_OPEN(open64)
BULKHEAD_OPENAT(openat)
BULKHEAD_OPENAT(openat64)
// Their names are libc's.
BULKHEAD_OPEN_CHECKED(__open_2)       // NOLINT
BULKHEAD_OPEN_CHECKED(__open64_2)     // NOLINT
BULKHEAD_OPENAT_CHECKED(__openat_2)   // NOLINT
BULKHEAD_OPENAT_CHECKED(__openat64_2) // NOLINT
