# SPDX-License-Identifier: Apache-2.0
"""Forms that threads run together or that steer them: barriers, memory barriers in shared memory, fences, clusters, calls and branches."""
import itertools

from form import Form

FEW = 128
SHARED = 'mov.u32 s, %tid.x; shl.b32 s, s, 4; mov.b32 m, cells; add.u32 s, s, m; '
CELLS = '.shared .align 16 .b8 cells[2048]; .reg .b32 s, m, r; .reg .b64 g, t, u; .reg .pred q; '


def barrier_forms():
	"""Each thread reads what another one of its block wrote."""
	other = ' xor.b32 m, s, 0x550; mov.b32 r, cells; add.u32 r, r, 0; sub.u32 m, s, r; xor.b32 m, m, 0x550; add.u32 m, m, r; ld.shared.b32 d0, [m];'
	for op in ('bar.sync 0', 'bar.sync 1, 128', 'bar.cta.sync 2', 'barrier.sync 3', 'barrier.sync.aligned 4, 128', 'barrier.cta.sync 5',
		   'barrier.cta.sync.aligned 15', 'barrier.cta.sync 6, 128'):
		yield Form(op, SHARED + 'st.shared.b32 [s], a0; %s;' % op + other, ['b32'], ['b32'], CELLS, n=FEW)
	for lead in ('bar', 'bar.cta', 'barrier', 'barrier.cta', 'barrier.cta', 'barrier.cta.red.aligned'):
		red, aligned = lead.partition('.red')[0], '.aligned' if 'aligned' in lead else ''
		for count in ('', ', 128'):
			name = '%s.red.popc%s.u32 1%s' % (red, aligned, count)
			yield Form(name, '%s.red.popc%s.u32 d0, 1%s, a0; %s.red.popc%s.u32 d1, 2%s, !a0;' % ((red, aligned, count) * 2), ['b32', 'b32'], ['pred'], n=FEW)
			for join in ('and', 'or'):
				name = '%s.red.%s%s.pred 1%s' % (red, join, aligned, count)
				yield Form(name, '%s.red.%s%s.pred d0, 1%s, a0; %s.red.%s%s.pred d1, 2%s, !a0;' % ((red, join, aligned, count) * 2), ['pred', 'pred'],
					   ['pred'], n=FEW)
				name += ' agreed'
				yield Form(name, 'mov.u32 m, %%ctaid.x; setp.eq.u32 q, m, 0; %s.red.%s%s.pred d0, 1%s, q;' % (red, join, aligned, count), ['pred'], ['b32'],
					   '.reg .b32 m; .reg .pred q;', n=256)
	for lead in ('bar', 'bar.cta', 'barrier', 'barrier.cta'):
		yield Form('%s.arrive 1, 128' % lead, SHARED + 'st.shared.b32 [s], a0; mov.u32 m, %%tid.x; setp.lt.u32 q, m, 64; @q %s.arrive 1, 128; @!q %s.sync 1, 128;'
			   ' bar.sync 0;' % (lead, lead) + other, ['b32'], ['b32'], CELLS, n=FEW)
	yield Form('bar.warp.sync', SHARED + 'st.shared.b32 [s], a0; bar.warp.sync 0xffffffff; mov.b32 r, cells; sub.u32 m, s, r; xor.b32 m, m, 0x150; '
		   'add.u32 m, m, r; ld.shared.b32 d0, [m];', ['b32'], ['b32'], CELLS, n=FEW)


def fence_forms():
	names = ['membar.' + level for level in ('cta', 'gl', 'sys')]
	names += ['fence%s.%s' % x for x in itertools.product(('', '.sc', '.acq_rel', '.acquire', '.release'), ('cta', 'cluster', 'gpu', 'sys'))]
	names += ['fence.proxy.' + kind for kind in ('alias', 'async', 'async.global', 'async.shared::cta', 'async.shared::cluster')]
	names += ['membar.proxy.alias', 'fence.mbarrier_init.release.cluster', 'fence.acquire.sync_restrict::shared::cluster.cluster',
		  'fence.release.sync_restrict::shared::cta.cluster', 'fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster',
		  'fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster', 'fence.proxy.tensormap::generic.release.gpu']
	for name in names:
		yield Form(name, 'st.global.b32 [y0], a0; %s; ld.global.b32 d0, [y0];' % name, ['b32'], ['b32'], n=FEW)
	for name in ('nanosleep.u32', ):
		yield Form(name, 'and.b32 a0, a0, 255; nanosleep.u32 a0; mov.b32 d0, a0;', ['b32'], ['b32'], n=FEW)
	for name in ('griddepcontrol.launch_dependents', 'griddepcontrol.wait', 'pmevent 3', 'pmevent.mask 5'):
		yield Form(name, '%s; mov.b32 d0, a0;' % name, ['b32'], ['b32'], n=FEW)


