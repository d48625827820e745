# SPDX-License-Identifier: Apache-2.0
"""What the lint tests share: the list of files, and a way to report."""

import subprocess
import sys
from pathlib import Path

FIXTURES = "tests/lint/fixtures/"


def source_files(root):
    """Paths below root, relative and sorted: what git tracks or would track, else everything but build folders."""
    root = Path(root)
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True, text=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        paths = [path for path in listing.stdout.split("\0") if path]
    else:
        paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        paths = [path for path in paths if not path.startswith(("build/", ".git/", ".cache/"))]
    return sorted({path for path in paths if (root / path).is_file() and not path.startswith(FIXTURES)})


def cpp_files(root):
    return [path for path in source_files(root) if path.endswith((".cpp", ".hpp"))]


def report(name, findings):
    """Prints the findings (file:line: text) and ends the program: 0 when there are none."""
    for finding in findings:
        print(finding)
    print(f"{name}: {len(findings)} finding{'' if len(findings) == 1 else 's'}")
    sys.exit(1 if findings else 0)
