// SPDX-License-Identifier: Apache-2.0
#include "process/host_memory.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace bulkhead::process {

core::HostMemory::Amount ProcHostMemory::memory() {
    Amount amount;
    std::ifstream file(m_file);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string name;
        Bytes kibibytes = 0;
        if (!(words >> name >> kibibytes)) {
            continue;
        }
        if (name == "MemTotal:") {
            amount.total = kibibytes * kKiB;
        } else if (name == "MemAvailable:") {
            amount.available = kibibytes * kKiB;
        }
    }
    return amount;
}

} // namespace bulkhead::process
