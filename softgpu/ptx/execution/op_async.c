/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies, and the barriers in shared memory that count them.  Here a copy completes at
 * once, so only the counting remains.
 *
 * A memory barrier has 64 bits of shared memory; only one host thread touches it:
 *
 *	0-19 missing arrivals | 20-39 arrivals of a phase | 40-62 missing bytes, signed | 63 parity
 */
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

struct barrier {
	uint32_t pending, expected, parity;
	int32_t bytes;
};

static struct barrier unpack(uint64_t word)
{
	return (struct barrier){.pending = word & 0xfffff,
		.expected = word >> 20 & 0xfffff,
		.parity = (uint32_t)(word >> 63),
		.bytes = (int32_t)((int64_t)(word << 1) >> 41)};
}

static uint64_t pack(struct barrier b)
{
	return (uint64_t)(b.pending & 0xfffff) | (uint64_t)(b.expected & 0xfffff) << 20 |
		((uint64_t)(uint32_t)b.bytes & 0x7fffff) << 40 | (uint64_t)b.parity << 63;
}

static void complete(struct barrier *b)
{
	if (b->pending == 0 && b->bytes == 0) {
		b->parity ^= 1;
		b->pending = b->expected;
	}
}

bool ckt_ptx_mbarrier_complete(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t bytes)
{
	uint64_t *word = (uint64_t *)ckt_ptx_memory(
		w, lane, SP_SHARED, address, 8, CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE);
	if (!word)
		return false;
	struct barrier b = unpack(*word);
	b.bytes -= (int32_t)bytes;
	complete(&b);
	*word = pack(b);
	return true;
}

enum { MB_INIT, MB_INVAL, MB_ARRIVE, MB_ARRIVE_DROP, MB_EXPECT_TX, MB_COMPLETE_TX, MB_WAIT };
enum { MB_FLAG_EXPECT = 1, MB_FLAG_PARITY = 2, MB_FLAG_TRY = 4 };

/*
 * x: operation, y: flags, z: space; a/e/imm: address, b: count, bytes, state or parity (or none),
 * d: state or predicate (or none).
 */
HANDLER(exec_mbarrier)
{
	uint32_t passed = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t address = ckt_ptx_lane_address(w, i->a, i->e, i->imm, l);
		uint64_t *word = (uint64_t *)ckt_ptx_memory(w, l, (enum ptx_space)i->z, address, 8,
			CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE);
		if (!word)
			return RUN_FAULT;
		struct barrier b = unpack(*word);
		uint32_t n = i->b == PTX_OPERAND_NONE || i->x == MB_WAIT
			? 1
			: ((const uint32_t *)ptx_at(w, i->b))[l];
		uint64_t before = *word;
		switch (i->x) {
		case MB_INIT:
			b = (struct barrier){.pending = n, .expected = n};
			break;
		case MB_INVAL:
			b = (struct barrier){0};
			break;
		case MB_ARRIVE:
		case MB_ARRIVE_DROP:
			if (i->y & MB_FLAG_EXPECT) {
				b.bytes += (int32_t)n;
				n = 1;
			}
			b.pending -= n;
			b.expected -= i->x == MB_ARRIVE_DROP ? n : 0;
			complete(&b);
			break;
		case MB_EXPECT_TX:
			b.bytes += (int32_t)n;
			break;
		case MB_COMPLETE_TX:
			b.bytes -= (int32_t)n;
			complete(&b);
			break;
		default: {
			uint32_t parity = i->y & MB_FLAG_PARITY
				? ((const uint32_t *)ptx_at(w, i->b))[l] & 1
				: (uint32_t)(((const uint64_t *)ptx_at(w, i->b))[l] >> 63);
			passed |= (uint32_t)(b.parity != parity) << l;
			continue;
		}
		}
		*word = pack(b);
		if (i->d != PTX_OPERAND_NONE)
			((uint64_t *)ptx_at(w, i->d))[l] = before;
	}
	if (i->x != MB_WAIT)
		return RUN_NEXT;
	uint32_t *d = ptx_at(w, i->d);
	*d = (*d & ~m) | passed;
	return passed == m ? RUN_NEXT : RUN_YIELD;
}
PTX_FORM(exec_mbarrier, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_pending_count)
{
	const uint64_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = (uint32_t)(a[l] & 0xfffff););
	return RUN_NEXT;
}
PTX_FORM(exec_pending_count, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

struct copy {
	struct ptx_address to, from;
	uint32_t size;
	int32_t used, ignore;
};

/* cp.async: the bytes beyond the used source bytes become zero. */
HANDLER(exec_cp_async)
{
	const struct copy *c = i->side;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t used = c->used == PTX_OPERAND_NONE
			? c->size
			: ((const uint32_t *)ptx_at(w, c->used))[l];
		if (c->ignore != PTX_OPERAND_NONE &&
			(*(const uint32_t *)ptx_at(w, c->ignore) >> l & 1))
			used = 0;
		used = used > c->size ? c->size : used;
		uint8_t *to = ckt_ptx_memory(w, l, SP_SHARED, ckt_ptx_address_at(w, &c->to, l),
			c->size, CKT_SOFT_PAGE_WRITE);
		const uint8_t *from = used
			? ckt_ptx_memory(w, l, SP_GLOBAL, ckt_ptx_address_at(w, &c->from, l),
				  c->size, CKT_SOFT_PAGE_READ)
			: to;
		if (!to || !from)
			return RUN_FAULT;
		memmove(to, from, used);
		memset(to + used, 0, c->size - used);
	}
	return RUN_NEXT;
}

