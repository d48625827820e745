#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include and link whom. ARCHITECTURE.md shows the same table for people.

    include_rules.py ROOT            checks the sources below ROOT
    include_rules.py --prove ROOT    checks that the fixture tree is found as bad as its expected.txt says
"""

import re
import sys
from pathlib import Path

from sources import report, source_files

# What travels over descriptors that D-Bus hands out, as headers: the only ones of the contract that are code.
STREAMS = {"dbus/interfaces/exec_stream.hpp", "dbus/interfaces/session_stream.hpp"}
DIFF_STREAM = {"dbus/interfaces/diff_stream.hpp"}
# Module -> (its folder, modules it may use, single headers of other modules it may include).
MODULES = {
    "base": ("daemon/base", set(), set()),
    "policy": ("daemon/policy", {"base"}, set()),
    "core": ("daemon/core", {"base", "policy"}, set()),
    "process": ("daemon/process", {"base", "core"}, set()),
    "config": ("daemon/config", {"base", "core"}, set()),
    "hypervisor": ("daemon/hypervisor", {"base", "core", "process"}, set()),
    "storage": ("daemon/storage", {"base", "core"}, set()),
    "dbus": ("daemon/dbus", {"base", "core"}, set()),
    # A part of imaging that bulkhead-memcap shares, so it comes first and links little.
    "memory": ("daemon/imaging/memory", {"base", "process"},
               {"imaging/digest.hpp", "imaging/file_tree.hpp"}),
    "imaging": ("daemon/imaging", {"base", "core", "process", "memory"}, set()),
    "memcap": ("daemon/memcap", {"base", "memory"}, set()),
    "preload": ("daemon/preload", set(), set()),
    "link": ("daemon/link", {"base", "core", "process", "protocol"}, {"channel/records.hpp"}),
    "channel": ("daemon/channel", {"base", "protocol"}, STREAMS),
    "egress": ("daemon/egress", {"base", "policy"}, set()),
    "protocol": ("guest-agent/protocol", set(), set()),
    "inspect": ("guest-agent/inspect", {"base"}, DIFF_STREAM),
    "agent": ("guest-agent/agent", {"base", "protocol", "inspect"}, set()),
    "session": ("guest-agent/session", {"base", "protocol"}, set()),
    "client": ("app/client", set(), STREAMS | DIFF_STREAM),
    "menu": ("app/menu", {"client"}, set()),
    "cli": ("app/cli", {"client", "menu", "policy"}, STREAMS | DIFF_STREAM),
    "widgets": ("app/widgets", {"client"}, set()),
    "gui": ("app/gui", {"client", "menu", "widgets"}, STREAMS | DIFF_STREAM),
    "viewer": ("app/viewer", {"client", "widgets"}, STREAMS),
}
# The composition root: files directly in daemon/ wire everything together.
ROOT_FOLDER = "daemon"

QT = {"client", "menu", "cli", "widgets", "gui", "viewer"}
# Library -> (pattern of its headers, pattern of its CMake names, modules that may use it). What is not listed is free.
LIBRARIES = {
    "Qt": (r"^(Q[A-Z]\w*|Qt\w+/.*)$", r"^Qt6::", QT),
    "libvirt": (r"^libvirt/", r"^(PkgConfig::)?(lib)?virt", {"hypervisor"}),
    "sdbus-c++": (r"^sdbus-c\+\+/", r"sdbus", {"dbus"}),
    "SQLite": (r"^sqlite3", r"(?i)sqlite", {"storage"}),
    "toml++": (r"^toml(\+\+|plusplus)", r"(?i)toml", {"config", "imaging"}),
    "protobuf": (r"^google/protobuf/|\.pb\.h$", r"protobuf", {"protocol", "agent", "session", "channel", "link"}),
    "libseccomp": (r"^seccomp\.h$", r"seccomp", {"channel", "egress", "agent", "memcap", "viewer"}),
    "CLI11": (r"^CLI/", r"CLI11", {"cli"}),
    "nlohmann-json": (r"^nlohmann/", r"nlohmann", {"cli", "hypervisor", "storage", "imaging"}),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
LINK_WORDS = {"PUBLIC", "PRIVATE", "INTERFACE", "SOURCES"}


def module_of(path):
    for name, (folder, _, _) in MODULES.items():
        if path.startswith(folder + "/"):
            return name
    return None


def module_of_include(text):
    """The module an include path from a module root names ("base/result.hpp" -> base), or None."""
    first = text.split("/", 1)[0]
    return first if "/" in text and first in MODULES else None


def judge(module, used, text):
    """Returns why `module` may not use `used` through `text`, or None."""
    _, allowed, single = MODULES[module]
    if used == module or used in allowed or text in single:
        return None
    may = ", ".join(sorted(allowed | single)) or "nothing of ours"
    return f"{module} may not use {used} ({text}); it may use {may}"


def judge_library(module, text, index):
    for library, entry in LIBRARIES.items():
        if re.search(entry[index], text) and module not in entry[2]:
            return f"{module} may not use {library} ({text}); only {', '.join(sorted(entry[2]))} may"
    return None


def check_includes(path, module, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, header = match.groups()
        reason = None
        if ".." in header.split("/"):
            reason = f"include paths start at the module's root, not with .. ({header})"
        elif kind == '"':
            used = module_of_include(header)
            reason = judge(module, used, header) if used else None
        reason = reason or judge_library(module, header, 0)
        if reason:
            yield f"{path}:{number}: {reason}"


def check_links(path, module, text):
    """Every word of a CMake file that names a target of ours or a library."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[\w:+.-]+", line.split("#", 1)[0]):
            if word in LINK_WORDS:
                continue
            match = re.match(r"^bulkhead(?:::|_)(\w+)$", word)
            used = match.group(1) if match else None
            reason = judge(module, used, word) if used in MODULES else None
            if not reason and re.search(r"target_link_libraries|PUBLIC|PRIVATE|INTERFACE", line):
                reason = judge_library(module, word, 1)
            if reason:
                yield f"{path}:{number}: {reason}"


def findings_of(root, paths):
    for path in paths:
        module = module_of(path)
        name = Path(path).name
        if module is None:
            folder = str(Path(path).parent)
            known = folder == ROOT_FOLDER or not path.startswith(("daemon/", "app/", "guest-agent/"))
            if not known and path.endswith((".cpp", ".hpp")) and folder not in ("app", "guest-agent"):
                yield f"{path}:1: a folder that the table of modules does not know; add it to tests/lint/include_rules.py"
            continue
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        if path.endswith((".cpp", ".hpp", ".h")):
            yield from check_includes(path, module, text)
        elif name == "CMakeLists.txt":
            yield from check_links(path, module, text)


def prove(root):
    fixture = Path(root) / "tests/lint/fixtures/bad_tree"
    paths = sorted(str(path.relative_to(fixture)) for path in fixture.rglob("*") if path.is_file())
    found = [finding.split(" (")[0] for finding in findings_of(fixture, paths)]
    expected = [line for line in (fixture.parent / "bad_tree.expected").read_text(encoding="utf-8").splitlines()
                if line and not line.startswith("#")]
    differences = [f"not found: {line}" for line in expected if line not in found]
    differences += [f"found, not expected: {line}" for line in found if line not in expected]
    report("include_rules --prove", differences)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--prove":
        prove(sys.argv[2])
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report("include_rules", list(findings_of(sys.argv[1], source_files(sys.argv[1]))))


if __name__ == "__main__":
    main()
