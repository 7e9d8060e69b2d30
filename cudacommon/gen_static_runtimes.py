#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes static_runtimes.c: where the entry points of every known release of the static CUDA runtime lie.

usage: gen_static_runtimes.py [-o static_runtimes.c] [--check] FILE...

FILE is a wheel of NVIDIA's (nvidia_cuda_runtime-*.whl, nvidia_cuda_runtime_cu12-*.whl), VERSION=libcudart_static.a, or a sample:
VERSION@WHEEL with a wheel whose library contains the static runtime of that release (nvidia_nvjpeg_cu12-*.whl is the smallest).
A maintainer runs this when a release appears (HACKING.md); its output is committed, the archives are not.  What is kept of
them is names, distances and hashes.

The archive is one object with one .text, so the linker moves it as a whole.  Its entry points form two runs: the registration functions
("head") and the ordinary API ("tail"); every entry starts at a multiple of 16.  Wheels before 12.9 hold the shared library only.
It is made of the same objects: each run has the same distances and the same code, only the distance between the runs
and cudaGetExportTable, which lies at the very start of the head, differ.  The script proves this on all releases that hold both
and then takes the shared library's runs for the older ones.  --check does the comparison only.

In 12.3 to 12.6 the archive's functions are some bytes shorter than the shared library's, in the same order and with the same beginnings.  There a
sample gives the distances: its unwind table lists every function, and the names of a run go to the consecutive functions whose
beginnings are those of the run, which must be all of them in order.  A sample stands for every release whose shared library has the same runs.
The samples used: 12.3.101@nvjpeg 12.2.3.32, 12.4.127@12.3.1.117, 12.5.82@12.3.2.81, 12.6.77@12.3.3.54.

An entry's fixed prefix is what a linker cannot change: its instructions before the first call, long jump, or access through
rip or a segment register, 16 bytes at most.  A run is hashed (FNV-1a, 64 bits) over the prefixes of all its entries, so a run is
recognised only where every entry is what the table says.
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

SLOT = 16
PREFIX = 16
FNV_OFFSET, FNV_PRIME = 0xcbf29ce484222325, 0x100000001b3


def fnv(data):
    value = FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & 0xffffffffffffffff
    return value


class Elf:
    """Sections and function symbols of one ELF64 file."""

    def __init__(self, data):
        self.data = data
        assert data[:5] == b'\x7fELF\x02'
        shoff, = struct.unpack_from('<Q', data, 0x28)
        shentsize, shnum, shstrndx = struct.unpack_from('<HHH', data, 0x3a)
        self.sections = [struct.unpack_from('<IIQQQQIIQQ', data, shoff + i * shentsize) for i in range(shnum)]
        self.names = [self.string(shstrndx, s[0]) for s in self.sections]

    def string(self, section, offset):
        start = self.sections[section][4] + offset
        return self.data[start:self.data.index(b'\0', start)].decode()

    def functions(self, kind):
        """name -> (section, value, size) of the defined global functions in a table of type `kind` (2 symtab, 11 dynsym)."""
        result = {}
        for s in self.sections:
            if s[1] != kind:
                continue
            for offset in range(s[4], s[4] + s[5], 24):
                name, info, _other, shndx, value, size = struct.unpack_from('<IBBHQQ', self.data, offset)
                if info == 0x12 and shndx:
                    result[self.string(s[6], name)] = (shndx, value, size)
        return result

    def relocated(self, section):
        """Offsets that a relocation of the section touches."""
        result = set()
        for s in self.sections:
            if s[1] == 4 and s[7] == section:
                for offset in range(s[4], s[4] + s[5], 24):
                    result.add(struct.unpack_from('<Q', self.data, offset)[0])
        return result


def archive_member(data):
    """The only object of an ar archive."""
    offset, members = 8, []
    while offset + 60 <= len(data):
        size = int(data[offset + 48:offset + 58])
        body = data[offset + 60:offset + 60 + size]
        if body[:4] == b'\x7fELF':
            members.append(body)
        offset += 60 + size + (size & 1)
    if len(members) != 1:
        raise SystemExit('not one object in the archive (%d): its layout has changed' % len(members))
    return members[0]


UNSTABLE = re.compile(r'^(call|jmp|j[a-z]+|loop\w*|xbegin)\b|%rip|%fs|%gs')


