# SPDX-License-Identifier: Apache-2.0
"""Forms of a whole warp's matrices: mma of the types that forms.py has not, wmma, ldmatrix, stmatrix, movmatrix."""
import itertools

from form import Form

BITS = {'f16': 16, 'bf16': 16, 'tf32': 32, 'f32': 32, 'f64': 64, 's8': 8, 'u8': 8, 's4': 4, 'u4': 4, 'b1': 1, 's32': 32, 'e4m3': 8, 'e5m2': 8}
NEAR = {'f16': 'near16', 'bf16': 'nearb16', 'tf32': 'near32', 'f32': 'near32', 'f64': 'near64', 'e4m3': 'near43', 'e5m2': 'near52'}
WARPS = 128		# threads of a form: four matrices


def registers(rows, columns, kind):
	return max(rows * columns * BITS[kind] // (32 * (64 if kind == 'f64' else 32)), 1)


def braces(letter, first, count):
	return '{%s}' % ', '.join('%s%d' % (letter, first + k) for k in range(count))


def product(name, d, a, b, c, shape):
	"""mma: every lane brings its registers."""
	m, n, k = shape
	counts = registers(m, k, a), registers(k, n, b), registers(m, n, c)
	ins = [NEAR.get(kind, 'b32') for kind, count in zip((a, b, c), counts) for _ in range(count)]
	nd = registers(m, n, d)
	body = '%s %s, %s, %s, %s;' % (name, braces('d', 0, nd), braces('a', 0, counts[0]), braces('a', counts[0], counts[1]),
				       braces('a', counts[0] + counts[1], counts[2]))
	return Form(name, body, ['b64' if d == 'f64' else 'b32'] * nd, ins, n=WARPS)


def mma_forms():
	def name(shape, d, a, b, c, sat='', tail=''):
		return 'mma.sync.aligned.m%dn%dk%d.row.col%s.%s.%s.%s.%s%s' % (*shape, sat, d, a, b, c, tail)
	for shape, c, d in itertools.product(((16, 8, 8), (16, 8, 16)), ('f16', 'f32'), ('f16', 'f32')):
		yield product(name(shape, d, 'f16', 'f16', c), d, 'f16', 'f16', c, shape)
	for shape, a, b, sat in itertools.product(((8, 8, 16), (16, 8, 16), (16, 8, 32)), ('s8', 'u8'), ('s8', 'u8'), ('', '.satfinite')):
		if a != b:
			yield product(name(shape, 's32', a, b, 's32', sat), 's32', a, b, 's32', shape)
	for shape, a, b, sat in itertools.product(((8, 8, 32), (16, 8, 32), (16, 8, 64)), ('s4', 'u4'), ('s4', 'u4'), ('', '.satfinite')):
		yield product(name(shape, 's32', a, b, 's32', sat), 's32', a, b, 's32', shape)
	for shape, join in itertools.product(((8, 8, 128), (16, 8, 128), (16, 8, 256)), ('xor', 'and')):
		yield product(name(shape, 's32', 'b1', 'b1', 's32', '', '.%s.popc' % join), 's32', 'b1', 'b1', 's32', shape)
	for shape, a, b, c in itertools.product(((16, 8, 16), (16, 8, 32)), ('e4m3', 'e5m2'), ('e4m3', 'e5m2'), ('f16', 'f32')):
		yield product(name(shape, c, a, b, c), c, a, b, c, shape)
	for shape, mode in itertools.product(((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)), ('rn', 'rz', 'rm', 'rp')):
		yield product(name(shape, 'f64', 'f64', 'f64', 'f64', '.' + mode), 'f64', 'f64', 'f64', 'f64', shape)


# ---- wmma: through 4 KiB of shared memory for every warp, so that the fragments' own layouts, which differ, do not show.

PLACE = {'a': 0, 'b': 1024, 'c': 2048, 'd': 3072}
HEAD = '.shared .align 128 .b8 cells[16384]; .reg .b32 s, l, m, f<64>; .reg .b64 g, e<32>;'
START = ('mov.u32 s, %tid.x; shr.u32 s, s, 5; shl.b32 s, s, 12; mov.b32 m, cells; add.u32 s, s, m; mov.u32 l, %laneid; '
	 'shl.b32 l, l, {shift}; add.u32 l, l, s; ')
FRAGMENTS = {('f16', 'a'): 8, ('f16', 'b'): 8}


class Tile:
	"""One matrix in shared memory."""

	def __init__(self, which, rows, columns, kind, layout):
		self.which, self.kind, self.layout = which, kind, layout
		along, across = (columns, rows) if layout == 'row' else (rows, columns)
		self.stride = max(along, 128 // BITS[kind])
		self.bytes = self.stride * across * BITS[kind] // 8
		self.wide = kind == 'f64'
		self.words = max(self.bytes // (256 if self.wide else 128), 1)
		self.fragment = FRAGMENTS.get((kind, which), registers(rows, columns, kind))

	def registers(self, first):
		return braces('e' if self.wide else 'f', first, self.fragment)


def wmma(d, a, b, c, shape, layouts, modifiers, space='shared'):
	m, n, k = shape
	size = 'm%dn%dk%d' % shape
	tiles = Tile('a', m, k, a, layouts[0]), Tile('b', k, n, b, layouts[1]), Tile('c', m, n, c, layouts[2])
	out = Tile('d', m, n, d, layouts[2])
	wide = out.wide
	width, word = (8, 'b64') if wide else (4, 'b32')
	ins, body, first, regs = [], START.replace('{shift}', '3' if wide else '2'), 0, []
	for tile in tiles:
		for j in range(tile.words):
			body += 'st.shared.%s [l+%d], a%d; ' % (word, PLACE[tile.which] + j * 32 * width, len(ins))
			ins.append(NEAR.get(tile.kind, 'b32'))
	body += 'bar.warp.sync 0xffffffff; '
	base = 's' if space == '.shared' else 'g'
	if space != '.shared':
		body += 'cvt.u64.u32 g, s; cvta.shared.u64 g, g; '
	for tile in tiles:
		regs.append(tile.registers(first))
		first += tile.fragment
		body += 'wmma.load.%s.sync.aligned.%s.%s%s.%s %s, [%s+%d], %d; ' % (tile.which, tile.layout, size, space, tile.kind, regs[-1], base,
										 PLACE[tile.which], tile.stride)
	kinds = '%s.%s' % (d, c) if a == 'f16' else '%s.%s.%s.%s' % (d, a, b, c)
	join = ''
	if a == 'b1':
		join, modifiers = modifiers, ''
	name = 'wmma.mma%s.sync.aligned.%s.%s.%s%s.%s' % (join, layouts[0], layouts[1], size, modifiers, kinds)
	body += '%s %s, %s; ' % (name, out.registers(first), ', '.join(regs))
	body += 'wmma.store.d.sync.aligned.%s.%s%s.%s [%s+%d], %s, %d; bar.warp.sync 0xffffffff; ' % (
		layouts[2], size, space, d, base, PLACE['d'], out.registers(first), out.stride)
	body += ' '.join('ld.shared.%s d%d, [l+%d];' % (word, j, PLACE['d'] + j * 32 * width) for j in range(out.words))
	return Form('%s stored .%s%s' % (name, layouts[2], '' if space == '.shared' else ' ' + (space or 'generic')), body, [word] * out.words, ins, HEAD,
		    n=WARPS)


def wmma_forms():
	three = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
	ways = [(x, y, ('row', 'col')[(n + (n >> 1)) & 1]) for n, (x, y) in enumerate(itertools.product(('row', 'col'), repeat=2))]
	for shape, way in itertools.product(three, ways):
		for d, c in itertools.product(('f16', 'f32'), repeat=2):
			yield wmma(d, 'f16', 'f16', c, shape, way, '', '.shared')
		yield wmma('f32', 'bf16', 'bf16', 'f32', shape, way, '', '.shared')
		for kind, sat in itertools.product(('s8', 'u8'), ('', '.satfinite')):
			yield wmma('s32', kind, kind, 's32', shape, way, sat, '.shared')
	for way in ways:
		yield wmma('f32', 'tf32', 'tf32', 'f32', (16, 16, 8), way, '', '.shared')
		for mode in ('', '.rn', '.rz', '.rm', '.rp'):
			yield wmma('f64', 'f64', 'f64', 'f64', (8, 8, 4), way, mode, '.shared')
	for layout in ('row', 'col'):
		for kind, sat in itertools.product(('s4', 'u4'), ('', '.satfinite')):
			yield wmma('s32', kind, kind, 's32', (8, 8, 32), ('row', 'col', layout), sat, '.shared')
		for join in ('.xor.popc', '.and.popc'):
			yield wmma('s32', 'b1', 'b1', 's32', (8, 8, 128), ('row', 'col', layout), join, '.shared')
	yield wmma('f32', 'f16', 'f16', 'f32', (16, 16, 16), ('row', 'col', 'row'), '', '')
	yield wmma('f16', 'f16', 'f16', 'f16', (16, 16, 16), ('row', 'row', 'row'), '.satfinite', '.shared')
	yield wmma('f32', 'f16', 'f16', 'f32', (16, 16, 16), ('row', 'row', 'row'), '.satfinite', '.shared')


def eight_by_eight():
	head = '.shared .align 128 .b8 cells[2048]; .reg .b32 s, m;'
	start = 'mov.u32 s, %tid.x; shl.b32 s, s, 4; mov.b32 m, cells; add.u32 s, s, m; st.shared.v4.b32 [s], {a0, a1, a2, a3}; bar.warp.sync 0xffffffff; '
	for (x, count), trans, space in itertools.product((('x1', 1), ('x2', 2), ('x4', 4)), ('', '.trans'), ('.shared', '.shared::cta', '')):
		at = 's' if space else 'g'
		generic = '' if space else 'cvt.u64.u32 g, s; cvta.shared.u64 g, g; '
		more = '' if space else ' .reg .b64 g;'
		name = 'ldmatrix.sync.aligned.m8n8.%s%s%s.b16' % (x, trans, space)
		yield Form(name, start + generic + '%s %s, [%s];' % (name, braces('d', 0, count), at), ['b32'] * count, ['b32'] * 4, head + more, n=WARPS)
		name = 'stmatrix.sync.aligned.m8n8.%s%s%s.b16' % (x, trans, space)
		yield Form(name, start + generic + '%s [%s], %s; bar.warp.sync 0xffffffff; ld.shared.v4.b32 {d0, d1, d2, d3}, [s];'
			   % (name, at, braces('a', 4, count)), ['b32'] * 4, ['b32'] * (4 + count), head + more, n=WARPS)
	yield Form('movmatrix.sync.aligned.m8n8.trans.b16', 'movmatrix.sync.aligned.m8n8.trans.b16 d0, a0;', ['b32'], ['b32'], n=WARPS)


def more_matrix_forms():
	yield from mma_forms()
	yield from wmma_forms()
	yield from eight_by_eight()
