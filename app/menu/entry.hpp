// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// A domain's apps in the menu of the host's desktop: files of the Desktop Entry Specification 1.5, built from fields.
/// No text of the guest gets into them but a cleaned name, and a chosen few words.
namespace bulkhead::menu {

/// What a domain tells of one of its apps: foreign bytes, whatever they are said to be.
struct App {
    std::string id;
    std::string name;
    std::string categories; ///< separated by semicolons
};

/// The key by which we know our own files again.
inline constexpr std::string_view kDomainKey = "X-Bulkhead-Domain";

/// Whether entries can be made for that: a domain that has a name of its own (disposables have none that lasts).
bool isExportableDomain(std::string_view domain);
/// [A-Za-z0-9._-], at most 128, and neither an option nor a hidden file.
bool isAppId(std::string_view id);

/// `org.bulkhead.DOMAIN.`, with which the names of all files of a domain begin. A domain's name has no dot in it.
std::string fileNamePrefix(std::string_view domain);
/// `org.bulkhead.DOMAIN.APP.desktop`; both must have passed the checks above.
std::string fileName(std::string_view domain, std::string_view appId);
/// The whole text of that file. It shows "NAME (DOMAIN)" and our icon: the guest's own is a picture that the host would
/// have to decode. It starts `bulkhead domain launch`, never what the guest's entry says.
std::string entryText(std::string_view domain, const App& app);

/// As the value of a key of type string or localestring.
std::string stringValue(std::string_view text);
/// As one argument in an Exec value, quoted where it must be and with no field codes, not yet passed through
/// stringValue().
std::string execArgument(std::string_view argument);
/// Those of the registered main categories that stand in it, each ended by a semicolon, and X-Bulkhead.
std::string categoriesValue(std::string_view categories);

/// Whose entry a file is: the domain's name by kDomainKey in its first group, or empty.
std::string ownerOf(std::string_view entryText);

} // namespace bulkhead::menu