def prefix_lengths(path, section, starts):
    """For each start address, how many bytes no linker changes."""
    command = ['objdump', '-d', '-w', '-j', section, '--insn-width=16', path]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    instructions = {}
    for line in lines:
        fields = line.split('\t')
        if len(fields) >= 3 and fields[0].endswith(':'):
            instructions[int(fields[0][:-1], 16)] = (len(fields[1].split()), fields[2])
    result = {}
    for start, size in starts.items():
        length = 0
        while length < min(PREFIX, size):
            width, text = instructions[start + length]
            mnemonic = text.split()[0]
            if UNSTABLE.search(text) and not (mnemonic.startswith('j') and width == 2):
                break
            length += width
        result[start] = min(length, PREFIX, size)
    return result


class Build:
    """One file's entry points: {name: (distance from the file's own zero, fixed prefix)}, in order."""

    def __init__(self, version, data):
        self.version = version
        self.is_archive = data[:8] == b'!<arch>\n'
        if self.is_archive:
            data = archive_member(data)
        elf = Elf(data)
        functions = {n: f for n, f in elf.functions(2 if self.is_archive else 11).items() if re.match('(__)?cuda[A-Z]', n)}
        if len({f[0] for f in functions.values()}) != 1:
            raise SystemExit('%s: the entry points lie in several sections' % version)
        section = next(iter(functions.values()))[0]
        base = elf.sections[section][4] - elf.sections[section][3]
        with tempfile.NamedTemporaryFile() as temporary:
            temporary.write(data)
            temporary.flush()
            lengths = prefix_lengths(temporary.name, elf.names[section], {v: s for _, v, s in functions.values()})
        touched = elf.relocated(section) if self.is_archive else set()
        self.entries = {}
        for name, (_, value, _) in sorted(functions.items(), key=lambda item: item[1][1]):
            prefix = data[base + value:base + value + lengths[value]]
            if value % SLOT or touched & set(range(value - 3, value + len(prefix))):
                raise SystemExit('%s: %s is not aligned or its prefix is relocated' % (version, name))
            self.entries[name] = (value, prefix)
        values = [v for v, _ in self.entries.values()] + [elf.sections[section][3] + elf.sections[section][5]]
        if any(b - a < SLOT for a, b in zip(values, values[1:])):
            raise SystemExit('%s: two entry points share a slot' % version)
        self.text = data[elf.sections[section][4]:elf.sections[section][4] + elf.sections[section][5]]
        self.head, self.tail = self.runs()

    def runs(self):
        """Splits before the first function that is neither registration nor cudaGetExportTable."""
        names = list(self.entries)
        split = next(i for i, n in enumerate(names) if not n.startswith('__') and n != 'cudaGetExportTable')
        if any(n.startswith('__') for n in names[split:]) or names[0] != 'cudaGetExportTable':
            raise SystemExit('%s: the order of the entry points has changed' % self.version)
        return names[1:split], names[split:]

    def shape(self, run):
        zero = self.entries[run[0]][0]
        return tuple((n, self.entries[n][0] - zero, self.entries[n][1]) for n in run)


class Sample:
    """The runs of a static runtime inside a stripped library, named with the help of the same release's shared library."""

    def __init__(self, shared, data):
        self.version, self.is_archive, self.shared = shared.version, False, shared
        with tempfile.NamedTemporaryFile() as temporary:
            temporary.write(data)
            temporary.flush()
            text = subprocess.run(['readelf', '-wF', temporary.name], check=True, capture_output=True, text=True).stdout
        starts = sorted({int(m.group(1), 16) for m in re.finditer(r'pc=([0-9a-f]+)\.\.', text)})
        phoff, = struct.unpack_from('<Q', data, 0x20)
        headers = [struct.unpack_from('<IIQQQQQQ', data, phoff + 56 * i) for i in range(struct.unpack_from('<H', data, 0x38)[0])]
        _, _, offset, address, _, size, _, _ = next(h for h in headers if h[0] == 1 and h[1] & 1)
        self.text = data[offset:offset + size]
        self.base = address
        self.head, self.tail = shared.head, shared.tail
        self.entries = {}
        functions = [(a, self.text[a - address:a - address + PREFIX]) for a in starts if address <= a < address + size]
        for run in (self.head, self.tail):
            prefixes = [shared.entries[n][1] for n in run]
            places = [i for i in range(len(functions) - len(run) + 1)
                      if all(functions[i + k][1].startswith(p) for k, p in enumerate(prefixes))]
            if len(places) != 1:
                raise SystemExit('%s: the sample holds the run %d times' % (self.version, len(places)))
            for k, name in enumerate(run):
                self.entries[name] = (functions[places[0] + k][0], prefixes[k])
        if any(a % SLOT for a, _ in self.entries.values()) or address % SLOT:
            raise SystemExit('%s: the sample is not aligned' % self.version)

    shape = Build.shape