BARS = '.shared .align 8 .b64 bars[256]; .reg .b32 b, m, c, more; .reg .b64 st1, st2, st3, g; .reg .pred q; '
BAR = 'mov.u32 b, %tid.x; shl.b32 b, b, 3; mov.b32 m, bars; add.u32 b, b, m; and.b32 c, a0, 3; add.u32 c, c, 1; '


def mbarrier_forms():
	"""A barrier for every thread, which expects between one and four arrivals."""
	def form(name, body, outs, head=BARS, **more):
		return Form(name, BAR + body, outs, ['b32'], head, n=more.pop('n', FEW), **more)
	arrive_all = 'mbarrier.arrive.shared.b64 st2, [b], c; '
	for space in ('.shared', '.shared::cta', ''):
		at = 'b' if space else 'g'
		generic = '' if space else 'cvt.u64.u32 g, b; cvta.shared.u64 g, g; '
		start = generic + 'mbarrier.init%s.b64 [%s], c; ' % (space, at)
		for order in ('', '.release.cta', '.release.cluster', '.relaxed.cta', '.relaxed.cluster'):
			name = 'mbarrier.arrive%s%s.b64' % (order, space)
			yield form(name, start + '%s st1, [%s]; mbarrier.pending_count.b64 d0, st1; mbarrier.test_wait%s.b64 d1, [%s], st1;' % (name, at, space, at),
				   ['b32', 'pred'])
			yield form(name + ' count', start + '%s st1, [%s], c; mbarrier.pending_count.b64 d0, st1; mbarrier.test_wait%s.b64 d1, [%s], st1;'
				   % (name, at, space, at), ['b32', 'pred'])
			name = 'mbarrier.arrive_drop%s%s.b64' % (order, space)
			yield form(name, start + '%s st1, [%s]; mbarrier.test_wait%s.b64 d0, [%s], st1; sub.u32 c, c, 1; setp.ne.u32 q, c, 0; '
				   '@q mbarrier.arrive%s.b64 st1, [%s], c; mbarrier.test_wait%s.b64 d1, [%s], st1; mov.u32 d2, 9; '
				   '@q mbarrier.arrive%s.b64 st2, [%s], 1; @q mbarrier.pending_count.b64 d2, st2;' % ((name, at) + (space, at) * 4), ['pred', 'pred', 'b32'])
			name = 'mbarrier.arrive.expect_tx%s%s.b64' % (order, space)
			yield form(name, start + '%s st1, [%s], 32; setp.eq.u32 q, c, 1; sub.u32 c, c, 1; @!q mbarrier.arrive%s.b64 st2, [%s], c; '
				   'mbarrier.test_wait%s.b64 d0, [%s], st1; mbarrier.complete_tx%s.b64 [%s], 32; mbarrier.test_wait%s.b64 d1, [%s], st1;'
				   % ((name, at) + (space, at) * 4), ['pred', 'pred'])
			name = 'mbarrier.arrive_drop.expect_tx%s%s.b64' % (order, space)
			yield form(name, start + '%s st1, [%s], 32; mbarrier.test_wait%s.b64 d0, [%s], st1; mbarrier.complete_tx%s.b64 [%s], 32; '
				   'mbarrier.test_wait%s.b64 d1, [%s], st1;' % ((name, at) + (space, at) * 3), ['pred', 'pred'])
		for name in ('mbarrier.arrive.noComplete', 'mbarrier.arrive_drop.noComplete', 'mbarrier.arrive.noComplete.release.cta', 'mbarrier.arrive.release.cta.noComplete'):
			full = '%s%s.b64' % (name, space)
			yield form(full, start + 'add.u32 c, c, 1; mbarrier.inval%s.b64 [%s]; mbarrier.init%s.b64 [%s], c; %s st1, [%s], 1; '
				   'mbarrier.pending_count.b64 d0, st1; mbarrier.test_wait%s.b64 d1, [%s], st1; sub.u32 c, c, 1; mbarrier.arrive%s.b64 st2, [%s], c; '
				   'mbarrier.test_wait%s.b64 d2, [%s], st1;' % (space, at, space, at, full, at, space, at, space, at, space, at), ['b32', 'pred', 'pred'])
		for order in ('', '.relaxed.cta', '.relaxed.cluster'):
			for name in ('expect_tx', 'complete_tx'):
				full = 'mbarrier.%s%s%s.b64' % (name, order, space)
				yield form(full, start + ('%s [%s], 64; ' + ('mbarrier.complete_tx%s.b64 [%s], 64; ' if name == 'expect_tx' else 'mbarrier.expect_tx%s.b64 [%s], 64; ')
								 + 'mbarrier.arrive%s.b64 st1, [%s], c; mbarrier.test_wait%s.b64 d0, [%s], st1;')
					   % ((full, at) + (space, at) * 3), ['pred'])
		for kind, order in itertools.product(('test_wait', 'try_wait'), ('', '.acquire.cta', '.acquire.cluster', '.relaxed.cta', '.relaxed.cluster')):
			name = 'mbarrier.%s%s%s.b64' % (kind, order, space)
			hint = ', 20' if kind == 'try_wait' else ''
			for more in ('', hint) if hint else ('',):
				yield form(name + more, start + 'mbarrier.arrive%s.b64 st1, [%s]; %s d0, [%s], st1%s; setp.eq.u32 q, c, 1; sub.u32 c, c, 1; '
					   '@!q mbarrier.arrive%s.b64 st2, [%s], c; %s d1, [%s], st1%s;' % (space, at, name, at, more, space, at, name, at, more), ['pred', 'pred'])
			name = 'mbarrier.%s.parity%s%s.b64' % (kind, order, space)
			for more in ('', hint) if hint else ('',):
				yield form(name + more, start + '%s d0, [%s], 0%s; %s d1, [%s], 1%s; mbarrier.arrive%s.b64 st1, [%s], c; %s d2, [%s], 0%s; %s d3, [%s], 1%s;'
					   % (name, at, more, name, at, more, space, at, name, at, more, name, at, more), ['pred'] * 4)
		for noinc in ('', '.noinc'):
			name = 'cp.async.mbarrier.arrive%s%s.b64' % (noinc, space)
			yield form(name, start + 'cp.async.ca.shared.global [bars+1024], [y0], 4; %s [%s]; cp.async.wait_all; membar.cta; '
				   'nanosleep.u32 2000; mbarrier.test_wait.parity%s.b64 d0, [%s], 0; mbarrier.arrive%s.b64 st1, [%s]; mbarrier.pending_count.b64 d1, st1;'
				   % (name, at, space, at, space, at), ['pred', 'b32'])
		name = 'mbarrier.inval%s.b64' % space
		yield form(name, start + '%s [%s]; st.shared.b64 [b], 7; ld.shared.b64 d0, [b];' % (name, at), ['b64'])
	both = 'barrier.cluster.arrive; barrier.cluster.wait; '
	other = 'mov.u32 more, %cluster_ctarank; xor.b32 more, more, 1; mapa.shared::cluster.u32 m, b, more; '
	for name in ('mbarrier.arrive.release.cluster.shared::cluster.b64', 'mbarrier.arrive.shared::cluster.b64', 'mbarrier.arrive_drop.release.cluster.shared::cluster.b64',
		     'mbarrier.arrive.relaxed.cluster.shared::cluster.b64'):
		yield form(name, 'mbarrier.init.shared.b64 [b], c; ' + both + other + '%s _, [m], 1; ' % name + both + 'mbarrier.test_wait.parity.shared.b64 d0, [b], 0;',
			   ['pred'], entry='.reqnctapercluster 2, 1, 1', n=512)
	name = 'mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64'
	yield form(name, 'mbarrier.init.shared.b64 [b], c; ' + both + other + '%s _, [m], 8; mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [m], 8; ' % name
		   + both + 'mbarrier.test_wait.parity.shared.b64 d0, [b], 0;', ['pred'], entry='.reqnctapercluster 2, 1, 1', n=512)


