# SPDX-License-Identifier: Apache-2.0
"""Forms that move memory: loads and stores of all spaces, orders and widths, address conversions, atomics by order and scope, cp.async."""
import itertools

from form import Form
from values import SIZE

FEW = 128		# threads
TYPES = ('b8', 'u8', 's8', 'b16', 'u16', 's16', 'b32', 'u32', 's32', 'f32', 'b64', 'u64', 's64', 'f64')
SHARED = 'mov.u32 s, %tid.x; shl.b32 s, s, 4; mov.b32 m, cells; add.u32 s, s, m; '
HEADS = {'.global': '', '.shared': '.shared .align 16 .b8 cells[2048];', '.local': '.local .align 16 .b8 mine[16];', '': ''}
FOUR = '{a0, a1, a2, a3}'
EVICT_FIRST = 'mov.b64 g, 0x12F0000000000000; '
BYTES = '.global .align 16 .b8 table#[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};'


def place(space):
	"""(head, start, address): 16 bytes of the thread's own in that space."""
	regs = ' .reg .b32 s, m; .reg .b64 g;'
	if space.startswith('.shared'):
		return HEADS['.shared'] + regs, SHARED, 's'
	if space == '.local':
		return HEADS['.local'] + regs, 'mov.b64 g, mine; ', 'g'
	return regs, '', 'y0'


def base(space):
	return '.shared' if space.startswith('.shared') else '' if space == '' else space


def spread(letter, first, n):
	return '%s%d' % (letter, first) if n == 1 else '{%s}' % ', '.join('%s%d' % (letter, first + k) for k in range(n))


def width_forms():
	for space, t, n in itertools.product(('.global', '.shared', '.local', ''), TYPES, (1, 2, 4)):
		size = SIZE[t]
		if size * n > 16 or (n == 1 and space == '.global'):
			continue
		head, start, at = place(space)
		reg, v = 'b%d' % max(8 * size, 16), '' if n == 1 else '.v%d' % n
		store = 'st%s.v4.b32 [%s], ' % (base(space), at)
		yield Form('ld%s%s.%s' % (space, v, t), start + store + FOUR + '; ld%s%s.%s %s, [%s];' % (space, v, t, spread('d', 0, n), at),
			   [reg] * n, ['b32'] * 4, head, n=FEW)
		yield Form('st%s%s.%s' % (space, v, t), start + store + '{0, 0, 0, 0}; st%s%s.%s [%s], %s; ld%s.v4.b32 {d0, d1, d2, d3}, [%s];'
			   % (space, v, t, at, spread('a', 0, n), base(space), at), ['b32'] * 4, [reg] * n, head, n=FEW)
	for space in ('.global', '.shared', '.local', ''):
		head, start, at = place(space)
		yield Form('ld%s.b128 st%s.b128' % (space, space), start + 'mov.b128 q, {a0, a1}; st%s.b128 [%s], q; ld%s.b128 q, [%s]; mov.b128 {d0, d1}, q;'
			   % (space, at, space, at), ['b64'] * 2, ['b64'] * 2, head + ' .reg .b128 q;', n=FEW)
	for t in TYPES:
		reg = 'b%d' % max(8 * SIZE[t], 16)
		for op in ('ldu.global', 'ld.global.nc', 'ld.global.L1::no_allocate'):
			yield Form('%s.%s' % (op, t), '%s.%s d0, [x0];' % (op, t), [reg], [reg], n=FEW)
		yield Form('ld.const.%s' % t, 'mov.b64 g, table#; and.b64 g, g, -1; ld.const.%s d0, [table#+8];' % t, [reg], ['b32'], '.reg .b64 g;',
			   before='.const .align 16 .b8 table#[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};', n=FEW)


ORDERS = ('.weak', '.volatile') + tuple('.%s.%s' % x for x in itertools.product(('relaxed', 'acquire', 'release', 'mmio.relaxed'),
										  ('cta', 'cluster', 'gpu', 'sys')))
CACHES = ('.ca', '.cg', '.cs', '.lu', '.cv', '.wb', '.wt', '.L1::evict_normal', '.L1::evict_unchanged', '.L1::evict_first', '.L1::evict_last',
	  '.L1::no_allocate', '.L2::64B', '.L2::128B', '.L2::256B')


