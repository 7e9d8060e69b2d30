# SPDX-License-Identifier: Apache-2.0
"""The devices of the soft GPU as `pytest --cuda-soft-devices` takes them: [COUNTx]CAPABILITY[:MEMORY][,...]."""

import re

DEVICES_MAX = 64
CAPABILITIES = ("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
MEMORY_MIN = 16 << 20
MEMORY_MAX = 16 << 40
_ITEM = re.compile(r"(?:([0-9]{1,4})x)?([0-9]{1,2}\.[0-9])(?::([0-9]{1,14})([KMGT]?))?", re.ASCII)
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def parse(text):
    """The value of CRICKET_SOFT_DEVICES.  ValueError: what is wrong, as one line."""
    devices = []
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        if not found:
            raise ValueError(f"'{item[:40]}' is not [COUNTx]CAPABILITY[:MEMORY]; write for example 2x9.0:4G")
        count = int(found[1] or 1)
        if not 1 <= count <= DEVICES_MAX:
            raise ValueError(f"'{item[:40]}' asks for {count} devices; ask for 1 to {DEVICES_MAX}")
        if found[2] not in CAPABILITIES:
            raise ValueError(f"'{item[:40]}': the soft GPU has no capability {found[2]}; it has {' '.join(CAPABILITIES)}")
        memory = ""
        if found[3]:
            size = int(found[3]) << _SHIFTS[found[4]]
            if not MEMORY_MIN <= size <= MEMORY_MAX:
                raise ValueError(f"'{item[:40]}': a device has 16M to 16T of memory; write for example 2x9.0:4G")
            memory = f":{found[3]}{found[4]}"
        devices += [found[2] + memory] * count
        if len(devices) > DEVICES_MAX:
            raise ValueError(f"more than {DEVICES_MAX} devices; ask for fewer")
    return ",".join(devices)
