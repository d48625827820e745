#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Owns a bus name and answers every method call with an empty reply: own_name.py NAME. Prints "owned" or the error.

A stand-in for a daemon in the tests of the bus policy, which have to run before there is a daemon, and on a machine
without D-Bus bindings. Speaks just enough of the protocol: little endian, no descriptors.
"""

import os
import re
import socket
import struct
import sys

REQUEST, REPLY, ERROR = 1, 2, 3
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE = range(1, 9)
BUS = {PATH: ("o", "/org/freedesktop/DBus"), INTERFACE: ("s", "org.freedesktop.DBus"), DESTINATION: ("s", "org.freedesktop.DBus")}


def padded(data, alignment):
    return data + b"\0" * (-len(data) % alignment)


def text(value):
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def message(kind, serial, fields, body=b""):
    array = b""
    for code, (signature, value) in fields.items():
        array = padded(array, 8) + struct.pack("<BB", code, 1) + signature.encode() + b"\0"
        if signature == "u":
            array = padded(array, 4) + struct.pack("<I", value)
        elif signature == "g":
            array += struct.pack("<B", len(value)) + value.encode() + b"\0"
        else:
            array = padded(array, 4) + text(value)
    head = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), serial, len(array)) + array
    return padded(head, 8) + body


def receive_exactly(connection, count):
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            sys.exit("the bus closed the connection")
        data += chunk
    return data


def receive(connection):
    """Returns (kind, serial, sender, body text)."""
    head = receive_exactly(connection, 16)
    _, kind, _, _, body_length, serial, array_length = struct.unpack("<cBBBIII", head)
    rest = receive_exactly(connection, array_length + (-(16 + array_length) % 8) + body_length)
    # The sender is the only field of code 7; a unique name is what it holds.
    sender = re.search(rb"\x07\x01s\0(?:....)([:.\w]+)\0", rest[:array_length], re.DOTALL)
    return kind, serial, sender.group(1).decode() if sender else "", rest[len(rest) - body_length :]


def main():
    name = sys.argv[1]
    address = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/run/dbus/system_bus_socket")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(re.match(r"unix:path=([^,;]+)", address).group(1))
    connection.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
    if not connection.recv(256).startswith(b"OK"):
        sys.exit("the bus refused the authentication")
    connection.sendall(b"BEGIN\r\n")
    connection.sendall(message(REQUEST, 1, {**BUS, MEMBER: ("s", "Hello")}))
    body = text(name)
    body = padded(body, 4) + struct.pack("<I", 4)
    connection.sendall(message(REQUEST, 2, {**BUS, MEMBER: ("s", "RequestName"), SIGNATURE: ("g", "su")}, body))
    owned = False
    serial = 2
    while True:
        kind, their_serial, sender, body = receive(connection)
        if kind == ERROR:
            print("refused:", body[4:].split(b"\0")[0].decode(), flush=True)
            return 1
        if kind == REPLY and body == struct.pack("<I", 1) and not owned:
            owned = True
            print("owned", flush=True)
        elif kind == REQUEST:
            serial += 1
            connection.sendall(message(REPLY, serial, {REPLY_SERIAL: ("u", their_serial), DESTINATION: ("s", sender)}))


if __name__ == "__main__":
    sys.exit(main())