HANDLER(exec_nothing)
{
	(void)w;
	(void)i;
	(void)m;
	return RUN_NEXT;
}
PTX_FORM(exec_nothing, FORM_NOTHING, 0, 0, 0, 0, 0, NULL)

/* ---- Decoding */

static struct ptx_insn *emit_mbarrier(struct ptx_parser *p, unsigned at_operand, int32_t b,
	int32_t d, int which, int flags, enum ptx_space space)
{
	struct ptx_address address = ckt_ptx_decode_address(p, &p->raw.operands[at_operand], space);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_mbarrier);
	i->a = address.operand;
	i->e = address.bytes;
	i->imm = address.imm;
	i->b = b;
	i->d = d;
	i->x = (uint8_t)which;
	i->y = (uint8_t)flags;
	i->z = (uint8_t)address.space;
	if (address.operand == PTX_OPERAND_NONE)
		ckt_ptx_bad(p, "shared address expected");
	return i;
}

static void decode_mbarrier(struct ptx_parser *p)
{
	static const char *const kinds[] = {"init", "inval", "arrive", "arrive_drop", "expect_tx",
		"complete_tx", "test_wait", "try_wait", "pending_count", NULL};
	static const char *const advice[] = {
		"release", "acquire", "relaxed", "cta", "cluster", "noComplete", "b64", NULL};
	int kind = ckt_ptx_mod_one(p, kinds), flags = 0;
	if (kind < 0)
		ckt_ptx_bad(p, "unknown mbarrier instruction");
	while (ckt_ptx_mod_one(p, advice) >= 0)
		;
	flags |= ckt_ptx_mod(p, "parity") ? MB_FLAG_PARITY : 0;
	flags |= kind == 2 || kind == 3 ? (ckt_ptx_mod(p, "expect_tx") ? MB_FLAG_EXPECT : 0) : 0;
	enum ptx_space space = ckt_ptx_memory_space(p);
	unsigned n = p->raw.n_operands;
	if (kind == 8) {
		ckt_ptx_need_operands(p, 2, 2);
		int32_t a = ckt_ptx_source(p, 1, T_B64), d = ckt_ptx_dest(p, 0, T_B32);
		struct ptx_insn *i = ckt_ptx_emit(p, exec_pending_count);
		i->a = a;
		i->d = d;
	} else if (kind >= 6) {
		ckt_ptx_need_operands(p, 3, 4); /* a time limit may follow */
		int32_t b = ckt_ptx_source(p, 2, flags & MB_FLAG_PARITY ? T_B32 : T_B64),
			d = ckt_ptx_dest(p, 0, T_PRED);
		emit_mbarrier(p, 1, b, d, MB_WAIT, flags, space);
	} else if (kind == 2 || kind == 3) {
		bool state = n && p->raw.operands[0].kind != OP_ADDRESS;
		ckt_ptx_need_operands(p, 1 + state, 2 + state);
		int32_t b = n > 1u + state ? ckt_ptx_source(p, 1 + state, T_B32) : PTX_OPERAND_NONE;
		int32_t d = state && p->raw.operands[0].kind != OP_SINK ? ckt_ptx_dest(p, 0, T_B64)
									: PTX_OPERAND_NONE;
		emit_mbarrier(p, state, b, d, kind, flags, space);
	} else {
		ckt_ptx_need_operands(p, kind == 1 ? 1 : 2, kind == 1 ? 1 : 2);
		int32_t b = kind == 1 ? PTX_OPERAND_NONE : ckt_ptx_source(p, 1, T_B32);
		emit_mbarrier(p, 0, b, PTX_OPERAND_NONE, kind, flags, space);
	}
}

