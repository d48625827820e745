// SPDX-License-Identifier: Apache-2.0
#include "agent/boot.hpp"

#include "agent/accounts.hpp"
#include "agent/grown_disk.hpp"
#include "agent/modules.hpp"
#include "agent/small_file.hpp"
#include "agent/transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <net/if.h>
#include <optional>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bulkhead::agent::boot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemDisk = "/dev/vda";
constexpr const char* kHomeDisk = "/dev/vdb";
constexpr const char* kNewRoot = "/sysroot";
constexpr std::chrono::seconds kDeviceWait{10};

/// Opened before the initramfs is left behind, loaded later.
std::vector<std::pair<std::string, UniqueFd>>& lateModules() {
    static std::vector<std::pair<std::string, UniqueFd>> modules;
    return modules;
}

Status mountAt(const char* source, const char* target, const char* type, unsigned long flags, const char* data = "") {
    ::mkdir(target, 0755);
    if (::mount(source, target, type, flags, data) != 0) {
        return failErrno("mount " + std::string(type) + " on " + target, errno);
    }
    return {};
}

/// Looks often and shortly: device nodes come within a few milliseconds of their driver, mostly before we look.
bool waitFor(const std::function<bool()>& isThere) {
    const auto until = std::chrono::steady_clock::now() + kDeviceWait;
    while (!isThere()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        constexpr timespec kPause{0, 500'000};
        ::nanosleep(&kPause, nullptr);
    }
    return true;
}

bool exists(const char* path) {
    return ::access(path, F_OK) == 0;
}

void link(const char* target, const char* path) {
    static_cast<void>(!::symlink(target, path));
}

void bringUpLoopback() {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strncpy(static_cast<char*>(request.ifr_name), "lo", IFNAMSIZ - 1);
    if (socket && ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
        ::ioctl(socket.get(), SIOCSIFFLAGS, &request);
    }
}

void makeMachineId() {
    struct stat info {};
    if (::stat("/etc/machine-id", &info) == 0 && info.st_size > 0) {
        return;
    }
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        return;
    }
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40); // it is to read as a random UUID
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 0x0F];
    }
    text += '\n';
    const UniqueFd file(::open("/etc/machine-id", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444));
    if (file) {
        static_cast<void>(!::write(file.get(), text.data(), text.size()));
    }
}

/// Those of the late ones whose file name has this word in it, in their order; they are late no more.
void loadModulesOf(std::string_view word) {
    std::vector<std::pair<std::string, UniqueFd>> others;
    for (auto& module : std::exchange(lateModules(), {})) {
        const std::string name = module.first.substr(module.first.rfind('/') + 1);
        if (name.find(word) == std::string::npos) {
            others.push_back(std::move(module));
        } else {
            // The domain works without any of them, but for the one that its channel needs, and that shows at once.
            static_cast<void>(loadModule(module.second.get(), module.first));
        }
    }
    lateModules() = std::move(others);
}

/// A home from /etc/skel. Only when there is none: what lies there is the user's.
void makeHome(const Account& account) {
    struct stat info {};
    if (::lstat(account.home.c_str(), &info) == 0 || ::mkdir(account.home.c_str(), 0700) != 0) {
        return;
    }
    std::error_code ignored;
    fs::copy("/etc/skel", account.home, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ignored);
    // Not a range: its ++ throws, and this is the first process.
    for (fs::recursive_directory_iterator at(account.home, ignored); at != fs::end(at); at.increment(ignored)) {
        static_cast<void>(!::lchown(at->path().c_str(), account.uid, account.gid));
    }
    static_cast<void>(!::chown(account.home.c_str(), account.uid, account.gid));
}

/// /tmp is on the system disk (bounded by it, and no memory), so a standalone domain's has to be emptied.
void emptyTmp() {
    std::error_code ignored;
    std::error_code end; // of its own: what cannot be removed does not end the walk
    for (fs::directory_iterator at("/tmp", end); !end && at != fs::end(at); at.increment(end)) {
        fs::remove_all(at->path(), ignored);
    }
    ::chmod("/tmp", 01777);
}

} // namespace

void openStandardDescriptors() {
    int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO) {
        ::fcntl(fd, F_SETFD, 0);
        fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    if (fd > STDERR_FILENO) {
        ::close(fd);
    }
}

