#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_exports.py LIBRARY JSON [LEAST]: the shim exports each function that its table knows, under the version of its SONAME, and nothing else.

LEAST: how many the genuine library has, at least.
"""
import json
import os
import subprocess
import sys


def main(library, table, least='180'):
    node = os.path.basename(library)
    with open(table, encoding='utf-8') as file:
        wanted = {f'{f["name"]}@@{node}' for f in json.load(file)['functions']}
    lines = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout.splitlines()
    there = {line.split()[-1] for line in lines} - {node}
    for name in sorted(wanted - there):
        print(f'{node} does not export {name}')
    for name in sorted(there - wanted):
        print(f'{node} exports {name}, which is not in the table')
    soname = subprocess.run(['readelf', '-d', library], check=True, capture_output=True, text=True).stdout
    right = f'[{node}]' in soname
    if not right:
        print(f'the SONAME is not {node}')
    needed = [line.split('[')[1].rstrip(']') for line in soname.splitlines() if '(NEEDED)' in line]
    foreign = [name for name in needed if not name.startswith(('libc.so', 'libasan', 'libubsan', 'libtsan', 'ld-linux'))]
    if foreign:
        print(f'{node} needs {" ".join(foreign)}, which a program may not have')
    print(f'{len(there)} names')
    return bool(wanted != there or not right or foreign or len(there) < int(least))


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
