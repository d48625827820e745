#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a daemon that speaks sd_notify where no systemd does it, and returns once it has said READY=1.

    run_daemon.py --log FILE --pid-file FILE [--timeout SECONDS] [--keep NAME]… -- COMMAND [ARGUMENT…]

The daemon gets its own session, the folder /, no standard input, its output in the log, and of the environment only
what --keep names. Exit status 0: ready. 1: it ended, or
said nothing in time (it is then killed); the tail of the log is printed.
"""

import argparse
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

TAIL_LINES = 30


def log_tail(path):
    with open(path, "rb") as log:
        return b"".join(log.readlines()[-TAIL_LINES:]).decode("utf-8", "backslashreplace")


def wait_ready(listener, process, deadline):
    """Returns None when the daemon is ready, else the reason why not."""
    pid_fd = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "said nothing in time"
            readable, _, _ = select.select([listener, pid_fd], [], [], left)
            if listener in readable:
                if b"READY=1" in listener.recv(4096).split(b"\n"):
                    return None
            elif pid_fd in readable:
                return f"ended with status {process.wait()}"
    finally:
        os.close(pid_fd)


def environment(kept, address):
    """What an init system would give it, so that it behaves the same whoever starts it."""
    own = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "NOTIFY_SOCKET": address,
    }
    return {**own, **{name: os.environ[name] for name in kept if name in os.environ}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", required=True)
    parser.add_argument("--pid-file", required=True)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--keep", action="append", default=[], metavar="NAME")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="bulkhead-notify.") as folder:
        address = os.path.join(folder, "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        listener.bind(address)
        with open(options.log, "ab") as log:
            process = subprocess.Popen(
                options.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd="/", env=environment(options.keep, address))
        with open(options.pid_file, "w", encoding="ascii") as pid_file:
            pid_file.write(f"{process.pid}\n")
        reason = wait_ready(listener, process, time.monotonic() + options.timeout)
    if reason is None:
        return 0
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()
    os.unlink(options.pid_file)
    print(f"{options.command[0]}: {reason}. Its log, {options.log}, ends with:", file=sys.stderr)
    print(log_tail(options.log), file=sys.stderr, end="")
    return 1


if __name__ == "__main__":
    sys.exit(main())
