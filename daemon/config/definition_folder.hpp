// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Folders of definitions: opened once, everything in them reached from the descriptor and never through a link.
namespace bulkhead::config {

/// Not open when there is no such folder. An error for anything else that is not a folder.
Result<UniqueFd> openFolder(const std::filesystem::path& path);
/// Who may read what we write.
enum class Readers { OnlyUs, Everybody };

/// Opens the folder `name` in `parent`, made with mode 0700 (or 0755) when it is absent and `make` is set.
Result<UniqueFd> openFolderAt(int parent, const std::string& name, const std::filesystem::path& shownAs, bool make,
                              Readers readers = Readers::OnlyUs);

/// Names in the folder, sorted, without those that begin with a dot.
Result<std::vector<std::string>> namesIn(int folder, const std::filesystem::path& shownAs);

/// Reads a definition: a regular file of at most 64 KiB that only root (or we) can write.
Result<std::string> readDefinition(int folder, const std::string& name, const std::filesystem::path& shownAs);

/// Replaces or makes the file so that after a crash there is the old one or the new one, whole. Mode 0600 (or 0644).
Status writeDefinition(int folder, const std::string& name, const std::filesystem::path& shownAs, std::string_view text,
                       Readers readers = Readers::OnlyUs);
/// Success when it is absent. On disk when it returns.
Status removeDefinitionFile(int folder, const std::string& name, const std::filesystem::path& shownAs);

} // namespace bulkhead::config
