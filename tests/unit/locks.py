#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every mutex of the client's that is not part of an object is declared by CKT_LOCK (base/fork.h), so that a forked child gets it free."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
DECLARED = re.compile(r'\bpthread_(?:mutex|rwlock|spinlock|cond)_t\s+(\w+)\s*=')
# Whole structures, and what no mutex is: each renewed by a CKT_IN_CHILD of its file.
OTHERS = re.compile(r'PTHREAD_(?:MUTEX|RWLOCK|COND)_INITIALIZER')


def main():
    bad = 0
    for directory in ('client/conn', 'client/cuda', 'client/cudart', 'cudacommon'):
        for path in sorted((TOP / directory).rglob('*.[ch]')):
            text = path.read_text()
            mutexes = [name for line in text.splitlines() for name in DECLARED.findall(line) if 'mutex_t' in line]
            for name in mutexes:
                print(f'{path.relative_to(TOP)}: {name} is not declared by CKT_LOCK')
            others = [line for line in text.splitlines() if OTHERS.search(line) and 'CKT_LOCK' not in line]
            if others and 'CKT_IN_CHILD(' not in text and path.name != 'conn.c':
                print(f'{path.relative_to(TOP)}: {others[0].strip()} is not renewed in a child')
                bad += 1
            bad += len(mutexes)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
