#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that no compiler sees still parse: shell, Python, XML, JSON, TOML, links in the documents. syntax_check.py ROOT"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from sources import report, source_files


def interpreter(file):
    with file.open("rb") as opened:
        first = opened.readline()
    return first.decode("utf-8", "replace").strip() if first.startswith(b"#!") else ""


def check_shell(file, shell):
    result = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    return result.stderr.strip().splitlines()[0] if result.returncode else None


def check_parser(file, parse, errors):
    try:
        parse(file.read_text(encoding="utf-8"))
    except errors as error:
        return str(error)
    return None


def check_links(root, file):
    """Relative links of a document name files that are there."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", file.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:") and not (file.parent / target).exists():
            return f"links to {target}, which is not there"
    return None


def check(root, path):
    file = Path(root) / path
    suffix = file.suffix
    script = interpreter(file)
    if suffix == ".sh" or "bash" in script:
        if suffix != ".sh" and not file.stat().st_mode & 0o111:
            return "a script that is not executable"
        return check_shell(file, "bash")
    if script.endswith("/sh"):
        return check_shell(file, "sh")
    if suffix == ".py" or "python" in script:
        return check_parser(file, ast.parse, SyntaxError)
    if suffix in (".xml", ".ui") or "dbus/" in path and suffix == ".conf":
        return check_parser(file, ElementTree.fromstring, ElementTree.ParseError)
    if suffix == ".json":
        return check_parser(file, json.loads, ValueError)
    if suffix == ".toml":
        return check_parser(file, tomllib.loads, tomllib.TOMLDecodeError)
    if suffix == ".md":
        return check_links(root, file)
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    findings = []
    for path in source_files(root):
        # Fixtures of other tests are broken on purpose.
        if path.startswith("tests/fixtures/") or "/fixtures/" in path:
            continue
        problem = check(root, path)
        if problem:
            findings.append(f"{path}: {problem}")
    report("syntax_check", findings)


if __name__ == "__main__":
    main()
