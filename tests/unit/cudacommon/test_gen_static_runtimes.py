#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generator, run on the archive of the toolkit at hand, makes the rows that the committed table holds for that release."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

CUDACOMMON, CUDA_HOME = os.environ['CKT_CUDACOMMON'], os.environ['CKT_CUDA_HOME']
ARCHIVE = os.path.join(CUDA_HOME, 'lib64/libcudart_static.a')


def slots(text, run, row):
    """{name: distance from zero} of the block that the row of ckt_static_blocks describes."""
    names = re.findall(r'"(\w+)"', text[text.index('ckt_static_names[] = {'):text.index('ckt_static_fixed')])
    body = re.search(r'slots_%s\[\] = \{(.*?)\n\};' % row, text, re.S).group(1)
    offset, result = -1, {}
    for name, gap in re.findall(r'\{(\d+),(\d+)\}', body):
        offset += int(gap)
        result[names[int(name)]] = offset
    return result


def rows(text):
    """(releases, is_head, slots number) of every block."""
    return re.findall(r'\{"([\d. ]+)", \d+, (true|false), .*?slots_(\d+)\}', text[text.index('ckt_static_blocks[] = {'):])


@unittest.skipUnless(os.path.exists(ARCHIVE), 'no static runtime')
class Generator(unittest.TestCase):
    def generate(self, directory, *files):
        output = os.path.join(directory, 'table.c')
        subprocess.run([sys.executable, os.path.join(CUDACOMMON, 'gen_static_runtimes.py'), '-o', output, *files], check=True, stderr=subprocess.DEVNULL)
        with open(output, encoding='utf-8') as file:
            return file.read()

    def test_toolkit_is_in_the_table(self):
        with open(os.path.join(CUDACOMMON, 'static_runtimes.c'), encoding='utf-8') as file:
            committed = file.read()
        with tempfile.TemporaryDirectory() as directory:
            fresh = self.generate(directory, '13.0.0=' + ARCHIVE)
        for _, is_head, number in rows(fresh):
            made = slots(fresh, is_head, number)
            known = [slots(committed, is_head, n) for _, h, n in rows(committed) if h == is_head]
            self.assertIn(made, known, 'this toolkit\'s release is not in static_runtimes.c: run gen_static_runtimes.py with its archive')

    def test_damaged_archive_is_refused(self):
        with open(ARCHIVE, 'rb') as file:
            data = file.read()
        with tempfile.TemporaryDirectory() as directory:
            broken = os.path.join(directory, 'broken.a')
            with open(broken, 'wb') as file:
                file.write(data[:8] + data[68:])
            with self.assertRaises(subprocess.CalledProcessError):
                self.generate(directory, '13.0.0=' + broken)


if __name__ == '__main__':
    unittest.main()