def order_forms():
	for space, order in itertools.product(('.global', '.shared', '.shared::cta', '.shared::cluster', '.local', ''), ORDERS + CACHES):
		head, start, at = place(space)
		kept = order + space if order in ORDERS else space + order
		for t in ('u32', 'b64') if order in ORDERS else ('u32',):
			reg = 'b%d' % (8 * SIZE[t])
			zero = start + 'st%s.%s [%s], ' % (base(space), reg, at)
			yield Form('ld%s.%s' % (kept, t), zero + 'a0; ld%s.%s d0, [%s];' % (kept, t, at), [reg], [reg], head, n=FEW)
			yield Form('st%s.%s' % (kept, t), zero + '0; st%s.%s [%s], a0; ld%s.%s d0, [%s];' % (kept, t, at, base(space), reg, at), [reg], [reg],
				   head, n=FEW)
	for order, t, n in itertools.product(('.volatile', '.relaxed.gpu', '.acquire.sys', '.release.cta', '.mmio.relaxed.sys'), TYPES + ('b128',), (1, 2, 4)):
		head, start, at = place('.global')
		v, size = '' if n == 1 else '.v%d' % n, SIZE[t]
		if size * n > 16:
			continue
		reg = 'b%d' % min(max(8 * size, 16), 64)
		values, pack, unpack = (spread('d', 0, n), '', '') if t != 'b128' else ('q', 'mov.b128 q, {a0, a1}; ', ' mov.b128 {d0, d1}, q;')
		outs = [reg] * n if t != 'b128' else ['b64'] * 2
		four = ['b32'] * 4 if t != 'b128' else ['b64'] * 2
		put = 'st.global.v4.b32 [y0], {a0, a1, a2, a3};' if t != 'b128' else pack + 'st.global.b128 [y0], q;'
		if 'release' not in order:
			name = 'ld%s.global%s.%s' % (order, v, t)
			yield Form(name + ' wide', '%s %s %s, [y0];%s' % (put, name, values, unpack), outs, four, head + ' .reg .b128 q;', n=FEW)
		if 'acquire' not in order:
			name = 'st%s.global%s.%s' % (order, v, t)
			source = spread('a', 0, n) if t != 'b128' else 'q'
			yield Form(name + ' wide', '%sst.global.v4.b32 [y0], {0, 0, 0, 0}; %s [y0], %s; ld.global.v4.b32 {d0, d1, d2, d3}, [y0];' % (pack, name, source),
				   ['b32'] * 4, [reg] * n if t != 'b128' else four, head + ' .reg .b128 q;', n=FEW)
	for t in ('b32', 'u8', 's16', 'f64'):
		reg = 'b%d' % max(8 * SIZE[t], 16)
		for advice in CACHES[7:]:
			for way in ('ld.global.nc', 'ld'):
				yield Form('%s%s.%s far' % (way, advice, t), '%s%s.%s d0, [x0];' % (way, advice, t), [reg], [reg], n=FEW)
		for n in (2, 4):
			if SIZE[t] * n <= 16:
				yield Form('ld.global.nc.v%d.%s' % (n, t), 'ld.global.nc.v%d.%s %s, [table#];' % (n, t, spread('d', 0, n)), [reg] * n, ['b32'],
					   before='.global .align 16 .b8 table#[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};', n=FEW)
		yield Form('ld.volatile.const.%s' % t, 'ld.volatile.const.%s d0, [table#+8];' % t, [reg], ['b32'],
			   before='.const .align 16 .b8 table#[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};', n=FEW)
	yield Form('ld.global.nc.b128', 'ld.global.nc.b128 q, [table#]; mov.b128 {d0, d1}, q;', ['b64'] * 2, ['b32'], '.reg .b128 q;',
		   before='.global .align 16 .b8 table#[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};', n=FEW)
	yield Form('ld.param::func.b32', '{ .param .b32 i; .param .b32 o; st.param::func.b32 [i], a0; call (o), same#, (i); ld.param::func.b32 d0, [o]; }', ['b32'], ['b32'],
		   before='.func (.param .b32 r0) same#(.param .b32 r1) { .reg .b32 x; ld.param::func.b32 x, [r1]; st.param::func.b32 [r0], x; ret; }', n=FEW)
	for t, n in itertools.product(TYPES, (1, 2, 4)):
		reg, v = 'b%d' % max(8 * SIZE[t], 16), '' if n == 1 else '.v%d' % n
		for space in ('.global', '') if n > 1 else ('',):
			if SIZE[t] * n <= 16:
				yield Form('ldu%s%s.%s' % (space, v, t), ('mov.b64 g, table#; cvta.global.u64 g, g; ' if not space else '') + 'ldu%s%s.%s %s, [%s];'
					   % (space, v, t, spread('d', 0, n), 'table#' if space else 'g'), [reg] * n, ['b32'], '.reg .b64 g;', before=BYTES, n=FEW)
	for space in ('.global', ''):
		yield Form('ldu%s.b128' % space, 'mov.b64 g, table#; ldu%s.b128 q, [g]; mov.b128 {d0, d1}, q;' % space, ['b64'] * 2, ['b32'], '.reg .b128 q; .reg .b64 g;',
			   before=BYTES, n=FEW)
	policy = EVICT_FIRST
	for name, body in (
			('ld.global.L2::cache_hint.b32', '%s d0, [x0], g;'), ('ld.global.nc.L2::cache_hint.b32', '%s d0, [x0], g;'),
			('ld.L2::cache_hint.b32', '%s d0, [x0], g;'), ('st.global.L2::cache_hint.b32', '%s [y0], a0, g; ld.global.b32 d0, [y0];'),
			('atom.global.add.L2::cache_hint.u32', 'st.global.b32 [y0], 7; %s d0, [y0], a0, g;'),
			('red.global.add.L2::cache_hint.u32', 'st.global.b32 [y0], 7; %s [y0], a0, g; ld.global.b32 d0, [y0];'),
			('cp.async.ca.shared.global.L2::cache_hint', SHARED + 'st.global.b32 [y0], a0; %s [s], [y0], 4, g; cp.async.wait_all; ld.shared.b32 d0, [s];')):
		head, _, _ = place('.shared' if 'cp' in name else '')
		yield Form(name, policy + body.replace('%tid', '%%tid') % name, ['b32'], ['b32'], head, n=FEW)