Status prepareKernel() {
    constexpr unsigned long kSafe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (auto done = mountAt("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755"); !done) {
        return done;
    }
    // Without a console the kernel gives the first process none. Before any module is opened: those are closed later.
    openStandardDescriptors();
    if (auto done = mountAt("proc", "/proc", "proc", kSafe); !done) {
        return done;
    }
    if (auto done = mountAt("sysfs", "/sys", "sysfs", kSafe); !done) {
        return done;
    }
    const auto list = readSmallFile("/modules", std::size_t{64} * 1024);
    if (!list) {
        return fail(ErrorCode::GuestFailure, "The initramfs has no /modules list");
    }
    for (const ModuleEntry& entry : parseModuleList(*list)) {
        UniqueFd file(::open(entry.path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) {
            return failErrno("open the module " + entry.path, errno);
        }
        // Loaded or open: either way its name, and with the last user its memory, is not needed any more.
        ::unlink(entry.path.c_str());
        if (!entry.early) {
            lateModules().emplace_back(entry.path, std::move(file));
        } else if (auto done = loadModule(file.get(), entry.path); !done) {
            return done;
        }
    }
    return {};
}

bool isSelfTest() {
    std::istringstream words(readSmallFile("/proc/cmdline", 4096).value_or(""));
    for (std::string word; words >> word;) {
        if (word == "bulkhead.selftest") {
            return true;
        }
    }
    return false;
}

bool handsOver() {
    return exists("/hand-over");
}

Status enterSystem() {
    if (!waitFor([] { return exists(kSystemDisk); })) {
        return fail(ErrorCode::GuestFailure, "The system disk /dev/vda did not appear");
    }
    if (auto done = mountAt(kSystemDisk, kNewRoot, "ext4", MS_NOATIME); !done) {
        return done;
    }
    if (exists(kHomeDisk)) {
        const std::string home = std::string(kNewRoot) + "/home";
        if (auto done = mountAt(kHomeDisk, home.c_str(), "ext4", MS_NOATIME | MS_NOSUID | MS_NODEV); !done) {
            return done;
        }
        // One that cannot grow is as good as it was.
        static_cast<void>(fillDisk(kHomeDisk, home.c_str()));
    }
    for (const char* const place : {"/dev", "/proc", "/sys"}) {
        const std::string target = kNewRoot + std::string(place);
        ::mkdir(target.c_str(), 0755);
        if (::mount(place, target.c_str(), nullptr, MS_MOVE, nullptr) != 0) {
            return failErrno("move " + std::string(place), errno);
        }
    }
    // The program goes on from the memory it has; its file needs no name.
    ::unlink("/init");
    ::unlink("/modules");
    ::unlink("/hand-over");
    if (::chdir(kNewRoot) != 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || ::chroot(".") != 0 ||
        ::chdir("/") != 0) {
        return failErrno("make the system disk the root", errno);
    }
    return {};
}

Status prepareSystem() {
    constexpr unsigned long kSafe = MS_NOSUID | MS_NODEV;
    if (auto done = mountAt("tmpfs", "/run", "tmpfs", kSafe, "mode=0755,size=20%"); !done) {
        return done;
    }
    ::mkdir("/run/lock", 01777);
    ::chmod("/run/lock", 01777);
    if (auto done = mountAt("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
        !done) {
        return done;
    }
    if (auto done = mountAt("tmpfs", "/dev/shm", "tmpfs", kSafe, "mode=1777,size=50%"); !done) {
        return done;
    }
    // Programs can do without it, if not well.
    static_cast<void>(mountAt("cgroup2", "/sys/fs/cgroup", "cgroup2", kSafe | MS_NOEXEC));
    link("/proc/self/fd", "/dev/fd");
    link("fd/0", "/dev/stdin");
    link("fd/1", "/dev/stdout");
    link("fd/2", "/dev/stderr");
    // What distributions set through sysctl.d; the kernel's own defaults are the old, open ones.
    writeKernelFile("/proc/sys/fs/protected_symlinks", "1");
    writeKernelFile("/proc/sys/fs/protected_hardlinks", "1");
    writeKernelFile("/proc/sys/fs/protected_fifos", "1");
    writeKernelFile("/proc/sys/fs/protected_regular", "2");
    constexpr std::string_view kHostName = "domain";
    static_cast<void>(!::sethostname(kHostName.data(), kHostName.size()));
    bringUpLoopback();
    makeMachineId();
    emptyTmp();
    if (const auto user = systemAccount("user")) {
        makeHome(*user);
    }
    return {};
}

Status handOver() {
    makeMachineId();
    emptyTmp();
    if (const auto user = systemAccount("user")) {
        makeHome(*user);
    }
    // udev loads the drivers of what there is, but the agent listens before it comes to that.
    if (hasVsock()) {
        loadModulesOf("vsock");
    }
    lateModules().clear();
    std::string program = "/sbin/init";
    const std::array<char*, 2> arguments{program.data(), nullptr};
    const std::array<char*, 1> environment{nullptr};
    ::execve(program.c_str(), arguments.data(), environment.data());
    return failErrno("start " + program, errno);
}

void loadLateModules() {
    loadModulesOf("");
}

Result<protocol::Token> readToken() {
    const std::string path = "/sys/firmware/qemu_fw_cfg/by_name/" + std::string(protocol::kTokenFwCfgName) + "/raw";
    auto text = readSmallFile(path, 4096);
    if (!text || text->size() != protocol::kTokenSize) {
        return fail(ErrorCode::GuestFailure, "The host gave no channel token (fw_cfg " +
                                                 std::string(protocol::kTokenFwCfgName) + " of 32 bytes)");
    }
    protocol::Token token;
    std::memcpy(token.data(), text->data(), token.size());
    ::explicit_bzero(text->data(), text->size());
    return token;
}

Result<Channel> openChannel() {
    if (hasVsock()) {
        loadModulesOf("vsock");
        auto listener = listenVsock(protocol::kVsockPort);
        if (!listener) {
            return fail(listener.error().in("The machine has a vsock device, but no use can be made of it"));
        }
        return Channel(std::move(*listener));
    }
    std::optional<UniqueFd> port;
    if (!waitFor([&port] { return (port = openSerialPort(protocol::kSerialPortName)).has_value(); })) {
        return fail(ErrorCode::GuestFailure,
                    "The virtio-serial port " + std::string(protocol::kSerialPortName) + " did not appear");
    }
    return Channel(std::move(*port));
}

} // namespace bulkhead::agent::boot
