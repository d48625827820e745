#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one CTest suite of several build trees, so that one run has one summary.

    compose_suite.py FOLDER --whole TREE [--part TREE LABEL_REGEX NEW_LABEL]… --require LABEL…

Tests of the whole tree are taken as they are. Those of a part whose label matches are taken with the new label and a
name that starts with it; each of them is run by a ctest of its own in its tree, with all that is set for it there.
A required label without a test is an error: a suite that silently lacks a kind of test looks like one that passes.
"""

import argparse
import json
import os
import re
import subprocess
import sys


def tests_of(tree, label=None):
    command = ["ctest", "--test-dir", tree, "--show-only=json-v1"]
    if label:
        command += ["-L", label]
    listing = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for test in listing["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        yield test["name"], properties.get("LABELS", []), properties.get("TIMEOUT", 300)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def part_lines(tree, label, new_label):
    for name, _, timeout in tests_of(tree, label):
        own = name if name.startswith(new_label + ".") else f"{new_label}.{name}"
        arguments = ["ctest", "--test-dir", os.path.abspath(tree), "--output-on-failure", "--no-tests=error",
                     "-R", f"^{re.escape(name)}$"]
        yield f"add_test({quoted(own)} {' '.join(quoted(argument) for argument in arguments)})"
        yield f"set_tests_properties({quoted(own)} PROPERTIES LABELS {quoted(new_label)} TIMEOUT {int(timeout) + 30})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--whole", required=True)
    parser.add_argument("--part", nargs=3, action="append", default=[], metavar=("TREE", "LABEL", "NEW_LABEL"))
    parser.add_argument("--require", nargs="+", default=[])
    options = parser.parse_args()

    present = {label for _, labels, _ in tests_of(options.whole) for label in labels}
    lines = [f"subdirs({quoted(os.path.abspath(options.whole))})"]
    for tree, label, new_label in options.part:
        added = list(part_lines(tree, label, new_label))
        if added:
            present.add(new_label)
        lines += added
    missing = [label for label in options.require if label not in present]
    if missing:
        print(f"No test has the label {', '.join(missing)}. Each kind of test has to be there: was its folder "
              f"left out of tests/CMakeLists.txt, or is its build tree not built?", file=sys.stderr)
        return 1
    os.makedirs(options.folder, exist_ok=True)
    with open(os.path.join(options.folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as suite:
        suite.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