def read_library(path):
    """The largest shared library in a wheel."""
    with zipfile.ZipFile(path) as wheel:
        return wheel.read(max((i for i in wheel.infolist() if re.search(r'\.so(\.\d+)*$', i.filename)), key=lambda i: i.file_size))


def read_samples(files, builds):
    shared = {b.version: b for b in builds if not b.is_archive}
    for version, path in (f.split('@', 1) for f in files if '@' in f):
        if version not in shared:
            raise SystemExit('%s: a sample needs the wheel of its release too' % version)
        yield Sample(shared[version], read_library(path))


def read_inputs(files):
    for path in files:
        if '@' in path:
            continue
        if path.endswith('.whl'):
            version = os.path.basename(path).split('-')[1]
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    if re.search(r'libcudart_static\.a$|libcudart\.so\.\d+$', name):
                        yield Build(version, wheel.read(name))
        else:
            version, path = path.split('=', 1)
            with open(path, 'rb') as archive:
                yield Build(version, archive.read())


def choose_anchors(blocks):
    """Gives every block an entry whose first 16 bytes occur at no other multiple of 16 in its release, with few distinct ones."""
    choices = []
    for block in blocks:
        counts = {}
        text = block['build'].text
        for offset in range(0, len(text), SLOT):
            counts.setdefault(text[offset:offset + SLOT], []).append(offset)
        choices.append({p for _, _, p in block['shape'] if len(p) == PREFIX and len(counts.get(p, ())) == 1})
    missing = set(range(len(blocks)))
    while missing:
        candidates = {}
        for i in sorted(missing):
            for prefix in choices[i]:
                candidates.setdefault(prefix, set()).add(i)
        if not candidates:
            raise SystemExit('no anchor for %s' % [blocks[i]['releases'] for i in missing])
        best = max(sorted(candidates), key=lambda p: len(candidates[p]))
        for i in candidates[best]:
            blocks[i]['anchor'] = best
        missing -= candidates[best]


def compare_pairs(builds):
    """What the older releases' tables rest on; returns the distance of cudaGetExportTable before the head."""
    shared = {b.version: b for b in builds if not b.is_archive}
    distances = set()
    for build in builds:
        other = shared.get(build.version)
        if not build.is_archive:
            continue
        distances.add(build.entries[build.head[0]][0] - build.entries['cudaGetExportTable'][0])
        if other is None:
            continue
        for run in ('head', 'tail'):
            if build.shape(getattr(build, run)) != other.shape(getattr(other, run)):
                raise SystemExit('%s: the %s of archive and shared library differ' % (build.version, run))
        print('%s: archive and shared library agree in %d + %d entries' % (build.version, len(build.head), len(build.tail)),
              file=sys.stderr)
    if len(distances) != 1:
        raise SystemExit('cudaGetExportTable moves: %s' % distances)
    return distances.pop()


def version_key(version):
    return [int(x) for x in version.split('.')]


def make_blocks(builds, samples):
    best = {}
    for build in builds:
        if build.version not in best or build.is_archive:
            best[build.version] = build
    for version, build in best.items():
        for sample in samples:
            if not build.is_archive and all(build.shape(getattr(build, r)) == sample.shared.shape(getattr(sample.shared, r)) for r in ('head', 'tail')):
                best[version] = sample
    blocks = {}
    for version in sorted(best, key=version_key):
        build = best[version]
        for run in ('head', 'tail'):
            shape = build.shape(getattr(build, run))
            key = (shape, version.split('.')[0])
            if key not in blocks:
                blocks[key] = {'run': run, 'releases': [], 'shape': shape, 'build': build}
            blocks[key]['releases'].append(version)
    return sorted(blocks.values(), key=lambda b: b['run'])