def address_forms():
	kinds = ('global', 'shared', 'shared::cta', 'shared::cluster', 'local', 'const', 'param')
	head = ('.shared .align 16 .b8 cells[2048]; .local .align 16 .b8 mine[16]; .reg .b64 g; .reg .b32 s, m; .reg .b16 h;')
	before = '.const .align 16 .b8 table#[16] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6};'
	start = SHARED + 'st.shared.b32 [s], a0; st.local.b32 [mine], a0; st.global.b32 [y0], a0; '
	to = {'global': 'mov.b64 g, y0; cvta.global.u64 g, g; ', 'shared': 'cvt.u64.u32 g, s; cvta.shared.u64 g, g; ',
	      'local': 'mov.b64 g, mine; cvta.local.u64 g, g; ', 'const': 'mov.b64 g, table#; cvta.const.u64 g, g; '}
	for kind in to:
		yield Form('cvta.%s.u64' % kind, start + to[kind] + 'ld.b32 d0, [g];', ['b32'], ['b32'], head, before=before, n=FEW)
		yield Form('cvta.to.%s.u64' % kind, start + to[kind] + 'cvta.to.%s.u64 g, g; ld.%s.b32 d0, [g];' % (kind, kind), ['b32'], ['b32'], head, before=before, n=FEW)
		for which in kinds + ('param::entry',):
			yield Form('isspacep.%s of .%s' % (which, kind), start + to[kind] + 'isspacep.%s d0, g;' % which, ['pred'], ['b32'], head, before=before, n=FEW)
	for kind in ('shared::cta', 'shared::cluster'):
		yield Form('cvta.%s.u64' % kind, start + 'cvt.u64.u32 g, s; cvta.%s.u64 g, g; ld.b32 d0, [g];' % kind, ['b32'], ['b32'], head, before=before, n=FEW)
		yield Form('cvta.to.%s.u64' % kind, start + to['shared'] + 'cvta.to.%s.u64 g, g; ld.shared.b32 d0, [g];' % kind, ['b32'], ['b32'], head,
			   before=before, n=FEW)
	for op in ('prefetch.global.L1', 'prefetch.global.L2', 'prefetch.local.L1', 'prefetch.local.L2', 'prefetch.L1', 'prefetch.L2', 'prefetchu.L1',
		   'prefetch.global.L2::evict_last', 'prefetch.global.L2::evict_normal'):
		at = 'mine' if '.local' in op else 'x0'
		yield Form(op, start + '%s [%s]; ld.global.b32 d0, [x0];' % (op, at), ['b32'], ['b32'], head, before=before, n=FEW)
	yield Form('applypriority.global.L2::evict_normal', 'and.b64 g, x0, -128; applypriority.global.L2::evict_normal [g], 128; ld.global.b32 d0, [x0];',
		   ['b32'], ['b32'], '.reg .b64 g;', n=FEW)


