#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over product sources: tidy.py ROOT BUILD STAMPS [--seconds N] FOLDER…

A file that passed is not analysed again until it, a header of ours or .clang-tidy changes (the compiler's own dependency
output would be exact, but a hash over all headers of ours errs on the safe side). When the time is over, what is left is
named and the test passes: the next run goes on from there. Files that found something fail it.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from sources import cpp_files, source_files


def digest_of(root, paths):
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        digest.update(path.encode() + b"\0" + (Path(root) / path).read_bytes() + b"\0")
    return digest.hexdigest()


def analyse(root, build, path):
    # The dev build is GCC's: options that clang 14 does not know are no finding.
    command = ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
               "--extra-arg=-Wno-unused-command-line-argument", path]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root")
    parser.add_argument("build")
    parser.add_argument("stamps")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()

    started = time.monotonic()
    os.makedirs(options.stamps, exist_ok=True)
    database = json.loads((Path(options.build) / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {os.path.relpath(os.path.join(entry["directory"], entry["file"]), options.root) for entry in database}
    prefixes = tuple(folder.rstrip("/") + "/" for folder in options.folders)
    shared = digest_of(options.root, [path for path in source_files(options.root)
                                      if path.endswith((".hpp", ".proto")) or path == ".clang-tidy"])
    work = []
    for path in cpp_files(options.root):
        if path.endswith(".cpp") and path.startswith(prefixes) and path in compiled:
            stamp = Path(options.stamps) / f"{digest_of(options.root, [path])}.{shared}"
            if not stamp.exists():
                work.append((path, stamp))

    failed, left, analysed = [], [], 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:

        def run(item):
            if time.monotonic() - started > options.seconds:
                return item, None
            return item, analyse(options.root, options.build, item[0])

        for (path, stamp), result in pool.map(run, work):
            if result is None:
                left.append(path)
                continue
            analysed += 1
            if result.returncode == 0:
                stamp.touch()
            else:
                failed.append(path)
                print(result.stdout.strip() or result.stderr.strip())
    print(f"tidy: {analysed} analysed, {len(failed)} with findings, {len(left)} left for the next run, "
          f"{time.monotonic() - started:.0f} s")
    for path in left:
        print(f"left: {path}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
