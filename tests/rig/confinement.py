#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an escaped emulator could reach: two domains run, and a process takes the place of the first one's emulator.

AppArmor and ownership are tried apart and together. Each refusal has its control: the same open succeeds with the file's
own emulator, or unprotected.
"""

import errno
import glob
import grp
import os
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET

KVM = grp.getgrnam("kvm").gr_gid
failures = 0


class Emulator:
    def __init__(self, pid):
        self.pid = pid
        self.uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/attr/current", encoding="ascii") as label:
            self.label = label.read().strip()
        self.profile = self.label.split(" ")[0]
        uuid = self.profile.removeprefix("libvirt-")
        xml = ET.fromstring(subprocess.run(["virsh", "dumpxml", uuid], check=True, capture_output=True, text=True).stdout)
        top = [disk.find("source").get("file") for disk in xml.iter("disk")]
        self.disks = [path for path in top if path]
        self.read_only = [entry.get("file") for entry in xml.iter("entry") if entry.get("file")]
        self.sockets = [source.get("path") for source in xml.iter("source") if source.get("mode") == "bind"]
        # Of the template, and so common to both.
        self.shared = {source.get("file") for source in xml.findall(".//backingStore/source")}
        self.shared |= {xml.findtext("os/kernel"), xml.findtext("os/initrd")}


def attempt(path, mode, uid=0, profile=None):
    """Returns 0 or the errno of opening (or connecting to) `path` as `uid`, in `profile`, in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            with open("/proc/self/comm", "w", encoding="ascii") as comm:
                comm.write("rig-confined")
            os.setgroups([])
            if uid:
                os.setresgid(KVM, KVM, KVM)
                os.setresuid(uid, uid, uid)
            if profile:
                with open("/proc/self/attr/current", "w", encoding="ascii") as current:
                    current.write(f"changeprofile {profile}")
            try:
                if mode == "connect":
                    socket.socket(socket.AF_UNIX).connect(path)
                else:
                    os.open(path, mode)
                code = 0
            except OSError as error:
                code = error.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def report(text, is_good, detail=""):
    global failures
    failures += not is_good
    print(f"{'PASS' if is_good else 'FAIL'}   : {text}{'' if is_good else ': ' + detail}", flush=True)


def expect(text, wanted, attempts):
    """attempts: [(path, mode, uid, profile)]; all of them have to end with `wanted`."""
    wrong = []
    for path, mode, uid, profile in attempts:
        got = attempt(path, mode, uid, profile)
        if got != wanted:
            wrong.append(f"{path}: {errno.errorcode.get(got, got)}")
    report(f"{text} ({len(attempts)})", bool(attempts) and not wrong, ", ".join(wrong) or "nothing to try")


def files(emulator):
    return [(path, os.O_RDWR) for path in emulator.disks] + [(path, os.O_RDONLY) for path in emulator.read_only]


def main():
    # Not those that libvirt starts for a moment to ask what they can do.
    pids = subprocess.run(["pgrep", "--full", "qemu-system-x86_64 -name guest=bh-"], capture_output=True, text=True).stdout.split()
    emulators = [Emulator(pid) for pid in pids]
    report("two emulators run", len(emulators) == 2, str(pids))
    if len(emulators) != 2:
        return 1
    status = subprocess.run(["aa-status"], capture_output=True, text=True).stdout
    enforced = status.split("processes are in enforce mode")[-1].split("processes are in")[0]
    for emulator in emulators:
        is_enforced = bool(re.fullmatch(r"libvirt-[0-9a-f-]{36} \(enforce\)", emulator.label))
        report(f"the emulator of uid {emulator.uid} runs in a profile of its own, enforced",
               is_enforced and f"({emulator.pid}) {emulator.profile}" in enforced, f"{emulator.label}; aa-status:\n{enforced}")
    report("the two profiles differ", emulators[0].profile != emulators[1].profile)
    one, two = emulators
    print(f"         theirs: {' '.join(path for path, _ in files(two))}")

    expect("control: both protections together let the emulator's own files open", 0,
           [(path, mode, one.uid, one.profile) for path, mode in files(one)])
    expect("control: root opens the other domain's files", 0, [(path, mode, 0, None) for path, mode in files(two)])
    expect("control: their own emulator's uid opens them", 0, [(path, mode, two.uid, None) for path, mode in files(two)])
    expect("AppArmor alone (root in the profile) refuses the other domain's files", errno.EACCES,
           [(path, os.O_RDONLY, 0, one.profile) for path, _ in files(two)])
    expect("ownership alone (the uid, unconfined) refuses them", errno.EACCES,
           [(path, os.O_RDONLY, one.uid, None) for path, _ in files(two)])
    expect("both together refuse them", errno.EACCES, [(path, os.O_RDONLY, one.uid, one.profile) for path, _ in files(two)])

    shared = sorted(one.shared & two.shared)
    expect("control: what both have of the template opens for reading", 0, [(path, os.O_RDONLY, one.uid, one.profile) for path in shared])
    expect("AppArmor alone refuses to write to it", errno.EACCES, [(path, os.O_RDWR, 0, one.profile) for path in shared])
    expect("ownership alone refuses to write to it", errno.EACCES, [(path, os.O_RDWR, one.uid, None) for path in shared])

    private = ["/var/lib/bulkhead/bulkhead.db", "/etc/shadow"] + glob.glob("/var/lib/bulkhead/domains/*/*.toml")
    expect("control: root opens the daemon's database and the host's secrets", 0, [(path, os.O_RDONLY, 0, None) for path in private])
    expect("AppArmor alone refuses them", errno.EACCES, [(path, os.O_RDONLY, 0, one.profile) for path in private])
    expect("ownership alone refuses them", errno.EACCES, [(path, os.O_RDONLY, one.uid, None) for path in private])

    # The channel is a socket of QEMU's only where it is virtio-serial.
    if two.sockets:
        expect("both together refuse the socket of the other domain's channel", errno.EACCES,
               [(path, "connect", one.uid, one.profile) for path in two.sockets])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