static void decode_copy(struct ptx_parser *p)
{
	struct copy *c = ckt_ptx_new(p, sizeof *c);
	bool ca = ckt_ptx_mod(p, "ca"), hint = ckt_ptx_mod(p, "L2::cache_hint");
	if (!ca && !ckt_ptx_mod(p, "cg"))
		ckt_ptx_bad(p, "unsupported asynchronous copy");
	/* legal.c does not check the order of the words */
	for (unsigned k = 1; k < p->raw.n_mods; k++)
		if (!strcmp(p->raw.mods[k - 1], "global") && !strncmp(p->raw.mods[k], "shared", 6))
			ckt_ptx_bad(p, "an asynchronous copy must write to shared memory");
	if (!ckt_ptx_mod(p, "shared") && !ckt_ptx_mod(p, "shared::cta"))
		ckt_ptx_bad(p, "unsupported asynchronous copy");
	if (!ckt_ptx_mod(p, "global"))
		ckt_ptx_bad(p, "unsupported asynchronous copy");
	ckt_ptx_mod_prefix(p, "L2::");
	if (hint && p->raw.n_operands > 3)
		p->raw.n_operands--;
	ckt_ptx_need_operands(p, 3, 4);
	const struct ptx_operand *size = &p->raw.operands[2],
				 *more = p->raw.n_operands > 3 ? &p->raw.operands[3] : NULL;
	if (size->kind != OP_CONST || (size->value != 4 && size->value != 8 && size->value != 16))
		ckt_ptx_bad(p, "4, 8 or 16 bytes expected");
	c->to = ckt_ptx_decode_address(p, &p->raw.operands[0], SP_SHARED);
	c->from = ckt_ptx_decode_address(p, &p->raw.operands[1], SP_GLOBAL);
	c->size = (uint32_t)size->value;
	c->used = c->ignore = PTX_OPERAND_NONE;
	if (more && more->kind == OP_REG && more->type == T_PRED)
		c->ignore = ckt_ptx_pred_source(p, more);
	else if (more)
		c->used = ckt_ptx_source(p, 3, T_B32);
	ckt_ptx_emit(p, exec_cp_async)->side = c;
}

static void decode_cp(struct ptx_parser *p)
{
	bool reduce = ckt_ptx_mod(p, "reduce");
	if (!ckt_ptx_mod(p, "async"))
		ckt_ptx_bad(p, ".async expected");
	if (reduce || ckt_ptx_mod(p, "bulk")) {
		if (reduce && !ckt_ptx_mod(p, "bulk"))
			ckt_ptx_bad(p, ".bulk expected");
		for (unsigned k = 0; k < p->raw.n_mods; k++)
			p->raw.mod_used[k] &= strcmp(p->raw.mods[k], "reduce") != 0;
		ckt_ptx_decode_bulk(p);
		return;
	}
	if (ckt_ptx_mod(p, "commit_group") || ckt_ptx_mod(p, "wait_group") ||
		ckt_ptx_mod(p, "wait_all")) {
		ckt_ptx_emit(p, exec_nothing);
	} else if (ckt_ptx_mod(p, "mbarrier")) {
		if (!ckt_ptx_mod(p, "arrive"))
			ckt_ptx_bad(p, ".arrive expected");
		ckt_ptx_mod(p, "b64");
		ckt_ptx_need_operands(p, 1, 1);
		/*
		 * The copies are complete.  With .noinc they count as one of the expected arrivals.
		 * Without .noinc the instruction would also expect one more arrival, so there is
		 * nothing to do.
		 */
		bool counted = ckt_ptx_mod(p, "noinc");
		enum ptx_space space = ckt_ptx_memory_space(p);
		if (counted)
			emit_mbarrier(
				p, 0, PTX_OPERAND_NONE, PTX_OPERAND_NONE, MB_ARRIVE, 0, space);
		else
			ckt_ptx_emit(p, exec_nothing);
	} else {
		decode_copy(p);
	}
}

const struct ptx_opcode ckt_ptx_opcodes_async[] = {
	{"mbarrier", decode_mbarrier}, {"cp", decode_cp}, {NULL, NULL}};
