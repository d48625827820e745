// SPDX-License-Identifier: Apache-2.0
#include "build/apt_sources.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace bulkhead::imaging::build {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
constexpr std::array<std::string_view, 4> kComponents{"main", "contrib", "non-free", "non-free-firmware"};

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> result;
    std::string word;
    for (const char c : text) {
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            if (!word.empty()) {
                result.push_back(std::exchange(word, {}));
            }
        } else {
            word += c;
        }
    }
    if (!word.empty()) {
        result.push_back(word);
    }
    return result;
}

std::vector<std::string> lines(std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        result.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return result;
}

bool isYes(std::string_view value) {
    const std::string text = lower(value);
    return text == "yes" || text == "true" || text == "1" || text == "on" || text == "with" || text == "enable";
}

/// The options of an entry, by lower-case name as in deb822.
using Fields = std::map<std::string, std::string>;

std::string fieldOf(const Fields& fields, const std::string& name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
}

/// The names of the one-line form's options that differ from deb822's fields.
std::string fieldName(std::string_view option) {
    const std::string name = lower(option);
    return name == "arch" ? "architectures" : name;
}

bool isForThisArchitecture(const Fields& fields) {
    const auto architectures = words(fieldOf(fields, "architectures"));
    return architectures.empty() || std::any_of(architectures.begin(), architectures.end(), [](const auto& text) {
               return ("," + text + ",").find(",amd64,") != std::string::npos;
           });
}

void addSources(std::vector<AptSource>& into, const Fields& fields, const std::string& from) {
    const std::string enabled = fieldOf(fields, "enabled");
    const auto types = words(fieldOf(fields, "types"));
    if ((!enabled.empty() && !isYes(enabled)) || std::find(types.begin(), types.end(), "deb") == types.end() ||
        !isForThisArchitecture(fields)) {
        return;
    }
    const bool insecure = isYes(fieldOf(fields, "trusted")) || isYes(fieldOf(fields, "allow-insecure")) ||
                          isYes(fieldOf(fields, "allow-weak")) || isYes(fieldOf(fields, "allow-downgrade-to-insecure"));
    for (const std::string& uri : words(fieldOf(fields, "uris"))) {
        for (const std::string& suite : words(fieldOf(fields, "suites"))) {
            into.push_back(
                {uri, suite, words(fieldOf(fields, "components")), fieldOf(fields, "signed-by"), insecure, from});
        }
    }
}

std::optional<Fields> parseLine(const std::string& line) {
    std::string text = line.substr(0, line.find('#'));
    Fields fields;
    if (const std::size_t open = text.find('['); open != std::string::npos) {
        const std::size_t close = text.find(']', open);
        if (close == std::string::npos) {
            return std::nullopt;
        }
        for (const std::string& option : words(std::string_view(text).substr(open + 1, close - open - 1))) {
            const std::size_t equals = option.find('=');
            if (equals != std::string::npos) {
                fields[fieldName(std::string_view(option).substr(0, equals))] = option.substr(equals + 1);
            }
        }
        text.erase(open, close - open + 1);
    }
    const auto parts = words(text);
    if (parts.size() < 4) {
        return std::nullopt;
    }
    fields["types"] = parts[0];
    fields["uris"] = parts[1];
    fields["suites"] = parts[2];
    std::string& components = fields["components"];
    for (std::size_t i = 3; i < parts.size(); ++i) {
        components += parts[i] + " ";
    }
    return fields;
}

bool isDebianKeyring(const std::string& signedBy) {
    const auto keys = words(signedBy);
    return std::all_of(keys.begin(), keys.end(), [](const std::string& key) {
        return key.front() == '/' && fs::path(key).filename().string().starts_with("debian-archive-");
    });
}

bool isDebianEntry(const AptSource& source, std::string_view suite) {
    const bool suiteFits = source.suite == suite || source.suite == std::string(suite) + "-updates" ||
                           source.suite == std::string(suite) + "-security";
    const bool uriFits = source.uri.starts_with("http://") || source.uri.starts_with("https://");
    const bool componentsFit =
        !source.components.empty() &&
        std::all_of(source.components.begin(), source.components.end(), [](const std::string& component) {
            return std::find(kComponents.begin(), kComponents.end(), component) != kComponents.end();
        });
    return suiteFits && uriFits && componentsFit && isDebianKeyring(source.signedBy);
}