def cluster_forms():
	entry, n = '.reqnctapercluster 4, 1, 1', 1024
	both = 'barrier.cluster.arrive; barrier.cluster.wait; '
	rank = 'mov.u32 r, %cluster_ctarank; add.u32 r, r, a0; and.b32 r, r, 3; '
	start = SHARED + 'st.shared.b32 [s], a0; '
	for arrive, wait in itertools.product(('', '.aligned', '.release', '.release.aligned', '.relaxed', '.relaxed.aligned'), ('', '.aligned', '.acquire', '.acquire.aligned')):
		if ('aligned' in arrive) == ('aligned' in wait):
			fence = 'fence.acq_rel.cluster; ' if 'relaxed' in arrive else ''
			yield Form('barrier.cluster.arrive%s barrier.cluster.wait%s' % (arrive, wait), start + fence + 'barrier.cluster.arrive%s; barrier.cluster.wait%s; ' % (arrive, wait)
				   + rank + 'mapa.shared::cluster.u32 m, s, r; ld.shared::cluster.b32 d0, [m]; ' + both, ['b32'], ['b32'], CELLS, entry=entry, n=n)
	near, far = 'mapa.shared::cluster.u32 m, s, r; ', 'cvt.u64.u32 g, s; cvta.shared.u64 g, g; mapa.u64 g, g, r; '
	for name, body in (
			('mapa.shared::cluster.u32', near + 'ld.shared::cluster.b32 d0, [m]; '),
			('mapa.shared::cluster.u64', 'cvt.u64.u32 g, s; mapa.shared::cluster.u64 g, g, r; ld.shared::cluster.b32 d0, [g]; '),
			('mapa.shared::cluster.u32 variable', 'mapa.shared::cluster.u32 m, cells, r; ld.shared::cluster.b32 d0, [m+16]; '),
			('mapa.u64', far + 'ld.b32 d0, [g]; '),
			('getctarank.shared::cluster.u32', near + 'getctarank.shared::cluster.u32 d0, m; '),
			('getctarank.shared::cluster.u64', 'cvt.u64.u32 g, s; mapa.shared::cluster.u64 g, g, r; getctarank.shared::cluster.u64 d0, g; '),
			('getctarank.u64', far + 'getctarank.u64 d0, g; '),
			('getctarank.shared::cluster.u32 own', 'getctarank.shared::cluster.u32 d0, s; '),
			('isspacep.shared::cluster remote', far + 'isspacep.shared::cluster q, g; selp.b32 d0, 1, 0, q; '),
			('isspacep.shared::cta remote', far + 'isspacep.shared::cta q, g; selp.b32 d0, 1, 0, q; '),
			('isspacep.shared remote', far + 'isspacep.shared q, g; selp.b32 d0, 1, 0, q; '),
			('cvta.to.shared::cluster.u64 remote', far + 'cvta.to.shared::cluster.u64 g, g; ld.shared::cluster.b32 d0, [g]; ')):
		yield Form(name, start + both + rank + body + both, ['b32'], ['b32'], CELLS, entry=entry, n=n)
	# The block reached is a permutation here, so that no two threads write one cell.
	turn = 'mov.u32 r, %cluster_ctarank; xor.b32 r, r, 1; '
	for name, body in (
			('st.shared::cluster.b32 remote', near + 'st.shared::cluster.b32 [m], a0; '),
			('st.b32 remote', far + 'st.b32 [g], a0; '),
			('st.async.shared::cluster.mbarrier::complete_tx::bytes.b32', None),
			('atom.shared::cluster.add.u32 remote', near + 'atom.shared::cluster.add.u32 d1, [m], a0; '),
			('atom.relaxed.cluster.shared::cluster.cas.b32 remote', near + 'atom.relaxed.cluster.shared::cluster.cas.b32 d1, [m], 5, a0; '),
			('atom.shared::cluster.exch.b32 remote', near + 'atom.shared::cluster.exch.b32 d1, [m], a0; '),
			('atom.add.u32 remote', far + 'atom.add.u32 d1, [g], a0; '),
			('red.shared::cluster.add.u32 remote', near + 'red.shared::cluster.add.u32 [m], a0; '),
			('red.release.cluster.shared::cluster.max.u32 remote', near + 'red.release.cluster.shared::cluster.max.u32 [m], a0; '),
			('red.add.f32 remote', far + 'red.add.f32 [g], a0; ')):
		if body:
			yield Form(name, SHARED + 'mov.b32 d1, 0; st.shared.b32 [s], 5; ' + both + turn + body + both + 'ld.shared.b32 d0, [s];', ['b32', 'b32'], ['near32'], CELLS,
				   entry=entry, n=n)
	for name in ('clusterid.x', 'clusterid.y', 'nclusterid.x', 'nclusterid.z', 'cluster_ctaid.x', 'cluster_ctaid.y', 'cluster_nctaid.x', 'cluster_nctaid.z',
		     'cluster_ctarank', 'cluster_nctarank'):
		yield Form('mov.u32 %' + name, 'mov.u32 d0, %%%s;' % name, ['b32'], ['b32'], entry=entry, n=n)
		yield Form('mov.u32 %%%s without' % name, 'mov.u32 d0, %%%s;' % name, ['b32'], ['b32'], n=256)
	yield Form('mov.pred %is_explicit_cluster', 'mov.pred d0, %is_explicit_cluster;', ['pred'], ['b32'], entry=entry, n=n)
	yield Form('mov.pred %is_explicit_cluster without', 'mov.pred d0, %is_explicit_cluster;', ['pred'], ['b32'], n=256)