def wrap_forms():
	"""Addresses of 32 bits below zero, which an instruction's offset brings back, and what the upper half of one of 64 bits does: nothing."""
	head, start, _ = place('.shared')
	start += 'st.shared.v4.b32 [s], {a0, a1, a2, a3}; sub.u32 m, s, 0x8000; '
	far = 'cvt.u64.u32 g, s; mov.b64 t, 0x500000000; add.u64 g, g, t; '
	def form(name, body, outs=('b32',), more=''):
		return Form(name, start + body, list(outs), ['b32'] * 4, head + ' .reg .b64 t; ' + more, n=FEW)
	for v, outs in (('', ['b32']), ('.v2', ['b32'] * 2), ('.v4', ['b32'] * 4)):
		name = 'ld.shared%s.b32' % v
		yield form(name + ' wraps', '%s %s, [m+0x8000];' % (name, spread('d', 0, len(outs))), outs)
	for t in ('u8', 's16', 'b64', 'f64'):
		yield form('ld.shared.%s wraps' % t, 'ld.shared.%s d0, [m+0x8000];' % t, ['b64' if SIZE[t] == 8 else 'b32'])
	yield form('ld.shared.b32 wraps by less', 'sub.u32 m, s, 64; sub.u32 m, m, s; add.u32 s, s, 64; ld.shared.b32 d0, [cells+0]; mov.b32 r, cells; sub.u32 r, r, 4; '
		   'ld.shared.b32 d1, [r+4]; xor.b32 d0, d0, d1;', more='.reg .b32 r; .reg .b32 d1;')
	yield form('ld.shared.b32 beyond 32 bits', 'ld.shared.b32 d0, [s+0x100000000];')
	yield form('ld.shared.b32 of 64 bits', far + 'ld.shared.b32 d0, [g];')
	yield form('ld.shared.b32 of 64 bits wraps', 'cvt.u64.u32 g, s; sub.u64 g, g, 0x8000; and.b64 g, g, 0xffffffff; ld.shared.b32 d0, [g+0x8000];')
	yield form('st.shared.b32 wraps', 'st.shared.b32 [m+0x8004], a0; ld.shared.b32 d0, [s+4];')
	yield form('st.shared.v2.b32 wraps', 'st.shared.v2.b32 [m+0x8008], {a0, a1}; ld.shared.v2.b32 {d0, d1}, [s+8];', ['b32'] * 2)
	for op, t in (('add', 'u32'), ('add', 'f32'), ('cas', 'b32'), ('exch', 'b64'), ('max', 's64'), ('add.noftz', 'f16x2')):
		reg = 'b%d' % (8 * SIZE[t])
		value = {'b32': 'a1', 'b64': 't'}[reg] + (', a2' if op == 'cas' else '')
		yield form('atom.shared.%s.%s wraps' % (op, t), 'cvt.u64.u32 t, a1; atom.shared.%s.%s d0, [m+0x8000], %s; ld.shared.%s d1, [s];' % (op, t, value, reg), [reg] * 2)
	yield form('red.shared.add.u32 wraps', 'red.shared.add.u32 [m+0x8000], a1; ld.shared.b32 d0, [s];')
	yield form('red.shared.add.u64 wraps', 'cvt.u64.u32 t, a1; red.shared.add.u64 [m+0x8000], t; ld.shared.b64 d0, [s];', ['b64'])
	yield form('cp.async.ca.shared.global wraps', 'st.global.v4.b32 [y0], {a3, a2, a1, a0}; cp.async.ca.shared.global [m+0x8000], [y0], 16; cp.async.wait_all; '
		   'ld.shared.v4.b32 {d0, d1, d2, d3}, [s];', ['b32'] * 4)
	yield form('ldmatrix.sync.aligned.m8n8.x1.shared.b16 wraps', 'bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {d0}, [m+0x8000];')
	yield form('stmatrix.sync.aligned.m8n8.x1.shared.b16 wraps', 'bar.sync 0; stmatrix.sync.aligned.m8n8.x1.shared.b16 [m+0x8000], {a1}; bar.sync 0; ld.shared.b32 d0, [s];')
	yield form('mapa.shared::cluster.u32 wraps', 'mapa.shared::cluster.u32 r, s, 0; sub.u32 r, r, 16; ld.shared::cluster.b32 d0, [r+16];', more='.reg .b32 r;')
	bars = '.shared .align 8 .b64 bars[128]; .reg .b32 b;'
	bar = 'mov.u32 b, %tid.x; shl.b32 b, b, 3; mov.b32 m, bars; add.u32 b, b, m; sub.u32 b, b, 0x8000; '
	yield form('mbarrier wraps', bar + 'mbarrier.init.shared.b64 [b+0x8000], 1; mbarrier.arrive.shared.b64 t, [b+0x8000]; mbarrier.test_wait.shared.b64 d0, [b+0x8000], t;', ['pred'], bars)
	yield form('cp.async.bulk wraps', bar + 'sub.u32 m, s, 0x8000; mbarrier.init.shared.b64 [b+0x8000], 1; st.global.v4.b32 [y0], {a3, a2, a1, a0}; fence.proxy.async; '
		   'mbarrier.arrive.expect_tx.shared.b64 t, [b+0x8000], 16; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [m+0x8000], [y0], 16, [b+0x8000]; '
		   'WAIT#: mbarrier.try_wait.parity.shared.b64 q, [b+0x8000], 0; @!q bra WAIT#; ld.shared.v4.b32 {d0, d1, d2, d3}, [s];', ['b32'] * 4, bars + ' .reg .pred q;')
	yield form('cp.async.bulk from wraps', 'fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [y0], [m+0x8000], 16; cp.async.bulk.commit_group; '
		   'cp.async.bulk.wait_group 0; fence.proxy.async; ld.global.v4.b32 {d0, d1, d2, d3}, [y0];', ['b32'] * 4)
	local = '.local .align 16 .b8 mine[32]; .reg .b32 s, m; .reg .b64 g, t;'
	own = 'mov.b64 g, mine; st.local.v4.b32 [g], {a0, a1, a2, a3}; cvt.u32.u64 s, g; sub.u32 m, s, 0x8000; '
	for name, body in (('ld.local.b32 wraps', 'ld.local.b32 d0, [m+0x8004];'), ('ld.local.b32 of 32 bits', 'ld.local.b32 d0, [s+8];'),
			   ('ld.local.b32 of 64 bits', 'mov.b64 t, 0x500000000; add.u64 g, g, t; ld.local.b32 d0, [g+4];'),
			   ('st.local.b32 wraps', 'st.local.b32 [m+0x800c], a0; ld.local.b32 d0, [g+12];'), ('mov.u32 of .local', 'mov.u32 s, mine; ld.local.b32 d0, [s+4];')):
		yield Form(name, own + body, ['b32'], ['b32'] * 4, local, n=FEW)
	const = '.const .align 16 .b32 table#[4] = {9, 8, 7, 6};'
	for name, body in (('ld.const.b32 of 32 bits', 'mov.u32 s, table#; ld.const.b32 d0, [s+8];'), ('ld.const.b32 wraps', 'mov.u32 s, table#; sub.u32 s, s, 0x8000; ld.const.b32 d0, [s+0x8004];'),
			   ('ld.const.v2.b32 wraps', 'mov.u32 s, table#; sub.u32 s, s, 8; ld.const.v2.b32 {d0, s}, [s+16];')):
		yield Form(name, body, ['b32'], ['b32'], '.reg .b32 s;', before=const, n=FEW)