/// An http or https URI, taken apart.
struct UriParts {
    std::string scheme;
    std::string userInfo; ///< "user:password", percent-encoded; empty: none
    std::string rest;     ///< host, port and path
};

UriParts splitUri(const std::string& uri) {
    const std::size_t scheme = uri.find("://");
    const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
    const std::size_t path = std::min(uri.find('/', host), uri.size());
    const std::size_t at = uri.substr(0, path).rfind('@');
    if (at == std::string::npos || at < host) {
        return {uri.substr(0, host), {}, uri.substr(host)};
    }
    return {uri.substr(0, host), uri.substr(host, at - host), uri.substr(at + 1)};
}

std::string decodePercent(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        if (text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
            result += static_cast<char>(byte);
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

bool isAuthWord(const std::string& text) {
    return !text.empty() && text.front() != '#' &&
           std::none_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F || c == '"'; });
}

std::optional<std::string> readText(const fs::path& file) {
    constexpr std::uintmax_t kMaxFile = std::uintmax_t{1024} * 1024;
    std::error_code error;
    if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMaxFile) {
        return std::nullopt;
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return std::nullopt; // is there, and may not be read
    }
    std::string text(std::istreambuf_iterator<char>(stream), {});
    return stream.bad() ? std::nullopt : std::optional(text);
}

/// What apt has downloaded for an entry before says whose it is. Only a contradiction counts: the lists may have been
/// cleaned away.
bool isKnownAsForeign(const AptSource& source, const fs::path& root) {
    std::string name = splitUri(source.uri).rest;
    while (!name.empty() && name.back() == '/') {
        name.pop_back();
    }
    std::replace(name.begin(), name.end(), '/', '_');
    const auto release = readText(root / "var/lib/apt/lists" / (name + "_dists_" + source.suite + "_InRelease"));
    return release && release->find("\nOrigin: Debian\n") == std::string::npos;
}

} // namespace

std::vector<AptSource> parseOneLineSources(std::string_view text, const std::string& fileName) {
    std::vector<AptSource> sources;
    int number = 0;
    for (const std::string& line : lines(text)) {
        ++number;
        if (const auto fields = parseLine(line)) {
            addSources(sources, *fields, fileName + ":" + std::to_string(number));
        }
    }
    return sources;
}

std::vector<AptSource> parseDeb822Sources(std::string_view text, const std::string& fileName) {
    std::vector<AptSource> sources;
    Fields fields;
    std::string last;
    int number = 0;
    int begin = 1;
    const auto endStanza = [&] {
        addSources(sources, fields, fileName + ":" + std::to_string(begin));
        fields.clear();
        last.clear();
    };
    for (const std::string& line : lines(text)) {
        ++number;
        if (line.starts_with('#')) {
            continue;
        }
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            endStanza();
            continue;
        }
        if (line.starts_with(' ') || line.starts_with('\t')) {
            fields[last] += "\n" + line;
            continue;
        }
        if (fields.empty()) {
            begin = number;
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            continue;
        }
        last = lower(std::string_view(line).substr(0, colon));
        const std::size_t value = line.find_first_not_of(" \t", colon + 1);
        std::string rest = value == std::string::npos ? std::string() : line.substr(value);
        rest.erase(rest.find_last_not_of(" \t\r") + 1);
        fields[last] = rest;
    }
    endStanza();
    return sources;
}

Result<std::vector<AptSource>> selectDebianSources(std::vector<AptSource> sources, std::string_view suite) {
    std::erase_if(sources, [suite](const AptSource& source) { return !isDebianEntry(source, suite); });
    for (const AptSource& source : sources) {
        if (source.insecure) {
            return fail(ErrorCode::InvalidArgument,
                        source.from + ": switches the check of signatures off; templates are built from signed "
                                      "archives only. Remove the option there, or name other sources");
        }
    }
    const auto base = [suite](const AptSource& source) { return source.suite == suite; };
    if (std::none_of(sources.begin(), sources.end(), base)) {
        return fail(ErrorCode::NotFound, "No entry of Debian's archive for " + std::string(suite) +
                                             " among the apt sources; add one, or name a file of sources (mirror)");
    }
    return sources;
}

