// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead::hypervisor {

/// Writes indented XML. Every attribute value and every text goes through the escaping here, so no caller can forget
/// it. Element and attribute names are ours and are written as they are. Bytes that XML 1.0 cannot carry (control
/// characters) have no escape: isXmlText() tells them, and callers refuse them before they write.
class XmlWriter {
public:
    using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    /// Opens `<name …>`; closed by the matching close().
    void open(std::string_view name, Attributes attributes = {});
    void close();
    /// `<name …/>`
    void empty(std::string_view name, Attributes attributes = {});
    /// `<name …>text</name>`
    void text(std::string_view name, std::string_view text, Attributes attributes = {});

    /// The finished document. All elements must be closed.
    [[nodiscard]] std::string take();

private:
    void start(std::string_view name, Attributes attributes);

    std::string m_out;
    std::vector<std::string> m_open;
};

/// The five characters that mean something in XML, as entities.
std::string escapeXml(std::string_view text);
/// True when `text` is valid UTF-8 without control characters, so that an XML parser gives back the same bytes.
/// (Line breaks and tabs could be written as references, but no path of ours holds one.)
bool isXmlText(std::string_view text);

} // namespace bulkhead::hypervisor