def symbol_forms():
	"""A variable with an index, which counts elements, and with an offset, which counts bytes."""
	heads = {'global': '.global .align 16 .b32 table#[8] = {11, 22, 33, 44, 55, 66, 77, 88};', 'const': '.const .align 16 .b32 table#[8] = {11, 22, 33, 44, 55, 66, 77, 88};'}
	regs = '.reg .b64 g, h; .reg .b32 s, m; .reg .pred q; '
	for space, before in heads.items():
		for name, body in (('mov.u64 of %s[3]', 'mov.u64 g, table#[3]; ld.%s.b32 d0, [g];'), ('mov.b64 of %s[1+1]', 'mov.b64 g, table#[1+1]; ld.%s.b32 d0, [g+4];'),
				   ('mov.s64 of %s+8', 'mov.s64 g, table#+8; ld.%s.b32 d0, [g+4];'), ('cvta of %s[2]', 'cvta.{0}.u64 g, table#[2]; cvta.to.{0}.u64 g, g; ld.%s.b32 d0, [g];'.format(space)),
				   ('cvta of %s+12', 'cvta.{0}.u64 g, table#+12; cvta.to.{0}.u64 g, g; ld.%s.b32 d0, [g];'.format(space)), ('ld of %s[3]', 'ld.%s.b32 d0, table#[3];'),
				   ('ld.u8 of %s[3]', 'ld.%s.u8 d0, table#[3];'), ('ld.v2 of %s[2]', 'ld.%s.v2.b32 {d0, s}, table#[2];'), ('ld of %s+8', 'ld.%s.b32 d0, [table#+8];'),
				   ('ld of %s+4*3', 'ld.%s.b32 d0, [table#+4*3];'), ('ld of %s[register]', 'and.b32 s, a0, 7; ld.%s.b32 d0, table#[s];'),
				   ('ld of %s[register+1]', 'and.b32 s, a0, 3; ld.%s.b32 d0, table#[s+1];'), ('mov.u64 of %s[register]', 'and.b32 s, a0, 7; mov.u64 g, table#[s]; ld.%s.b32 d0, [g];'),
				   ('ld of %s[register of 64 bits]', 'and.b32 s, a0, 7; cvt.u64.u32 h, s; ld.%s.b32 d0, table#[h];'),
				   ('ld of %s[-1]', 'mov.u64 g, table#; mov.u64 h, table#[-1]; sub.u64 g, h, g; cvt.u32.u64 d0, g;'),
				   ('ld of %s[register below zero]', 'mov.u32 s, -1; mov.u64 g, table#; mov.u64 h, table#[s]; sub.u64 g, h, g; shr.u64 h, g, 32; cvt.u32.u64 m, h; cvt.u32.u64 d0, g; xor.b32 d0, d0, m;')):
			if space == 'global' or 'below' not in name:		# what a constant bank's address is beyond 32 bits says nothing
				yield Form(name % space, body % space if '%s' in body else body, ['b32'], ['b32'], regs, before=before, n=FEW)
	vectors = '.global .align 16 .v4 .b32 table#[2] = {{11, 22, 33, 44}, {55, 66, 77, 88}};'
	rows = '.global .align 16 .b32 table#[2][4] = {{11, 22, 33, 44}, {55, 66, 77, 88}};'
	for kind, before in (('vectors', vectors), ('rows', rows)):
		for name, body in (('mov.u64 of %s[1]', 'mov.u64 g, table#[1]; ld.global.b32 d0, [g];'), ('ld of %s[5]', 'ld.global.b32 d0, table#[5];')):
			yield Form(name % kind, body, ['b32'], ['b32'], regs, before=before, n=FEW)
	inside = '.shared .align 16 .b32 cells[512]; .local .align 16 .b32 mine[8];' + regs
	start = 'mov.u32 s, %tid.x; shl.b32 s, s, 4; mov.b32 m, cells; add.u32 s, s, m; st.shared.v4.b32 [s], {a0, a1, a2, a3}; st.local.v4.b32 [mine], {a0, a1, a2, a3}; bar.sync 0; '
	for name, body in (('mov.u32 of shared[5]', 'mov.u32 m, cells[5]; ld.shared.b32 d0, [m];'), ('mov.u64 of shared[5]', 'mov.u64 g, cells[5]; ld.shared.b32 d0, [g];'),
			   ('mov.u32 of shared+20', 'mov.u32 m, cells+20; ld.shared.b32 d0, [m];'), ('ld of shared[6]', 'ld.shared.b32 d0, cells[6];'),
			   ('ld of shared[register]', 'mov.u32 m, %tid.x; ld.shared.b32 d0, cells[m];'), ('mov.u32 of shared[register]', 'mov.u32 m, %tid.x; mov.u32 m, cells[m]; ld.shared.b32 d0, [m+4];'),
			   ('st of shared[register]', 'mov.u32 m, %tid.x; st.shared.b32 cells[m+128], a1; bar.sync 0; ld.shared.b32 d0, [s];'),
			   ('cvta of shared[5]', 'cvta.shared.u64 g, cells[5]; ld.b32 d0, [g];'), ('mov.u64 of local[2]', 'mov.u64 g, mine[2]; ld.local.b32 d0, [g];'),
			   ('mov.u32 of local+8', 'mov.u32 m, mine+8; ld.local.b32 d0, [m];'), ('ld of local[3]', 'ld.local.b32 d0, mine[3];'), ('st of local[1]', 'st.local.b32 mine[1], a3; ld.local.b32 d0, [mine+4];'),
			   ('ld of local[register]', 'and.b32 m, a0, 3; ld.local.b32 d0, mine[m];'), ('cvta of local[2]', 'cvta.local.u64 g, mine[2]; ld.b32 d0, [g];'),
			   ('add of shared+4', 'mov.u32 m, 16; add.u32 m, m, cells+4; ld.shared.b32 d0, [m];'), ('mad of shared+4', 'mov.u32 m, 2; mad.lo.u32 m, m, 8, cells+4; ld.shared.b32 d0, [m];'),
			   ('cvt of shared+4', 'cvt.u64.u32 g, cells+4; ld.shared.b32 d0, [g];'), ('selp of shared+4', 'setp.lt.u32 q, a0, 5; selp.b32 m, cells+4, cells+8, q; ld.shared.b32 d0, [m];'),
			   ('st of the address shared+4', 'st.shared.b32 [s], cells+4; ld.shared.b32 m, [s]; mov.u32 s, cells; sub.u32 d0, m, s;'),
			   ('mapa of shared[5]', 'mapa.shared::cluster.u32 m, cells[5], 0; ld.shared::cluster.b32 d0, [m];')):
		yield Form(name, start + body, ['b32'], ['b32'] * 4, inside, n=FEW)
	same = '.func (.param .b32 r0) same#(.param .b32 r1) { .reg .b32 x; ld.param.b32 x, [r1]; add.u32 x, x, 1; st.param.b32 [r0], x; ret; }'
	pointer = heads['global'] + ' .func (.param .b32 r0) get#(.param .b64 r1) { .reg .b32 x; .reg .b64 y; ld.param.b64 y, [r1]; ld.global.b32 x, [y]; st.param.b32 [r0], x; ret; }'
	yield Form('call with a constant', 'call (d0), same#, (5);', ['b32'], ['b32'], before=same, n=FEW)
	yield Form('call with a register', 'call (d0), same#, (a0);', ['b32'], ['b32'], before=same, n=FEW)
	yield Form('call with the address global+8', '{ .param .b64 i; .param .b32 o; st.param.b64 [i], table#+8; call (o), get#, (i); ld.param.b32 d0, [o]; }', ['b32'], ['b32'], before=pointer, n=FEW)
	for name, what in (('+8', 'table#+8'), ('+4+4', 'table#+4+4'), ('+2*4', 'table#+2*4'), (' generic+8', 'generic(table#)+8'), ('+-8', 'table#+-8')):
		near = 'ld.global.u64 g, [place#]; ld.global.b32 d0, [g%s];' % ('+16' if '-' in name else '')
		yield Form('initialised with global' + name, near, ['b32'], ['b32'], regs, before=heads['global'] + ' .global .u64 place#[2] = {%s, 7};' % what, n=FEW)
	yield Form('initialised with bytes of generic+4', 'ld.global.u64 g, [place#]; mov.u64 h, table#+4; sub.u64 g, h, g; cvt.u32.u64 d0, g;', ['b32'], ['b32'], regs,
		   before=heads['global'] + ' .global .align 8 .u8 place#[8] = {%s};' % ', '.join('0x%x(generic(table#)+4)' % (255 << 8 * k) for k in range(8)), n=FEW)


