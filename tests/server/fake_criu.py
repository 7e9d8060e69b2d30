#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks `criu swrk FD` as far as being asked for its version and for what the kernel can: FAKE_CRIU_VERSION, FAKE_CRIU_CHECK (0: cannot)."""
import os
import socket
import sys


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


assert sys.argv[1] == "swrk", sys.argv
sock = socket.socket(fileno=int(sys.argv[2]))
request = sock.recv(65536)
assert request[0] == 1 << 3
kind = request[1]
if kind == 10:
    version = [int(n) for n in os.environ["FAKE_CRIU_VERSION"].split(".")]
    fields = number(1, version[0]) + number(2, version[1]) + (number(4, version[2]) if len(version) > 2 else b"")
    sock.send(number(1, kind) + number(2, 1) + text(10, fields))
elif kind == 3 and os.environ.get("FAKE_CRIU_CHECK") == "0":
    sock.send(number(1, kind) + number(2, 0) + text(9, b"no such kernel feature"))
elif kind == 3:
    sock.send(number(1, kind) + number(2, 1))
