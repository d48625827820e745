// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::imaging::build {

/// One place that packages come from: one URI, one suite.
struct AptSource {
    std::string uri;
    std::string suite;
    std::vector<std::string> components;
    std::string signedBy;  ///< as written; empty: not given
    bool insecure = false; ///< `trusted` or `allow-insecure` (or `allow-weak`) is set
    std::string from;      ///< "file:line", for messages

    bool operator==(const AptSource&) const = default;
};

/// Reads sources.list(5) text in the one-line form. Lines that cannot be read are skipped: they are apt's business.
std::vector<AptSource> parseOneLineSources(std::string_view text, const std::string& fileName);
/// The same in deb822 form (`*.sources`).
std::vector<AptSource> parseDeb822Sources(std::string_view text, const std::string& fileName);

/// What the template is built from: the entries of Debian's own archive for `suite`, its updates and its security
/// updates. `isDebian(source)` says whether what the host knows of an entry's origin speaks against it. An entry that
/// switches signature checks off is refused with InvalidArgument; no entry left is NotFound.
Result<std::vector<AptSource>> selectDebianSources(std::vector<AptSource> sources, std::string_view suite);

/// sources.list(5) text, each entry pinned to Debian's archive keyring and without the user and password that its URI
/// may hold: the text stays in the template.
std::string formatSources(const std::vector<AptSource>& sources);
/// What formatSources() leaves out, as apt_auth.conf(5) text for the time of the build; empty when there is nothing.
/// InvalidArgument for what that form cannot say (white space in a password).
Result<std::string> formatAuth(const std::vector<AptSource>& sources);

struct HostSources {
    std::vector<AptSource> sources;
    /// Files that are there and cannot be read (with the reason): what is missing may be in one of them.
    std::vector<std::string> unreadable;
};
/// All sources of this host (`root` is "/" but in tests).
HostSources readHostSources(const std::filesystem::path& root);
/// A file of either form.
Result<std::vector<AptSource>> readSourcesFile(const std::filesystem::path& file);

/// Of the lines of `apt-config dump` those that the build takes over, as apt.conf lines: proxies (for the build only)
/// and the checks of release dates that the host's administrator changed.
struct AptOptions {
    std::vector<std::string> forBuild;
    std::vector<std::string> forTemplate;
};
AptOptions selectAptOptions(std::string_view dump);

} // namespace bulkhead::imaging::build