def atomic_order_forms():
	"""Every operation with each order and each scope once; of a few all of them."""
	typed = [(op, t) for op in ('add', 'min', 'max') for t in ('u32', 's32', 'u64', 's64', 'f32', 'f64')] + [('inc', 'u32'), ('dec', 'u32')]
	typed += [(op, t) for op in ('and', 'or', 'xor', 'exch', 'cas') for t in ('b16', 'b32', 'b64')]
	typed += [(op + '.noftz', t) for op in ('add', 'min', 'max') for t in ('f16', 'f16x2', 'bf16', 'bf16x2')]
	product = list(itertools.product(('.relaxed', '.acquire', '.release', '.acq_rel'), ('.cta', '.cluster', '.gpu', '.sys')))
	for space, (op, t) in itertools.product(('.global', '.shared', '.shared::cta', '.shared::cluster', ''), typed):
		every = (op, t) in (('add', 'u32'), ('cas', 'b64'), ('exch', 'b32'), ('add', 'f32'))
		head, start, at = place(space)
		bits = 'b%d' % (8 * SIZE[t])
		body = start.replace('%', '%%') + 'st%s.%s [%s], a0; %%s ld%s.%s d%%d, [%s];' % (base(space), bits, at, base(space), bits, at)
		for order, scope in product if every else [product[k] for k in (0, 5, 10, 15)] + [('', '.cta'), ('', '.cluster'), ('', '.sys')]:
			values = 'a1, a2' if op == 'cas' else 'a1'
			ins = [t] * (3 if op == 'cas' else 2)
			name = '%s%s%s.%s.%s' % (order, scope, space, op, t)
			yield Form('atom' + name, body % ('atom%s d0, [%s], %s;' % (name, at, values), 1), [t, t], ins, head, n=FEW)
			if op not in ('cas', 'exch'):
				yield Form('red' + name, body % ('red%s [%s], a1;' % (name, at), 0), [t], ins, head, n=FEW)
		if space.startswith('.shared::'):
			name = '%s.%s.%s' % (space, op, t)
			yield Form('atom' + name, body % ('atom%s d0, [%s], %s;' % (name, at, values), 1), [t, t], ins, head, n=FEW)
	for space, op, order in itertools.product(('.global', '.shared', ''), ('exch', 'cas'), ('', '.relaxed.gpu', '.acquire.sys', '.release.cta', '.acq_rel.cluster')):
		head, start, at = place(space)
		name = 'atom%s%s.%s.b128' % (order, space, op)
		yield Form(name, start + 'st%s.v2.b64 [%s], {a0, a1}; mov.b128 q, {a2, a3}; mov.b128 r, {a4, a5}; %s u, [%s], %s; mov.b128 {d0, d1}, u; '
			   'ld%s.v2.b64 {d2, d3}, [%s];' % (base(space), at, name, at, 'q, r' if op == 'cas' else 'q', base(space), at), ['b64'] * 4,
			   ['few64'] * 6 if op == 'cas' else ['b64'] * 6, head + ' .reg .b128 q, r, u;', n=FEW)


