#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No symbol above a version of glibc, so that what we ship runs on the clusters people have.

usage: check_glibc.py [--ceiling 2.34] FILE|DIRECTORY...
Directories are walked; what is not ELF is passed over, but a FILE named must be ELF.  Prints what is above; exit status 1 then.
"""
import argparse
import os
import re
import subprocess
import sys


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def versions(path):
    """The (file, version) pairs of the version needs section, and the symbols that ask for each."""
    text = subprocess.run(['readelf', '-W', '--dyn-syms', path], check=True, capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'}).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == 'UND' and '@GLIBC_' in fields[7]:
            name, version = re.match(r'(\S+?)@+GLIBC_(\S+)', fields[7]).groups()
            yield name, version
    needs = subprocess.run(['readelf', '-W', '-V', path], check=True, capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'}).stdout
    for version in re.findall(r'Name: GLIBC_(\S+)', needs):
        yield '(version needs)', version


def key(version):
    # GLIBC_PRIVATE is above everything: it is nobody's to use.
    return tuple(int(x) for x in version.split('.')) if version[0].isdigit() else (0,) if version == 'ABI_DT_RELR' else (999,)


def check(path, ceiling):
    return sorted({(name, version) for name, version in versions(path) if key(version) > ceiling})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ceiling', default='2.34')
    parser.add_argument('paths', nargs='+')
    arguments = parser.parse_args()
    files = []
    for path in arguments.paths:
        if os.path.isdir(path):
            files += [os.path.join(d, n) for d, _, names in os.walk(path) for n in names if is_elf(os.path.join(d, n))]
        elif is_elf(os.path.realpath(path)):
            files.append(os.path.realpath(path))
        else:
            sys.exit('%s: not an ELF file' % path)
    bad = [(f, n, v) for f in files for n, v in check(f, key(arguments.ceiling))]
    for path, name, version in bad:
        print('%s: %s needs GLIBC_%s' % (path, name, version))
    print('%d files, %s' % (len(files), 'above GLIBC_%s: %d' % (arguments.ceiling, len(bad)) if bad else 'none above GLIBC_' + arguments.ceiling))
    sys.exit(1 if bad or not files else 0)


if __name__ == '__main__':
    main()
