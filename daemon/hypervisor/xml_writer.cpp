// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/xml_writer.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <stdexcept>

namespace bulkhead::hypervisor {

std::string escapeXml(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '\'':
            out += "&apos;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            out += c;
        }
    }
    return out;
}

bool isXmlText(std::string_view text) {
    const bool hasControl = std::any_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
    });
    // U+FFFE and U+FFFF are well-formed UTF-8 and yet no XML characters.
    const bool hasNonCharacter =
        text.find("\xEF\xBF\xBE") != std::string_view::npos || text.find("\xEF\xBF\xBF") != std::string_view::npos;
    return !hasControl && !hasNonCharacter && isValidUtf8(text);
}

void XmlWriter::start(std::string_view name, Attributes attributes) {
    m_out.append(2 * m_open.size(), ' ');
    m_out += '<';
    m_out += name;
    for (const auto& [key, value] : attributes) {
        m_out += ' ';
        m_out += key;
        m_out += "='";
        m_out += escapeXml(value);
        m_out += '\'';
    }
}

void XmlWriter::open(std::string_view name, Attributes attributes) {
    start(name, attributes);
    m_out += ">\n";
    m_open.emplace_back(name);
}

void XmlWriter::close() {
    if (m_open.empty()) {
        throw std::logic_error("XmlWriter: close without open");
    }
    const std::string name = std::move(m_open.back());
    m_open.pop_back();
    m_out.append(2 * m_open.size(), ' ');
    m_out += "</" + name + ">\n";
}

void XmlWriter::empty(std::string_view name, Attributes attributes) {
    start(name, attributes);
    m_out += "/>\n";
}

void XmlWriter::text(std::string_view name, std::string_view text, Attributes attributes) {
    start(name, attributes);
    m_out += '>';
    m_out += escapeXml(text);
    m_out += "</";
    m_out += name;
    m_out += ">\n";
}

std::string XmlWriter::take() {
    if (!m_open.empty()) {
        throw std::logic_error("XmlWriter: <" + m_open.back() + "> is not closed");
    }
    return std::exchange(m_out, {});
}

} // namespace bulkhead::hypervisor