def atomic_vector_forms():
	for t, n, op in itertools.product(('f16', 'bf16', 'f16x2', 'bf16x2', 'f32'), (2, 4, 8), ('add', 'min', 'max')):
		if t == 'f32' and op != 'add' or SIZE[t] * n > 16:
			continue
		bits = 'b%d' % (8 * SIZE[t])
		kind = {'f16': 'f16', 'bf16': 'bf16', 'f16x2': 'f16x2', 'bf16x2': 'bf16x2', 'f32': 'near32'}[t]
		for order, space in [(order, '.global') for order in ('', '.relaxed.gpu', '.release.sys', '.acquire.cta', '.acq_rel.cluster', '.relaxed.cluster', '.cta')] + [('', '')]:
			tail = space + '.%s%s.v%d.%s' % (op, '' if t == 'f32' else '.noftz', n, t)
			half = '.v%d.%s' % (n, bits) if n < 8 else '.v4.b32'
			cells = spread('a', 0, n)
			if n == 8:		# pairs go into the registers that a store takes
				pack = ' '.join('mov.b32 w%d, {a%d, a%d};' % (k, 2 * k, 2 * k + 1) for k in range(4))
				unpack = ' '.join('mov.b32 {d%%d, d%%d}, w%d;' % k for k in range(4))
				store, load = pack + ' st.global.v4.b32 [y0], {w0, w1, w2, w3};', 'ld.global.v4.b32 {w0, w1, w2, w3}, [y0]; ' + unpack
			else:
				store, load = 'st.global%s [y0], %s;' % (half, cells), ''
			def news(first):
				if n == 8:
					return load % tuple(range(first, first + 8))
				return 'ld.global%s %s, [y0];' % (half, spread('d', first, n))
			more, regs = spread('a', n, n), '.reg .b32 w<4>;'
			yield Form('atom%s%s' % (order, tail), '%s atom%s%s %s, [y0], %s; %s' % (store, order, tail, spread('d', 0, n), more, news(n)),
				   [bits] * (2 * n), [kind] * (2 * n), regs, n=FEW)
			if order[:4] not in ('.acq',):
				yield Form('red%s%s' % (order, tail), '%s red%s%s [y0], %s; %s' % (store, order, tail, more, news(0)), [bits] * n, [kind] * (2 * n),
					   regs, n=FEW)


def copy_forms():
	head, start, at = place('.shared')
	fill = start + 'st.global.v4.b32 [y0], {a0, a1, a2, a3}; st.shared.v4.b32 [s], {-1, -1, -1, -1}; '
	after = ' ld.shared.v4.b32 {d0, d1, d2, d3}, [s];'
	waits = ('cp.async.wait_all;', 'cp.async.commit_group; cp.async.wait_group 0;')
	for (way, size), ends, advice in itertools.product((('ca', 4), ('ca', 8), ('ca', 16), ('cg', 16)), waits, ('', '.L2::64B', '.L2::128B', '.L2::256B')):
		for space in ('.shared', '.shared::cta'):
			if advice and space != '.shared':
				continue
			name = 'cp.async.%s%s.global%s' % (way, space, advice)
			wait = ' ' + ends.split(';')[0] if ends is waits[0] else ' groups'
			yield Form('%s %d%s' % (name, size, wait), fill + '%s [s], [y0], %d; %s' % (name, size, ends) + after, ['b32'] * 4, ['b32'] * 4, head, n=FEW)
	for way, size in (('ca', 4), ('ca', 8), ('ca', 16), ('cg', 16)):
		name = 'cp.async.%s.shared.global' % way
		yield Form('%s %d of fewer' % (name, size), fill + 'rem.u32 m, a0, %d; %s [s], [y0], %d, m; %s' % (size + 1, name, size, waits[0]) + after,
			   ['b32'] * 4, ['b32'] * 4, head, n=FEW)
		yield Form('%s %d or zeros' % (name, size), fill + 'and.b32 m, a0, 1; setp.eq.u32 q, m, 1; %s [s], [y0], %d, q; %s' % (name, size, waits[0]) + after,
			   ['b32'] * 4, ['b32'] * 4, head + ' .reg .pred q;', n=FEW)


