// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.hpp"

namespace bulkhead::cli {

tl::expected<std::vector<std::string>, std::string> resolveEnvironment(const std::vector<std::string>& given,
                                                                       const VariableLookup& lookup) {
    std::vector<std::string> resolved;
    for (const std::string& entry : given) {
        const std::size_t equals = entry.find('=');
        const std::string name = entry.substr(0, equals);
        if (name.empty()) {
            return tl::unexpected<std::string>("--env '" + entry + "': it has no name");
        }
        if (equals != std::string::npos) {
            resolved.push_back(entry);
            continue;
        }
        const auto value = lookup(name);
        if (!value) {
            return tl::unexpected<std::string>("--env " + name + ": it is not set here");
        }
        resolved.push_back(name + "=" + *value);
    }
    return resolved;
}

} // namespace bulkhead::cli