std::string formatSources(const std::vector<AptSource>& sources) {
    std::string text;
    for (const AptSource& source : sources) {
        const UriParts uri = splitUri(source.uri);
        text += "deb [signed-by=" + std::string(kKeyring) + "] " + uri.scheme + uri.rest + " " + source.suite;
        for (const std::string& component : source.components) {
            text += " " + component;
        }
        text += "\n";
    }
    return text;
}

Result<std::string> formatAuth(const std::vector<AptSource>& sources) {
    std::string text;
    for (const AptSource& source : sources) {
        const UriParts uri = splitUri(source.uri);
        if (uri.userInfo.empty()) {
            continue;
        }
        const std::size_t colon = std::min(uri.userInfo.find(':'), uri.userInfo.size());
        const std::string user = decodePercent(std::string_view(uri.userInfo).substr(0, colon));
        const std::string password = colon == uri.userInfo.size()
                                         ? std::string()
                                         : decodePercent(std::string_view(uri.userInfo).substr(colon + 1));
        if (!isAuthWord(user) || (!password.empty() && !isAuthWord(password))) {
            return fail(ErrorCode::InvalidArgument,
                        source.from +
                            ": the user or password in the URI has characters that apt's auth.conf cannot hold");
        }
        // With the scheme: without, apt uses it for https only.
        const std::string line = "machine " + uri.scheme + uri.rest + " login " + user +
                                 (password.empty() ? std::string() : " password " + password) + "\n";
        if (text.find(line) == std::string::npos) {
            text += line;
        }
    }
    return text;
}

Result<std::vector<AptSource>> readSourcesFile(const fs::path& file) {
    const auto text = readText(file);
    if (!text) {
        return fail(ErrorCode::NotFound, "Cannot read the apt sources in " + file.string());
    }
    // Files of either form may have any name here; only one form has fields.
    const bool deb822 = file.extension() == ".sources" || lower(*text).find("uris:") != std::string::npos;
    return deb822 ? parseDeb822Sources(*text, file.string()) : parseOneLineSources(*text, file.string());
}

HostSources readHostSources(const fs::path& root) {
    HostSources host;
    std::vector<fs::path> files{root / "etc/apt/sources.list"};
    const fs::path folder = root / "etc/apt/sources.list.d";
    std::error_code error;
    for (fs::directory_iterator at(folder, error); !error && at != fs::end(at); at.increment(error)) {
        if (at->path().extension() == ".list" || at->path().extension() == ".sources") {
            files.push_back(at->path());
        }
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        host.unreadable.push_back(folder.string() + " (" + error.message() + ")");
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        if (auto read = readSourcesFile(file)) {
            host.sources.insert(host.sources.end(), read->begin(), read->end());
        } else if (fs::exists(fs::symlink_status(file, error))) {
            host.unreadable.push_back(file.string() + (::access(file.c_str(), R_OK) != 0
                                                           ? " (" + std::generic_category().message(errno) + ")"
                                                           : " (no regular file of at most 1 MiB)"));
        }
    }
    std::erase_if(host.sources, [&root](const AptSource& source) { return isKnownAsForeign(source, root); });
    return host;
}

AptOptions selectAptOptions(std::string_view dump) {
    AptOptions options;
    for (const std::string& line : lines(dump)) {
        const std::size_t space = line.find(' ');
        // NAME "VALUE"; with a value that cannot end early.
        if (space == std::string::npos || line.size() < space + 4 || line[space + 1] != '"' || !line.ends_with("\";") ||
            std::count(line.begin(), line.end(), '"') != 2 || line.find('\\') != std::string::npos) {
            continue;
        }
        const std::string name = lower(std::string_view(line).substr(0, space));
        if (name.starts_with("acquire::http::proxy") || name.starts_with("acquire::https::proxy")) {
            options.forBuild.push_back(line); // may hold a password, and means nothing inside a domain
        } else if (name == "acquire::check-valid-until" || name == "acquire::check-date") {
            options.forBuild.push_back(line);
            options.forTemplate.push_back(line);
        }
    }
    return options;
}

} // namespace bulkhead::imaging::build