def bulk_forms():
	head = ('.shared .align 128 .b8 cells[2048]; .shared .align 8 .b64 bars[128]; .reg .b32 s, m, b; .reg .b64 g, state; .reg .pred q; ')
	start = SHARED + ('mov.u32 b, %tid.x; shl.b32 b, b, 3; mov.b32 m, bars; add.u32 b, b, m; mbarrier.init.shared.b64 [b], 1; fence.proxy.async; '
			  'st.global.v4.b32 [y0], {a0, a1, a2, a3}; ')
	wait = ' WAIT#: mbarrier.try_wait.parity.shared.b64 q, [b], 0; @!q bra WAIT#; '
	expect = 'mbarrier.arrive.expect_tx.shared.b64 state, [b], 16; '
	for to in ('.shared::cluster', '.shared::cta'):
		name = 'cp.async.bulk%s.global.mbarrier::complete_tx::bytes' % to
		yield Form(name, start + 'st.shared.v4.b32 [s], {0, 0, 0, 0}; fence.proxy.async; ' + expect + name + ' [s], [y0], 16, [b];' + wait
			   + 'ld.shared.v4.b32 {d0, d1, d2, d3}, [s];', ['b32'] * 4, ['b32'] * 4, head, n=FEW)
		hinted = name + '.L2::cache_hint'
		yield Form(hinted, start + 'st.shared.v4.b32 [s], {0, 0, 0, 0}; fence.proxy.async; ' + expect + EVICT_FIRST + hinted + ' [s], [y0], 16, [b], g;' + wait
			   + 'ld.shared.v4.b32 {d0, d1, d2, d3}, [s];', ['b32'] * 4, ['b32'] * 4, head, n=FEW)
	# To the other block of a cluster, whose barrier counts it.
	both = 'barrier.cluster.arrive; barrier.cluster.wait; '
	far_head = head.replace('cells[2048]', 'cells[4096]') + '.reg .b32 far, bar, rank; '
	def far(name, kind, second):
		return Form(name, start + 'st.shared.v4.b32 [s], {a0, a1, a2, a3}; st.shared.v4.b32 [s+2048], %s; fence.proxy.async; ' % second + expect + both
			    + 'mov.u32 rank, %cluster_ctarank; xor.b32 rank, rank, 1; mapa.shared::cluster.u32 far, s, rank; mapa.shared::cluster.u32 bar, b, rank; '
			    + name + ' [far+2048], [s], 16, [bar];' + wait + both + 'ld.shared.v4.b32 {d0, d1, d2, d3}, [s+2048];', ['b32'] * 4,
			    [kind] * (4 if '0' in second else 8), far_head, entry='.reqnctapercluster 2, 1, 1', n=256)
	yield far('cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes', 'b32', '{0, 0, 0, 0}')
	ends = {'wait': 'cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;', 'wait read': 'cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; '
		'cp.async.bulk.wait_group 0;'}
	from_shared = start + 'st.global.v4.b32 [y0], {a4, a5, a6, a7}; st.shared.v4.b32 [s], {a0, a1, a2, a3}; fence.proxy.async; '
	after = ' fence.proxy.async; ld.global.v4.b32 {d0, d1, d2, d3}, [y0];'
	for which, end in ends.items():
		name = 'cp.async.bulk.global.shared::cta.bulk_group'
		yield Form('%s %s' % (name, which), from_shared + name + ' [y0], [s], 16; ' + end + after, ['b32'] * 4, ['b32'] * 8, head, n=FEW)
		name += '.L2::cache_hint'
		yield Form('%s %s' % (name, which), from_shared + EVICT_FIRST + name + ' [y0], [s], 16, g; ' + end + after, ['b32'] * 4, ['b32'] * 8, head, n=FEW)
	typed = [(op, t) for op in ('add', 'min', 'max') for t in ('u32', 's32', 'u64', 's64', 'f16', 'bf16', 'f32', 'f64')]
	typed += [(op, 'u32') for op in ('inc', 'dec')] + [(op, t) for op in ('and', 'or', 'xor') for t in ('b32', 'b64')]
	for (op, t), ftz in itertools.product(typed, ('', '.noftz')):
		kind = {'f16': 'f16x2', 'bf16': 'bf16x2', 'f32': 'near32'}.get(t, 'b32')
		name = 'cp.reduce.async.bulk.global.shared::cta.bulk_group.%s%s.%s' % (op, ftz, t)
		yield Form(name, from_shared + name + ' [y0], [s], 16; ' + ends['wait'] + after, ['b32'] * 4, [kind] * 8, head, n=FEW)
		yield far('cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s%s.%s' % (op, ftz, t), kind, '{a4, a5, a6, a7}')
		name = 'cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.%s%s.%s' % (op, ftz, t)
		yield Form(name, from_shared + EVICT_FIRST + name + ' [y0], [s], 16, g; ' + ends['wait'] + after, ['b32'] * 4, [kind] * 8, head, n=FEW)
	yield Form('cp.async.bulk.prefetch.L2.global', 'st.global.v4.b32 [y0], {a0, a1, a2, a3}; cp.async.bulk.prefetch.L2.global [y0], 16; ld.global.b32 d0, [y0];',
		   ['b32'], ['b32'] * 4, n=FEW)
	name = 'cp.async.bulk.prefetch.L2.global.L2::cache_hint'
	yield Form(name, EVICT_FIRST + 'st.global.v4.b32 [y0], {a0, a1, a2, a3}; ' + name + ' [y0], 16, g; ld.global.b32 d0, [y0];', ['b32'], ['b32'] * 4, '.reg .b64 g;', n=FEW)
	name = 'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster'
	for name, policy in ((name, ''), (name + '.L2::cache_hint', ', g')):
		yield Form(name, start + 'st.shared.v4.b32 [s], {0, 0, 0, 0}; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 state, [b], 16; ' + both
			   + (EVICT_FIRST if policy else '') + 'mov.u32 m, %cluster_ctarank; setp.eq.u32 q, m, 0; @q ' + name + ' [s], [y0], 16, [b], h' + policy + ';' + wait + both
			   + 'ld.shared.v4.b32 {d0, d1, d2, d3}, [s];', ['b32'] * 4, ['b32'] * 4, head + '.reg .b16 h; mov.b16 h, 3; ', entry='.reqnctapercluster 2, 1, 1',
			   n=512)


def memory_forms():
	for source in (width_forms, order_forms, address_forms, wrap_forms, symbol_forms, atomic_order_forms, atomic_vector_forms, copy_forms, bulk_forms):
		yield from source()