def register_forms():
	for name in ('tid', 'ntid', 'ctaid', 'nctaid'):
		for axis in 'xyz':
			yield Form('mov.u32 %%%s.%s' % (name, axis), 'mov.u32 d0, %%%s.%s;' % (name, axis), ['b32'], ['b32'], n=256)
	for name in ('laneid', 'lanemask_eq', 'lanemask_le', 'lanemask_lt', 'lanemask_ge', 'lanemask_gt', 'dynamic_smem_size'):
		yield Form('mov.u32 %' + name, 'mov.u32 d0, %%%s;' % name, ['b32'], ['b32'], n=256)
	for name, t in (('clock', 'u32'), ('clock_hi', 'u32'), ('clock64', 'u64'), ('globaltimer', 'u64'), ('globaltimer_lo', 'u32'), ('globaltimer_hi', 'u32')):
		yield Form('mov.%s %%%s never back' % (t, name), 'mov.{0} c, %{1}; nanosleep.u32 100; mov.{0} e, %{1}; setp.ge.{0} d0, e, c;'.format(t, name), ['pred'], ['b32'],
			   '.reg .b%s c, e;' % t[1:], n=FEW)


def control_forms():
	func = ('.func (.param .b32 r0) twice#(.param .b32 r1) { .reg .b32 x; ld.param.b32 x, [r1]; add.u32 x, x, x; st.param.b32 [r0], x; ret; } '
		'.func (.param .b32 r0) thrice#(.param .b32 r1) { .reg .b32 x; ld.param.b32 x, [r1]; mul.lo.u32 x, x, 3; st.param.b32 [r0], x; ret; } ')
	param = ('.func (.param .b32 r0) sum#(.param .b32 r1, .param .align 8 .b8 r2[16]) { .reg .b32 x, y; .reg .b64 z; ld.param.b32 x, [r1]; ld.param.b64 z, [r2+8]; '
		 'cvt.u32.u64 y, z; add.u32 x, x, y; st.param.b32 [r0], x; ret; } ')
	deep = ('.func (.param .b32 r0) depth#(.param .b32 r1) { .reg .b32 x, y; .reg .pred q; .param .b32 i; .param .b32 o; ld.param.b32 x, [r1]; setp.eq.u32 q, x, 0; mov.b32 y, 1; '
		'@q bra OUT; sub.u32 y, x, 1; st.param.b32 [i], y; call.uni (o), depth#, (i); ld.param.b32 y, [o]; mad.lo.u32 y, y, 3, x; OUT: st.param.b32 [r0], y; ret; } ')
	yield Form('call by .reg', 'call (d0), twice#, (a0);', ['b32'], ['b32'], before='.func (.reg .b32 r0) twice#(.reg .b32 r1) { add.u32 r0, r1, r1; ret; } ', n=FEW)
	first, last, chosen = '{ .param .b32 i; .param .b32 o; st.param.b32 [i], a0; ', ' ld.param.b32 d0, [o]; }', '.reg .b64 g, h; .reg .b32 r; .reg .pred q;'
	choose = 'and.b32 r, a0, 1; setp.eq.u32 q, r, 1; mov.b64 g, twice#; mov.b64 h, thrice#; selp.b64 g, g, h, q; '
	for uni in ('', '.uni'):
		yield Form('call' + uni, first + 'call%s (o), twice#, (i);' % uni + last, ['b32'], ['b32'], before=func, n=FEW)
	yield Form('call by .param', '{ .param .b32 i; .param .align 8 .b8 j[16]; .param .b32 o; st.param.b32 [i], a0; st.param.b64 [j], a1; st.param.b64 [j+8], a1; '
		   'call (o), sum#, (i, j); ld.param.b32 d0, [o]; }', ['b32'], ['b32', 'b64'], before=param, n=FEW)
	yield Form('call indirect', choose + 'PROTO#: .callprototype (.param .b32 _) _ (.param .b32 _); ' + first + 'call (o), g, (i), PROTO#;' + last, ['b32'], ['b32'], chosen,
		   before=func, n=FEW)
	yield Form('call of a list', choose + 'LIST#: .calltargets twice#, thrice#; ' + first + 'call (o), g, (i), LIST#;' + last, ['b32'], ['b32'], chosen, before=func, n=FEW)
	yield Form('call recursive', '{ .param .b32 i; .param .b32 o; and.b32 r, a0, 7; st.param.b32 [i], r; call (o), depth#, (i); ld.param.b32 d0, [o]; }', ['b32'], ['b32'],
		   '.reg .b32 r;', before=deep, n=FEW)
	yield Form('bra', 'mov.b32 d0, a0; and.b32 r, a0, 1; setp.eq.u32 q, r, 1; @q bra ODD; shr.u32 d0, a0, 1; bra.uni OUT; ODD: mad.lo.u32 d0, a0, 3, 1; OUT:', ['b32'], ['b32'],
		   '.reg .b32 r; .reg .pred q;', n=FEW)
	yield Form('bra loop', 'and.b32 r, a0, 31; mov.b32 d0, 1; MORE: setp.eq.u32 q, r, 0; @q bra OUT; mad.lo.u32 d0, d0, 5, r; sub.u32 r, r, 1; bra MORE; OUT:', ['b32'], ['b32'],
		   '.reg .b32 r; .reg .pred q;', n=FEW)
	for uni in ('', '.uni'):
		index = 'and.b32 r, a0, 3;' if not uni else 'mov.u32 r, %ctaid.x;'
		yield Form('brx.idx' + uni, index + ' TABLE#: .branchtargets L0, L1, L2, L3; brx.idx%s r, TABLE#; L0: mov.b32 d0, 10; bra OUT; L1: mov.b32 d0, 11; bra OUT; '
			   'L2: mov.b32 d0, 12; bra OUT; L3: mov.b32 d0, 13; OUT:' % uni, ['b32'], ['b32'], '.reg .b32 r;', n=512)
	for op in ('exit', 'ret', 'ret.uni'):
		yield Form(op, 'and.b32 r, a0, 1; setp.eq.u32 q, r, 1; mov.b32 d0, a0; @q %s;' % op, ['b32'], ['b32'], '.reg .b32 r; .reg .pred q;', n=FEW)
	for t in ('u32', 'u64'):
		yield Form('alloca.' + t, 'stacksave.{0} s; alloca.{0} g, 64, 16; st.local.b32 [g+32], a0; ld.local.b32 d0, [g+32]; and.b{1} g, g, 15; cvt.u32.u{1} d1, g; '
			   'stackrestore.{0} s;'.format(t, t[1:]), ['b32', 'b32'], ['b32'], '.reg .b%s g, s;' % t[1:], n=FEW)


def sync_forms():
	for source in (barrier_forms, fence_forms, mbarrier_forms, cluster_forms, register_forms, control_forms):
		yield from source()