def wrap(items, indent='\t', width=132):
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 1 > width:
            lines.append(line.rstrip())
            line = indent
        line += item + ' '
    return '\n'.join(lines + [line.rstrip()])


def emit(builds, samples, output):
    distance = compare_pairs(builds)
    blocks = make_blocks(builds, samples)
    known = sorted((b.version for b in builds), key=version_key)
    span = known[0], known[-1]
    choose_anchors(blocks)
    order = list(dict.fromkeys(['cudaGetExportTable'] + [n for b in blocks for n, _, _ in b['shape']]))
    index = {n: i for i, n in enumerate(order)}
    fixed = dict.fromkeys(order, PREFIX)
    for block in blocks:
        for name, _, prefix in block['shape']:
            fixed[name] = min(fixed[name], len(prefix))
    # cudaGetExportTable stands alone before the head; its prefix is one value in all archives.
    export = {b.entries['cudaGetExportTable'][1][:9] for b in builds if b.is_archive}
    if len(export) != 1:
        raise SystemExit('cudaGetExportTable has several beginnings')
    out = ['/* SPDX-License-Identifier: Apache-2.0 */',
           '/*', ' * Made by gen_static_runtimes.py from NVIDIA\'s runtime archives; do not edit.  See static_runtimes.h for what it says.', ' */',
           '#include "cudacommon/static_runtimes.h"', '',
           'const unsigned ckt_static_names_count = %d;' % len(order),
           'const char ckt_static_releases[] = "%s to %s";' % tuple('.'.join(v.split('.')[:2]) for v in span),
           'const unsigned ckt_static_export_table_bytes = %d;' % distance,
           'const uint8_t ckt_static_export_table_prefix[CKT_STATIC_EXPORT_PREFIX] = {%s};'
           % ', '.join('0x%02x' % b for b in export.pop()), '',
           'const char *const ckt_static_names[] = {', wrap(['"%s",' % n for n in order]), '};', '',
           'const uint8_t ckt_static_fixed[] = {', wrap(['%d,' % fixed[n] for n in order]), '};', '']
    anchors = sorted({b['anchor'] for b in blocks})
    out += ['const unsigned ckt_static_anchors_count = %d;' % len(anchors), 'const uint64_t ckt_static_anchors[][2] = {']
    out += ['\t{0x%016x, 0x%016x},' % struct.unpack('<QQ', a) for a in anchors] + ['};', '']
    rows = []
    for number, block in enumerate(blocks):
        slots, previous = [], -SLOT
        for name, offset, _ in block['shape']:
            if (offset - previous) // SLOT > 0xffff:
                raise SystemExit('a gap is too wide')
            slots.append('{%d,%d},' % (index[name], (offset - previous) // SLOT))
            previous = offset
        out += ['/* %s of %s */' % (block['run'], ' '.join(block['releases'])),
                'static const struct ckt_static_slot slots_%d[] = {' % number, wrap(slots), '};', '']
        value = fnv(b''.join(p[:fixed[n]] for n, _, p in block['shape']))
        anchor_name, anchor_offset = next((n, o) for n, o, p in block['shape'] if p == block['anchor'])
        rows.append('\t{"%s", %s, %s, %d, 0x%x, %d, 0x%016x, slots_%d},\t/* anchor: %s */' % (
            ' '.join(block['releases']), block['releases'][0].split('.')[0], 'true' if block['run'] == 'head' else 'false',
            len(block['shape']), anchor_offset, anchors.index(block['anchor']), value, number, anchor_name))
    out += ['const unsigned ckt_static_blocks_count = %d;' % len(blocks), 'const struct ckt_static_block ckt_static_blocks[] = {'] + rows + ['};', '']
    with open(output, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out))
    print('%d names, %d blocks, %d anchors' % (len(order), len(blocks), len(anchors)), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-o', '--output', default='static_runtimes.c')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('files', nargs='+')
    arguments = parser.parse_args()
    builds = list(read_inputs(arguments.files))
    if arguments.check:
        compare_pairs(builds)
    else:
        emit(builds, list(read_samples(arguments.files, builds)), arguments.output)


if __name__ == '__main__':
    main()
