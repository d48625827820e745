#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""changed_uid.py UID: connects to the system bus as UID, becomes root, and only then asks bulkheadd for everybody's domains.

What a caller may do follows from who made the connection. /proc would say root here, as it would for a set-uid program
that took the process over. Prints what the bus answered. Run as root; UID 0 is the control.
"""

import os
import socket
import struct
import sys


def pad(data, size):
    return data + b"\0" * (-len(data) % size)


def text(value):
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def field(code, kind, value):
    signature = kind.encode()
    return bytes([code, len(signature)]) + signature + b"\0" + value


def call(serial, destination, path, interface, member, signature="", body=b""):
    fields = [field(1, "o", text(path)), field(2, "s", text(interface)), field(3, "s", text(member)),
              field(6, "s", text(destination))]
    if signature:
        fields.append(field(8, "g", bytes([len(signature)]) + signature.encode() + b"\0"))
    array = b""
    for one in fields:
        array = pad(array, 8) + one
    header = struct.pack("<cBBBIII", b"l", 1, 0, 1, len(body), serial, len(array)) + array
    return pad(header, 8) + body


def read_reply(bus, serial):
    """The type of the reply to `serial` (2: answer, 3: error) and its bytes."""
    while True:
        start = bus.read(16)
        _, kind, _, _, body_size, _, fields_size = struct.unpack("<cBBBIII", start)
        fields = bus.read(fields_size + -fields_size % 8)
        body = bus.read(body_size)
        if kind in (2, 3) and b"\5\1u\0" + struct.pack("<I", serial) in fields:
            return kind, fields + body


def main():
    uid = int(sys.argv[1])
    connection = socket.socket(socket.AF_UNIX)
    os.setresuid(uid, uid, 0)
    connection.connect(os.environ["DBUS_SYSTEM_BUS_ADDRESS"].split("=", 1)[1])
    connection.sendall(b"\0AUTH EXTERNAL " + str(uid).encode().hex().encode() + b"\r\n")
    bus = connection.makefile("rb")
    if not bus.readline().startswith(b"OK"):
        sys.exit("the bus refused the connection")
    os.setresuid(0, 0, 0)
    connection.sendall(b"BEGIN\r\n" + call(1, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello"))
    read_reply(bus, 1)
    entry = text("all") + b"\1b\0"
    entry = pad(entry, 4) + struct.pack("<I", 1)
    body = struct.pack("<I", len(entry)) + b"\0" * 4 + entry
    connection.sendall(call(2, "org.bulkhead1", "/org/bulkhead1", "org.bulkhead1.Manager", "ListDomains", "a{sv}", body))
    kind, answer = read_reply(bus, 2)
    print("refused" if kind == 3 else "answered", answer)


main()
