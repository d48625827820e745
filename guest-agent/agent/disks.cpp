// SPDX-License-Identifier: Apache-2.0
#include "agent/disks.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

// Its macros clash with those of sys/mount.h, which is not used here.
#include <linux/fs.h>

namespace bulkhead::agent {
namespace {

UniqueFd openRoot() {
    return UniqueFd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Not open: /home is no file system of its own.
UniqueFd openHome(const UniqueFd& root) {
    UniqueFd home(::open("/home", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat ofRoot {};
    struct stat ofHome {};
    if (!home || !root || ::fstat(root.get(), &ofRoot) != 0 || ::fstat(home.get(), &ofHome) != 0 ||
        ofRoot.st_dev == ofHome.st_dev) {
        home.reset();
    }
    return home;
}

int standStill(const UniqueFd& place) {
    return ::ioctl(place.get(), FIFREEZE, 0) == 0 ? 0 : errno;
}

void goOn(const UniqueFd& place) {
    if (place) {
        ::ioctl(place.get(), FITHAW, 0);
    }
}

} // namespace

int writeDisks() {
    const UniqueFd root = openRoot();
    const UniqueFd home = openHome(root);
    if (!root || ::syncfs(root.get()) != 0 || (home && ::syncfs(home.get()) != 0)) {
        return errno;
    }
    return 0;
}

int freezeDisks() {
    // First, so that they stand still for a short time only.
    if (const int why = writeDisks(); why != 0) {
        return why;
    }
    const UniqueFd root = openRoot();
    const UniqueFd home = openHome(root);
    const int ofHome = home ? standStill(home) : 0;
    if (ofHome != 0 && ofHome != EOPNOTSUPP) { // somebody's tmpfs is no disk
        return ofHome;
    }
    // The root last: from here on even opening a file to write is too much.
    const int ofRoot = standStill(root);
    if (ofRoot != 0 && ofHome == 0) {
        goOn(home);
    }
    return ofRoot;
}

void thawDisks() {
    const UniqueFd root = openRoot();
    goOn(root);
    goOn(openHome(root));
}

} // namespace bulkhead::agent
