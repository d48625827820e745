// SPDX-License-Identifier: Apache-2.0
#include "config/file_deleted_definitions.hpp"

#include "base/log.hpp"
#include "config/definition_folder.hpp"
#include "core/model/domain.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace bulkhead::config {
namespace {

constexpr const char* kFolder = "deleted";
constexpr std::string_view kSuffix = ".toml";

template <class Number> std::optional<Number> numberFrom(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || std::to_string(number) != text) {
        return std::nullopt;
    }
    return number;
}

std::string fileNameOf(const core::SetAsideDefinition& what) {
    return what.name + "." + what.id.text() + "." + std::to_string(what.deletedAt) + std::string(kSuffix);
}

/// None: it is not one of ours.
std::optional<core::SetAsideDefinition> readFileName(std::string_view fileName, uid_t owner) {
    if (!fileName.ends_with(kSuffix)) {
        return std::nullopt;
    }
    fileName.remove_suffix(kSuffix.size());
    const auto first = fileName.find('.');
    const auto second = fileName.rfind('.');
    if (first == std::string_view::npos || second == first) {
        return std::nullopt;
    }
    const auto id = DomainId::parse(std::string(fileName.substr(first + 1, second - first - 1)));
    const auto time = numberFrom<std::int64_t>(fileName.substr(second + 1));
    std::string name(fileName.substr(0, first));
    if (!id || !time || *time <= 0 || !core::checkDomainName(name)) {
        return std::nullopt;
    }
    return core::SetAsideDefinition{*id, owner, std::move(name), *time};
}

/// Never over a file that is there.
Status move(int from, const std::string& oldName, int to, const std::string& newName, const std::string& what) {
    if (::renameat2(from, oldName.c_str(), to, newName.c_str(), RENAME_NOREPLACE) != 0) {
        if (errno == EEXIST) {
            return fail(ErrorCode::AlreadyExists, what + ": there is a file of that name");
        }
        return failErrno(what, errno);
    }
    // What it is now comes before what it is no longer: cut off between the two it is seen in both, or in the new
    // place.
    if (::fsync(to) != 0 || ::fsync(from) != 0) {
        return failErrno(what, errno);
    }
    return {};
}

} // namespace

std::filesystem::path FileDeletedDefinitions::folderOf(uid_t owner) const {
    return m_userDomains / std::to_string(owner);
}

Result<FileDeletedDefinitions::Folders> FileDeletedDefinitions::open(uid_t owner, bool make) const {
    const auto path = folderOf(owner);
    auto present = openFolder(path);
    if (!present) {
        return fail(present.error());
    }
    if (!present->isOpen()) {
        return Folders{};
    }
    auto deleted = openFolderAt(present->get(), kFolder, path / kFolder, make);
    if (!deleted) {
        return fail(deleted.error());
    }
    return Folders{std::move(*present), std::move(*deleted)};
}

Result<std::optional<std::string>> FileDeletedDefinitions::find(const Folders& folders, const DomainId& id,
                                                                uid_t owner) const {
    if (!folders.deleted.isOpen()) {
        return std::nullopt;
    }
    const auto names = namesIn(folders.deleted.get(), folderOf(owner) / kFolder);
    if (!names) {
        return fail(names.error());
    }
    for (const std::string& name : *names) {
        if (const auto what = readFileName(name, owner); what && what->id == id) {
            return name;
        }
    }
    return std::nullopt;
}

Status FileDeletedDefinitions::setAside(const core::SetAsideDefinition& what) {
    if (auto checked = core::checkDomainName(what.name); !checked) {
        return checked;
    }
    const std::lock_guard lock(m_mutex);
    const auto folders = open(what.owner, true);
    if (!folders || !folders->present.isOpen()) {
        return folders ? Status() : Status(fail(folders.error()));
    }
    const auto known = find(*folders, what.id, what.owner);
    const std::string name = what.name + std::string(kSuffix);
    if (!known) {
        return fail(known.error());
    }
    if (*known || ::faccessat(folders->present.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        return {};
    }
    return move(folders->present.get(), name, folders->deleted.get(), fileNameOf(what),
                "cannot set " + (folderOf(what.owner) / name).string() + " aside");
}

Status FileDeletedDefinitions::bringBack(const DomainId& id, uid_t owner, const std::string& name) {
    if (auto checked = core::checkDomainName(name); !checked) {
        return checked;
    }
    const std::lock_guard lock(m_mutex);
    const auto folders = open(owner, false);
    if (!folders) {
        return fail(folders.error());
    }
    const auto known = find(*folders, id, owner);
    if (!known || !*known) {
        return known ? Status() : Status(fail(known.error()));
    }
    const std::string target = name + std::string(kSuffix);
    return move(folders->deleted.get(), **known, folders->present.get(), target,
                "cannot bring the definition " + (folderOf(owner) / target).string() + " back");
}

Status FileDeletedDefinitions::remove(const DomainId& id, uid_t owner) {
    const std::lock_guard lock(m_mutex);
    const auto folders = open(owner, false);
    if (!folders) {
        return fail(folders.error());
    }
    const auto known = find(*folders, id, owner);
    if (!known || !*known) {
        return known ? Status() : Status(fail(known.error()));
    }
    return removeDefinitionFile(folders->deleted.get(), **known, folderOf(owner) / kFolder / **known);
}

Result<std::vector<core::SetAsideDefinition>> FileDeletedDefinitions::all() {
    const std::lock_guard lock(m_mutex);
    std::vector<core::SetAsideDefinition> found;
    const auto folder = openFolder(m_userDomains);
    if (!folder || !folder->isOpen()) {
        return folder ? Result<std::vector<core::SetAsideDefinition>>(found) : fail(folder.error());
    }
    const auto owners = namesIn(folder->get(), m_userDomains);
    if (!owners) {
        return fail(owners.error());
    }
    for (const std::string& ownerName : *owners) {
        const auto owner = numberFrom<uid_t>(ownerName);
        if (!owner) {
            continue; // the store of definitions tells of it
        }
        const auto folders = open(*owner, false);
        if (!folders) {
            log::warning("a user's definitions cannot be read", {{"ERROR", folders.error().message}});
            continue;
        }
        if (!folders->deleted.isOpen()) {
            continue;
        }
        const auto names = namesIn(folders->deleted.get(), folderOf(*owner) / kFolder);
        if (!names) {
            return fail(names.error());
        }
        for (const std::string& name : *names) {
            if (auto what = readFileName(name, *owner)) {
                found.push_back(std::move(*what));
            }
        }
    }
    return found;
}

} // namespace bulkhead::config
