// SPDX-License-Identifier: Apache-2.0
// A .desktop file as somebody in the guest may have written it. What is made of it must fit into a message.
#include "base/escaping.hpp"
#include "session/desktop_file.hpp"

#include <cstdint>
#include <cstdlib>

using namespace bulkhead;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void requireText(const std::string& text, std::size_t most) {
    require(text.size() <= most && isValidUtf8(text));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto entry = session::parseDesktopFile({reinterpret_cast<const char*>(data), size}, {"Bulkhead", "Other"});
    if (entry) {
        requireText(entry->name, 256);
        requireText(entry->comment, 512);
        requireText(entry->categories, 256);
        require(entry->isHidden || !entry->name.empty());
        require(entry->tryExec.find('\0') == std::string::npos);
    }
    return 0;
}
