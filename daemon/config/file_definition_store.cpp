// SPDX-License-Identifier: Apache-2.0
#include "config/file_definition_store.hpp"

#include "base/unique_fd.hpp"
#include "config/definition_folder.hpp"
#include "config/template_toml.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::config {

namespace {

constexpr std::string_view kSuffix = ".toml";
/// Ours among the drop-ins of a template.
constexpr std::string_view kAddedFile = "50-installed.toml";

/// Editors leave "work.toml~" and the like; only NAME.toml is a definition.
std::optional<std::string> definitionName(std::string_view fileName) {
    if (!fileName.ends_with(kSuffix) || fileName.size() == kSuffix.size()) {
        return std::nullopt;
    }
    return std::string(fileName.substr(0, fileName.size() - kSuffix.size()));
}

/// The uid that a folder's name is, in the one form that we write.
std::optional<uid_t> parseUid(std::string_view text) {
    uid_t uid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (error != std::errc{} || end != text.data() + text.size() || std::to_string(uid) != text) {
        return std::nullopt;
    }
    return uid;
}

using Found = std::vector<core::DefinitionProblem>;

/// Something that is no single definition.
void addPlace(Found& problems, const std::filesystem::path& place, const Error& error,
              std::optional<uid_t> owner = std::nullopt) {
    problems.push_back({error, place, owner, {}});
}

Status checkOwnDefinition(const core::DomainDefinition& definition) {
    if (definition.isManaged) {
        return fail(ErrorCode::NotAuthorized, "domain \"" + definition.name +
                                                  "\" is defined by the administrator; its file is " + definition.file);
    }
    if (definition.kind == core::DomainKind::Disposable) {
        return fail(ErrorCode::InvalidArgument,
                    "domain \"" + definition.name + "\" is disposable and has no definition");
    }
    return core::checkDomainName(definition.name);
}

} // namespace

void FileDefinitionStore::loadDomainFolder(int folder, const std::filesystem::path& path, std::optional<uid_t> owner,
                                           Loaded& loaded) const {
    const auto names = namesIn(folder, path);
    if (!names) {
        addPlace(loaded.problems, path, names.error(), owner);
        return;
    }
    for (const std::string& fileName : *names) {
        const auto name = definitionName(fileName);
        if (!name) {
            continue;
        }
        const std::filesystem::path file = path / fileName;
        const auto text = readDefinition(folder, fileName, file);
        if (!text) {
            loaded.problems.push_back({text.error(), file, owner, *name});
            continue;
        }
        auto definition = parseDomainToml(*text, {file.string(), *name, owner}, m_users);
        if (!definition) {
            const auto whose = owner ? owner : ownerInDomainToml(*text, m_users);
            for (const Error& error : definition.error()) {
                loaded.problems.push_back({error, file, whose, *name});
            }
            continue;
        }
        const auto same = std::find_if(loaded.domains.begin(), loaded.domains.end(), [&](const auto& other) {
            return other.owner == definition->owner && other.name == definition->name;
        });
        if (same != loaded.domains.end()) {
            const Error error{ErrorCode::AlreadyExists, file.string() + ": the domain is defined in " + same->file +
                                                            " already, which wins; remove this file"};
            loaded.problems.push_back({error, file, definition->owner, *name});
            continue;
        }
        loaded.domains.push_back(std::move(*definition));
    }
}

void FileDefinitionStore::loadUserFolders(Loaded& loaded) const {
    const auto folder = openFolder(m_folders.userDomains);
    if (!folder) {
        addPlace(loaded.problems, m_folders.userDomains, folder.error());
        return;
    }
    if (!folder->isOpen()) {
        return;
    }
    const auto names = namesIn(folder->get(), m_folders.userDomains);
    if (!names) {
        addPlace(loaded.problems, m_folders.userDomains, names.error());
        return;
    }
    for (const std::string& name : *names) {
        const std::filesystem::path path = m_folders.userDomains / name;
        const auto uid = parseUid(name);
        if (!uid) {
            addPlace(loaded.problems, path,
                     {ErrorCode::InvalidArgument, path.string() + ": is not named by a uid; remove it"});
            continue;
        }
        const auto owned = openFolderAt(folder->get(), name, path, false);
        if (!owned) {
            addPlace(loaded.problems, path, owned.error(), *uid);
        } else if (owned->isOpen()) {
            loadDomainFolder(owned->get(), path, *uid, loaded);
        }
    }
}

