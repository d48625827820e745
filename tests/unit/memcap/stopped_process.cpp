// SPDX-License-Identifier: Apache-2.0
#include "stopped_process.hpp"

#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::test {

namespace {
constexpr std::size_t kGuard = 4096;
}

StoppedProcess::StoppedProcess(Bytes ram, const std::optional<std::filesystem::path>& image,
                               const std::vector<Change>& changes)
    : m_ram(ram) {
    if (::pipe2(m_pipe, O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    m_pid = ::fork();
    if (m_pid == 0) {
        run(image, changes);
    }
    if (::read(m_pipe[0], &m_address, sizeof m_address) != sizeof m_address || m_address == nullptr) {
        throw std::runtime_error("the process could not map its memory");
    }
    waitUntilStopped();
}

StoppedProcess::~StoppedProcess() {
    kill();
    ::close(m_pipe[0]);
    ::close(m_pipe[1]);
}

void StoppedProcess::run(const std::optional<std::filesystem::path>& image, const std::vector<Change>& changes) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // for tests that are not run as root
    void* const room =
        ::mmap(nullptr, m_ram + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* memory = static_cast<char*>(room) + kGuard;
    bool good = room != MAP_FAILED;
    if (image) {
        const int fd = ::open(image->c_str(), O_RDONLY | O_CLOEXEC);
        good = good && ::mmap(memory, m_ram, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == memory;
    } else {
        good = good && ::mprotect(memory, m_ram, PROT_READ | PROT_WRITE) == 0;
    }
    if (!good) {
        memory = nullptr;
    }
    if (::write(m_pipe[1], &memory, sizeof memory) != sizeof memory || !good) {
        ::_exit(1);
    }
    ::raise(SIGSTOP);
    for (const Change& change : changes) {
        change(memory);
        ::raise(SIGSTOP);
    }
    ::_exit(0);
}

void StoppedProcess::waitUntilStopped() {
    int status = 0;
    if (::waitpid(m_pid, &status, WUNTRACED) != m_pid || !WIFSTOPPED(status)) {
        throw std::runtime_error("the process does not stand still");
    }
}

void StoppedProcess::change() {
    ::kill(m_pid, SIGCONT);
    waitUntilStopped();
}

void StoppedProcess::kill() {
    if (m_pid > 0) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
        m_pid = -1;
    }
}

std::string StoppedProcess::memory() const {
    const int fd = ::open(("/proc/" + std::to_string(m_pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    std::string bytes(m_ram, '\0');
    Bytes done = 0;
    while (done < m_ram) {
        const ssize_t got = ::pread(fd, bytes.data() + done, m_ram - done,
                                    static_cast<off_t>(reinterpret_cast<std::uintptr_t>(m_address) + done));
        if (got <= 0) {
            throw std::runtime_error("the memory cannot be read");
        }
        done += static_cast<Bytes>(got);
    }
    ::close(fd);
    return bytes;
}

} // namespace bulkhead::test
