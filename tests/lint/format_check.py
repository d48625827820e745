#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as clang-format would write it: format_check.py ROOT [CLANG_FORMAT]. `clang-format -i FILE` mends it."""

import re
import subprocess
import sys

from sources import cpp_files, report

CHUNK = 100


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = sys.argv[1]
    program = sys.argv[2] if len(sys.argv) == 3 else "clang-format"
    paths = cpp_files(root)
    unformatted = set()
    for start in range(0, len(paths), CHUNK):
        command = [program, "--dry-run", "-Werror", *paths[start : start + CHUNK]]
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        found = set(re.findall(r"^(.+?):\d+:\d+: error: code should be clang-formatted", result.stderr, re.MULTILINE))
        if result.returncode != 0 and not found:
            sys.exit(f"{program} failed:\n{result.stderr}")
        unformatted |= found
    report("format_check", [f"{path}:1: not as clang-format writes it" for path in sorted(unformatted)])


if __name__ == "__main__":
    main()