core::DefinitionStore::Loaded FileDefinitionStore::loadDomains() {
    const std::lock_guard lock(m_mutex);
    Loaded loaded;
    const auto admin = openFolder(m_folders.adminDomains);
    if (!admin) {
        addPlace(loaded.problems, m_folders.adminDomains, admin.error());
    } else if (admin->isOpen()) {
        loadDomainFolder(admin->get(), m_folders.adminDomains, std::nullopt, loaded);
    }
    loadUserFolders(loaded);
    return loaded;
}

std::filesystem::path FileDefinitionStore::userFile(const core::DomainDefinition& definition) const {
    return m_folders.userDomains / std::to_string(definition.owner) / (definition.name + std::string(kSuffix));
}

Result<UniqueFd> FileDefinitionStore::openUserFolder(uid_t owner, bool make) const {
    if (make && ::mkdir(m_folders.userDomains.c_str(), 0700) != 0 && errno != EEXIST) {
        return failErrno("cannot make the folder " + m_folders.userDomains.string(), errno);
    }
    auto folder = openFolder(m_folders.userDomains);
    if (!folder || !folder->isOpen()) {
        return folder;
    }
    const std::string name = std::to_string(owner);
    return openFolderAt(folder->get(), name, m_folders.userDomains / name, make);
}

