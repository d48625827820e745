#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of CONTRIBUTING.md that a regular expression can check.

    source_rules.py ROOT            checks the sources below ROOT
    source_rules.py --prove ROOT    checks that each rule finds its example in fixtures/bad_lines.txt
"""

import re
import sys
from pathlib import Path

from sources import report, source_files

MAX_LINES = 800
PRODUCT = ("daemon/", "app/", "guest-agent/")
DOCUMENTED = ("daemon/base/", "daemon/core/", "daemon/policy/", "guest-agent/protocol/")
WITH_LICENCE = (".cpp", ".hpp", ".cmake", ".py", ".sh", ".xml", ".proto", ".toml", ".sql", ".conf", ".service", "CMakeLists.txt")
TEXT = WITH_LICENCE + (".md", ".json", ".in", ".policy")
# Hosts that are names of formats and licences, or documentation addresses; nothing is fetched from them.
KNOWN_HOSTS = {"libvirt.org", "www.freedesktop.org", "www.apache.org", "keepachangelog.com", "semver.org", "localhost",
               "127.0.0.1", "mirror.example", "deb.example"}
HOST = re.compile(r"\b(?:https?|ftp)://([\w.-]+)")

# Name -> (prefixes of the files it holds in, endings, pattern, what is wrong). Each has a line in fixtures/bad_lines.txt.
LINE_RULES = {
    "marker": (PRODUCT + ("packaging/", "tests/", "cmake/"), (".cpp", ".hpp", ".py", ".sh", ".cmake", ".txt"),
               re.compile(r"\b(TODO|FIXME|XXX|HACK|STUB)\b|(?i:\bnot (yet )?implemented\b|\bunimplemented\b)"),
               "unfinished work belongs into an issue, not into the sources"),
    "skip": (("tests/",), (".cpp", ".hpp"), re.compile(r'\bQEXPECT_FAIL\s*\(|\bQSKIP\s*\((?!"[^"]*needs (root|the right))'),
             "no test is skipped: packaging/test installs what it needs and runs it as root"),
    "sleep": (("tests/unit/", "tests/dbus/"), (".cpp", ".hpp"),
              re.compile(r"\bqSleep\s*\(|\bsleep_for\s*\(|\bqWait\s*\(|(?<![\w.>])u?sleep\s*\("),
              "wait for the event, not for the time"),
    "shell": (PRODUCT, (".cpp", ".hpp"),
              re.compile(r"(?:\bstd::|(?<![\w.>:])::|(?<![\w.>:]))(system|popen)\s*\((?!\s*\))"),
              "a child process is a vector of arguments, never a shell string"),
    "shell-path": (("daemon/",), (".cpp", ".hpp"), re.compile(r'"(/usr)?/bin/(ba|da)?sh"|"(ba|da)?sh",\s*"-c"'),
                   "a child process is a vector of arguments, never a shell string"),
    "tmp": (("daemon/", "app/", "guest-agent/protocol/"), (".cpp", ".hpp"), re.compile(r'"/(var/)?tmp/'),
            "predictable names below /tmp belong to every local user"),
    "using-namespace": (PRODUCT, (".hpp",), re.compile(r"^\s*using namespace\b"), "a header opens no namespace for others"),
    "machine-path": (("",), TEXT, re.compile(r"""(?<![\w.-])/(?:work|root|home)/(?!user\b|kept\b)[\w.]+"""),
                     "a path of one machine"),
}
# An exception stands on the line itself, with its reason.
ALLOW = re.compile(r"lint-allow\(([\w-]+)\): \w.{9,}")
TYPE = re.compile(r"^(?:class|struct|enum class|enum)\s+(?:\[\[\w+\]\]\s+)?(\w+)[^;]*$")
CPP_NAME = re.compile(r"^[a-z0-9]+(_[a-z0-9]+)*\.(cpp|hpp)$")


def line_findings(path, number, line):
    allowed = ALLOW.search(line)
    for name, (prefixes, endings, pattern, text) in LINE_RULES.items():
        if allowed and allowed.group(1) == name:
            continue
        if path.startswith(prefixes) and path.endswith(endings) and pattern.search(line):
            yield f"{path}:{number}: [{name}] {text}"
    for host in HOST.findall(line):
        host = host.rstrip(".")
        # Names under these are nobody's (RFC 2606): tests need some.
        is_reserved = host.endswith((".example", ".invalid", ".test"))
        if host not in KNOWN_HOSTS and not is_reserved and path.endswith(TEXT):
            yield f"{path}:{number}: [host] names the host {host}; ours come from the host's own configuration"


def undocumented_types(path, lines):
    for index, line in enumerate(lines):
        match = TYPE.match(line)
        if not match:
            continue
        above = index - 1
        while above >= 0 and re.match(r"^(template\b|\[\[|requires\b)", lines[above]):
            above -= 1
        if above >= 0 and re.match(r"^\s*(///|\*/)", lines[above]):
            continue
        body = lines[index : index + lines[index:].index("};") if "};" in lines[index:] else index + 1]
        # A plain record may say it at its fields.
        if not any("///" in inner for inner in body):
            yield f"{path}:{index + 1}: [docs] {match.group(1)} has no /// comment (meaning, units, ownership, threading, errors)"


def file_findings(root, path):
    text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    first = "\n".join(lines[:3])
    script = text.startswith("#!")
    if (path.endswith(WITH_LICENCE) or script) and "SPDX-License-Identifier: Apache-2.0" not in first:
        yield f"{path}:1: [licence] no SPDX-License-Identifier in the first lines"
    if path.endswith((".cpp", ".hpp")):
        if not CPP_NAME.match(Path(path).name):
            yield f"{path}:1: [name] C++ files are named in snake_case"
        if path.endswith(".hpp") and "#pragma once" not in text:
            yield f"{path}:1: [guard] no #pragma once"
        if len(lines) > MAX_LINES:
            yield f"{path}:{len(lines)}: [length] {len(lines)} lines; over {MAX_LINES} is a defect"
    if path.endswith(".hpp") and path.startswith(DOCUMENTED):
        yield from undocumented_types(path, lines)
    if not path.startswith("tests/lint/") and (path.endswith(TEXT) or script):
        for number, line in enumerate(lines, 1):
            yield from line_findings(path, number, line)


def prove(root):
    """Each line of the fixture: rule, path it is to be judged as, line; the rule has to find it. With a rule `none`: no rule."""
    wrong = []
    seen = set()
    fixture = Path(root) / "tests/lint/fixtures/bad_lines.txt"
    for number, entry in enumerate(fixture.read_text(encoding="utf-8").splitlines(), 1):
        if not entry or entry.startswith("#"):
            continue
        rule, path, line = entry.split(" | ", 2)
        found = {re.search(r"\[([\w-]+)\]", finding).group(1) for finding in line_findings(path, 1, line)}
        if found != ({rule} if rule != "none" else set()):
            wrong.append(f"bad_lines.txt:{number}: expected {rule}, found {', '.join(sorted(found)) or 'none'}")
        seen.add(rule)
    wrong += [f"bad_lines.txt: no example for the rule {rule}" for rule in LINE_RULES if rule not in seen]
    report("source_rules --prove", wrong)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--prove":
        prove(sys.argv[2])
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    binary = (".png", ".qcow2", ".bin", ".zst", ".svg")
    # Inputs of tests are what they are.
    inputs = ("tests/fixtures/",)
    paths = [path for path in source_files(root)
             if not path.endswith(binary) and not path.startswith(inputs) and "/seeds/" not in path and "/corpus/" not in path]
    report("source_rules", [finding for path in paths for finding in file_findings(root, path)])


if __name__ == "__main__":
    main()
