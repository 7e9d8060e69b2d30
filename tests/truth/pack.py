#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins a kit's manifest and the recorder's result into the file that is kept: xz of the manifest, an empty line and the outputs.

	pack.py KIT RESULT VECTORS
	pack.py --join VECTORS MORE	adds what was recorded of some forms to what is kept, in place of what it had of them
"""
import lzma
import pathlib
import sys


def pack(kit, result, vectors):
	"""What failed is left out: its outputs are zeros."""
	told = [line.split(': ')[1] for line in pathlib.Path(result + '.txt').read_text().splitlines() if line.startswith('failed: ')]
	lines = [line for line in (pathlib.Path(kit) / 'manifest').read_text().splitlines() if line.startswith('form ') and line.split(' ', 8)[8] not in told]
	write(vectors, lines, pathlib.Path(result).read_bytes())


def write(vectors, lines, outputs):
	data = ('\n'.join(lines) + '\n\n').encode() + outputs
	filters = [{'id': lzma.FILTER_LZMA2, 'preset': 6, 'dict_size': 1 << 25}]
	pathlib.Path(vectors).write_bytes(lzma.compress(data, format=lzma.FORMAT_XZ, filters=filters))


def join(vectors, more):
	lines, outputs, places = [], bytearray(), {}
	for path in (vectors, more):
		manifest, _, data = lzma.decompress(pathlib.Path(path).read_bytes()).partition(b'\n\n')
		for line in manifest.decode().splitlines():
			places[line.split(' ', 8)[8]] = line, data
	for line, data in places.values():
		words = line.split(' ', 8)
		offset, size = int(words[3]), int(words[4])
		words[3] = str(len(outputs))
		outputs += data[offset:offset + size]
		lines.append(' '.join(words))
	write(vectors, lines, bytes(outputs))


def unpack(vectors):
	"""{form name: (key, outputs)}"""
	manifest, _, data = lzma.decompress(pathlib.Path(vectors).read_bytes()).partition(b'\n\n')
	out = {}
	for line in manifest.decode().splitlines():
		_, _, _, output, size, _, _, key, name = line.split(' ', 8)
		out[name] = (key, data[int(output):int(output) + int(size)])
	return out


if __name__ == '__main__':
	if sys.argv[1] == '--join':
		join(*sys.argv[2:4])
	else:
		pack(*sys.argv[1:4])