Result<core::DomainDefinition> FileDefinitionStore::reload(const core::DomainDefinition& definition) {
    if (const Status good = checkOwnDefinition(definition); !good) {
        return fail(good.error());
    }
    const std::lock_guard lock(m_mutex);
    const std::filesystem::path file = userFile(definition);
    const auto folder = openUserFolder(definition.owner, false);
    if (!folder) {
        return fail(folder.error());
    }
    if (!folder->isOpen() || ::faccessat(folder->get(), file.filename().c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        return fail(ErrorCode::NotFound, "its definition " + file.string() + " is not there any more");
    }
    const auto text = readDefinition(folder->get(), file.filename().string(), file);
    if (!text) {
        return fail(text.error());
    }
    auto parsed = parseDomainToml(*text, {file.string(), definition.name, definition.owner}, m_users);
    return parsed ? Result<core::DomainDefinition>(std::move(*parsed)) : fail(parsed.error().front());
}

Status FileDefinitionStore::checkText(const std::string& text, const core::DomainDefinition& definition) const {
    const auto back = parseDomainToml(text, {definition.file, definition.name, definition.owner}, m_users);
    if (!back) {
        return fail(back.error().front().in("domain \"" + definition.name + "\""));
    }
    if (*back != definition) {
        return fail(ErrorCode::InvalidArgument, "domain \"" + definition.name + "\" cannot be written as TOML");
    }
    return {};
}

Result<core::DomainDefinition> FileDefinitionStore::save(core::DomainDefinition definition) {
    if (const Status good = checkOwnDefinition(definition); !good) {
        return fail(good.error());
    }
    const std::lock_guard lock(m_mutex);
    const std::filesystem::path file = userFile(definition);
    const std::string fileName = file.filename().string();
    definition.file = file.string();
    std::string text = writeDomainToml(definition);
    // What cannot be read back must never be written: the domain would be gone after a restart.
    if (const Status good = checkText(text, definition); !good) {
        return fail(good.error());
    }
    const auto folder = openUserFolder(definition.owner, true);
    if (!folder) {
        return fail(folder.error());
    }
    if (const auto present = readDefinition(folder->get(), fileName, file)) {
        if (auto edited = editDomainToml(*present, definition); edited && checkText(*edited, definition)) {
            text = std::move(*edited);
        }
    }
    if (const Status written = writeDefinition(folder->get(), fileName, file, text); !written) {
        return fail(written.error());
    }
    return definition;
}

Status FileDefinitionStore::removeDefinition(const core::DomainDefinition& definition) {
    if (definition.kind == core::DomainKind::Disposable) {
        return {};
    }
    if (const Status good = checkOwnDefinition(definition); !good) {
        return good;
    }
    const std::lock_guard lock(m_mutex);
    const std::filesystem::path file = userFile(definition);
    const auto folder = openUserFolder(definition.owner, false);
    if (!folder) {
        return fail(folder.error());
    }
    if (!folder->isOpen()) {
        return {};
    }
    return removeDefinitionFile(folder->get(), file.filename().string(), file);
}

core::DefinitionStore::LoadedTemplates FileDefinitionStore::loadTemplates() {
    const std::lock_guard lock(m_mutex);
    LoadedTemplates loaded;
    std::map<std::string, std::size_t> folderOf; // file name to the last folder that has it
    std::vector<UniqueFd> folders;
    for (const std::filesystem::path& path : m_folders.templates) {
        auto folder = openFolder(path);
        if (!folder) {
            addPlace(loaded.problems, path, folder.error());
            folders.emplace_back();
            continue;
        }
        folders.push_back(std::move(*folder));
        if (!folders.back()) {
            continue;
        }
        const auto names = namesIn(folders.back().get(), path);
        if (!names) {
            addPlace(loaded.problems, path, names.error());
            continue;
        }
        for (const std::string& name : *names) {
            if (definitionName(name)) {
                folderOf[name] = folders.size() - 1;
            }
        }
    }
    for (const auto& [fileName, index] : folderOf) {
        const std::filesystem::path file = m_folders.templates[index] / fileName;
        const std::string name = *definitionName(fileName);
        const auto text = readDefinition(folders[index].get(), fileName, file);
        if (!text) {
            loaded.problems.push_back({text.error(), file, std::nullopt, name});
            continue;
        }
        auto definition = parseTemplateToml(*text, file.string(), name);
        if (!definition) {
            for (const Error& error : definition.error()) {
                loaded.problems.push_back({error, file, std::nullopt, name});
            }
            continue;
        }
        auto problems = addDropIns(*definition);
        if (!problems.empty()) {
            // Not the template without them: domains would miss what somebody asked for.
            std::move(problems.begin(), problems.end(), std::back_inserter(loaded.problems));
            continue;
        }
        loaded.templates.push_back(std::move(*definition));
    }
    return loaded;
}

std::vector<core::DefinitionProblem> FileDefinitionStore::addDropIns(core::TemplateDefinition& definition) const {
    Found problems;
    std::map<std::string, std::filesystem::path> fileOf; // the last folder that has the name wins
    std::map<std::filesystem::path, UniqueFd> folders;
    for (const std::filesystem::path& folder : m_folders.templates) {
        const std::filesystem::path path = folder / (definition.name + ".d");
        auto opened = openFolder(path);
        if (!opened) {
            problems.push_back({opened.error(), path, std::nullopt, definition.name});
            continue;
        }
        if (!*opened) {
            continue;
        }
        const auto names = namesIn(opened->get(), path);
        if (!names) {
            problems.push_back({names.error(), path, std::nullopt, definition.name});
            continue;
        }
        for (const std::string& name : *names) {
            if (definitionName(name)) {
                fileOf[name] = path;
            }
        }
        folders.emplace(path, std::move(*opened));
    }
    for (const auto& [fileName, path] : fileOf) {
        const std::filesystem::path file = path / fileName;
        const auto text = readDefinition(folders.at(path).get(), fileName, file);
        if (!text) {
            problems.push_back({text.error(), file, std::nullopt, definition.name});
            continue;
        }
        auto packages = parseTemplateDropIn(*text, file.string());
        if (!packages) {
            for (const Error& error : packages.error()) {
                problems.push_back({error, file, std::nullopt, definition.name});
            }
            continue;
        }
        for (const std::string& package : *packages) {
            if (std::find(definition.packages.begin(), definition.packages.end(), package) ==
                definition.packages.end()) {
                definition.packages.push_back(package);
            }
        }
        if (fileName == kAddedFile) {
            definition.addedPackages = std::move(*packages);
        }
    }
    return problems;
}

Status FileDefinitionStore::saveAddedPackages(const std::string& templateName,
                                              const std::vector<std::string>& packages) {
    if (const Status named = core::checkSimpleName("template", templateName); !named) {
        return named;
    }
    const std::lock_guard lock(m_mutex);
    const std::filesystem::path& own = m_folders.templates.back();
    const std::string folderName = templateName + ".d";
    const std::filesystem::path file = own / folderName / kAddedFile;
    const std::string text = writeTemplateDropIn(templateName, packages);
    // What cannot be read back would take the template from everybody.
    if (const auto readBack = parseTemplateDropIn(text, file.string()); !readBack) {
        return fail(readBack.error().front());
    }
    const bool make = !packages.empty();
    if (make && ::mkdir(own.c_str(), 0755) != 0 && errno != EEXIST) {
        return failErrno("cannot make the folder " + own.string(), errno);
    }
    const auto parent = openFolder(own);
    if (!parent) {
        return fail(parent.error());
    }
    if (!*parent) {
        return {}; // nothing to take away
    }
    const auto folder = openFolderAt(parent->get(), folderName, own / folderName, make, Readers::Everybody);
    if (!folder) {
        return fail(folder.error());
    }
    if (!make) {
        return *folder ? removeDefinitionFile(folder->get(), std::string(kAddedFile), file) : Status();
    }
    return writeDefinition(folder->get(), std::string(kAddedFile), file, text, Readers::Everybody);
}

} // namespace bulkhead::config
