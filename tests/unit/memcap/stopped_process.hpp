// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::test {

/// A process with "guest RAM" between two inaccessible pages, as an emulator has it: a private mapping of an image, or
/// anonymous memory. It changes it when told, and stands still otherwise.
class StoppedProcess {
public:
    /// Gets the memory in the new process.
    using Change = std::function<void(char* memory)>;

    StoppedProcess(Bytes ram, const std::optional<std::filesystem::path>& image, const std::vector<Change>& changes);
    StoppedProcess(const StoppedProcess&) = delete;
    StoppedProcess& operator=(const StoppedProcess&) = delete;
    ~StoppedProcess();

    /// Lets it make its next change; it stands still when this returns.
    void change();
    /// Ends and collects it.
    void kill();

    [[nodiscard]] pid_t pid() const { return m_pid; }
    /// All of its memory, read through /proc.
    [[nodiscard]] std::string memory() const;

private:
    [[noreturn]] void run(const std::optional<std::filesystem::path>& image, const std::vector<Change>& changes);
    void waitUntilStopped();

    Bytes m_ram;
    pid_t m_pid = -1;
    int m_pipe[2] = {-1, -1};
    char* m_address = nullptr;
};

} // namespace bulkhead::test
