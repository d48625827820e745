// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inspect/report.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace bulkhead::inspect {

/// Name and architecture, to the version that is there.
using Packages = std::map<std::pair<std::string, std::string>, std::string>;

/// Reads dpkg's list of packages piece by piece: fields of a line, a paragraph for each package. Whatever is longer or
/// more than it should be is left out (`isWhole`).
class StatusReader {
public:
    void take(std::string_view bytes);
    /// What was read, at the end of the file. Of packages that were removed but left their configuration there is
    /// nothing here.
    Packages finish();
    [[nodiscard]] bool isWhole() const { return m_isWhole; }

private:
    void takeLine(std::string_view line);
    void endParagraph();

    std::string m_line;
    bool m_isLineTooLong = false;
    std::string m_name;
    std::string m_architecture;
    std::string m_version;
    std::string m_status;
    Packages m_packages;
    bool m_isWhole = true;
};

/// Compares var/lib/dpkg/status below two directories. Neither there: no dpkg, nothing to say. Links are not followed.
void comparePackages(int a, int b, Report& report);

} // namespace bulkhead::inspect
