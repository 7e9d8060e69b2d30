/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters of blocks: their barrier, addresses in each other's shared memory, and the bulk copies
 * that mostly use such addresses.
 *
 * One host thread runs all blocks of a cluster, so nothing here needs a lock.  A bulk copy
 * completes at once; it only subtracts its bytes from the memory barrier that counts them.
 */
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

HANDLER(exec_arrive)
{
	(void)i;
	w->cluster_arrived |= m;
	w->block->cluster->arrived = true;
	ckt_ptx_cluster_check(w->block->cluster);
	return RUN_NEXT;
}

/* A lane that is still marked as arrived is in an unfinished phase, so it tries again. */
HANDLER(exec_wait)
{
	(void)i;
	if (!(w->cluster_arrived & m))
		return RUN_NEXT;
	w->pc--;
	return RUN_YIELD;
}

void ckt_ptx_decode_cluster_barrier(struct ptx_parser *p)
{
	static const char *const kinds[] = {"arrive", "wait", NULL},
				 *const advice[] = {
					 "release", "relaxed", "acquire", "aligned", NULL};
	int kind = ckt_ptx_mod_one(p, kinds);
	if (kind < 0)
		ckt_ptx_bad(p, ".arrive or .wait expected");
	while (ckt_ptx_mod_one(p, advice) >= 0)
		;
	ckt_ptx_need_operands(p, 0, 0);
	ckt_ptx_emit(p, kind ? exec_wait : exec_arrive);
}

/* x: 1 for a generic address; y: bytes of the address. */
HANDLER(exec_mapa)
{
	const uint32_t *rank = ptx_at(w, i->b);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t a = i->y == 8 ? ((const uint64_t *)ptx_at(w, i->a))[l]
				       : ((const uint32_t *)ptx_at(w, i->a))[l];
		uint64_t v = (a & (PTX_SHARED_MAX - 1)) | (uint64_t)((rank[l] & 0x7f) + 1) << 24 |
			(i->x ? PTX_SHARED_WINDOW : 0);
		if (i->y == 8)
			((uint64_t *)ptx_at(w, i->d))[l] = v;
		else
			((uint32_t *)ptx_at(w, i->d))[l] = (uint32_t)v;
	}
	return RUN_NEXT;
}

HANDLER(exec_getctarank)
{
	uint32_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t a = i->y == 8 ? ((const uint64_t *)ptx_at(w, i->a))[l]
				       : ((const uint32_t *)ptx_at(w, i->a))[l];
		d[l] = a >> 24 & 0xff ? (uint32_t)(a >> 24 & 0xff) - 1 : w->block->rank;
	}
	return RUN_NEXT;
}

static void decode_mapa(struct ptx_parser *p)
{
	bool is_mapa = p->raw.op[0] == 'm', shared = ckt_ptx_mod(p, "shared::cluster");
	enum ptx_type type = ckt_ptx_need_type(p);
	unsigned bytes = ckt_ptx_type_bytes(type);
	if (bytes != 4 && bytes != 8)
		ckt_ptx_bad(p, "unsuitable type");
	ckt_ptx_need_operands(p, is_mapa ? 3 : 2, is_mapa ? 3 : 2);
	int32_t a = ckt_ptx_source(p, 1, type),
		b = is_mapa ? ckt_ptx_source(p, 2, T_U32) : PTX_OPERAND_NONE;
	int32_t d = ckt_ptx_dest(p, 0, is_mapa ? type : T_U32);
	struct ptx_insn *i = ckt_ptx_emit(p, is_mapa ? exec_mapa : exec_getctarank);
	i->a = a;
	i->b = b;
	i->d = d;
	i->x = !shared;
	i->y = (uint8_t)bytes;
}

/* ---- Bulk copies */

enum bulk_op {
	BULK_COPY,
	BULK_ADD,
	BULK_MIN,
	BULK_MAX,
	BULK_INC,
	BULK_DEC,
	BULK_AND,
	BULK_OR,
	BULK_XOR
};

struct bulk {
	struct ptx_address to, from, barrier;
	int32_t size, mask;
	/*
	 * the barrier counts the bytes; otherwise the copy is in a group, which is always complete
	 */
	bool counted;
	bool to_shared, from_shared, multicast;
	enum bulk_op op;
	enum ptx_type type;
};

static uint64_t integer_result(const struct bulk *x, uint64_t old, uint64_t v)
{
	bool less = x->type == T_S64 ? (int64_t)old < (int64_t)v
		: x->type == T_S32   ? (int32_t)old < (int32_t)v
				     : old < v;
	switch (x->op) {
	case BULK_ADD:
		return old + v;
	case BULK_MIN:
		return less ? old : v;
	case BULK_MAX:
		return less ? v : old;
	case BULK_INC:
		return old >= v ? 0 : old + 1;
	case BULK_DEC:
		return old == 0 || old > v ? v : old - 1;
	case BULK_AND:
		return old & v;
	case BULK_OR:
		return old | v;
	case BULK_XOR:
		return old ^ v;
	default:
		return v;
	}
}

static uint64_t float_result(const struct bulk *x, uint64_t old, uint64_t v)
{
	double a, b;
	switch (x->type) {
	case T_F16:
		a = ckt_ptx_half_to_float((uint16_t)old);
		b = ckt_ptx_half_to_float((uint16_t)v);
		break;
	case T_BF16:
		a = ckt_ptx_bf16_to_float((uint16_t)old);
		b = ckt_ptx_bf16_to_float((uint16_t)v);
		break;
	case T_F32:
		return ptx_canonical(ptx_float((uint32_t)old) + ptx_float((uint32_t)v));
	default:
		return ptx_double_bits(ptx_double(old) + ptx_double(v));
	}
	if (x->op != BULK_ADD && a == b) /* -0 is less than 0 */
		return x->op == BULK_MIN ? old | v : old & v;
	double r = x->op == BULK_ADD ? a + b
		: x->op == BULK_MIN  ? __builtin_fmin(a, b)
				     : __builtin_fmax(a, b);
	return x->type == T_F16 ? ckt_ptx_half_from_double(r, ROUND_RN)
				: ckt_ptx_bf16_from_double(r, ROUND_RN);
}

/*
 * Reduces 16 bytes.  Each element is atomic by itself, because other blocks may reduce into the
 * same memory.
 */
static void reduce_16(const struct bulk *x, uint8_t *to, const uint8_t *from)
{
	unsigned bytes = ckt_ptx_type_bytes(x->type);
	for (unsigned at = 0; at < 16; at += bytes) {
		uint64_t v = 0, old, wanted;
		memcpy(&v, from + at, bytes);
		for (bool done = false; !done;) {
			uint16_t *h = (uint16_t *)(to + at), h_old;
			uint32_t *s = (uint32_t *)(to + at), s_old;
			uint64_t *g = (uint64_t *)(to + at);
			old = bytes == 8     ? __atomic_load_n(g, __ATOMIC_RELAXED)
				: bytes == 4 ? __atomic_load_n(s, __ATOMIC_RELAXED)
					     : __atomic_load_n(h, __ATOMIC_RELAXED);
			wanted = ckt_ptx_type_float(x->type) ? float_result(x, old, v)
							     : integer_result(x, old, v);
			h_old = (uint16_t)old;
			s_old = (uint32_t)old;
			if (bytes == 8)
				done = __atomic_compare_exchange_n(
					g, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
			else if (bytes == 4)
				done = __atomic_compare_exchange_n(s, &s_old, (uint32_t)wanted,
					false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
			else
				done = __atomic_compare_exchange_n(h, &h_old, (uint16_t)wanted,
					false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		}
	}
}

/* Copies for one lane to the given destination. */
static bool copy_bulk(
	struct ptx_warp *w, const struct bulk *x, unsigned l, uint64_t to, uint64_t barrier)
{
	uint64_t from = ckt_ptx_address_at(w, &x->from, l);
	uint32_t size = ((const uint32_t *)ptx_at(w, x->size))[l];
	if (size % 16) {
		ckt_ptx_fault(
			w, l, CKT_PTX_FAULT_MISALIGNED_ADDRESS, "bulk copy of %u bytes", size);
		return false;
	}
	for (uint32_t at = 0; at < size; at += 16) {
		uint8_t access = x->op == BULK_COPY ? CKT_SOFT_PAGE_WRITE
						    : CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE;
		const uint8_t *source = ckt_ptx_memory(w, l, x->from_shared ? SP_SHARED : SP_GLOBAL,
			from + at, 16, CKT_SOFT_PAGE_READ);
		uint8_t *target = source
			? ckt_ptx_memory(
				  w, l, x->to_shared ? SP_SHARED : SP_GLOBAL, to + at, 16, access)
			: NULL;
		if (!target)
			return false;
		if (x->op == BULK_COPY)
			memmove(target, source, 16);
		else
			reduce_16(x, target, source);
	}
	return !x->counted || ckt_ptx_mbarrier_complete(w, l, barrier, size);
}

HANDLER(exec_bulk)
{
	const struct bulk *x = i->side;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t to = ckt_ptx_address_at(w, &x->to, l),
			 barrier = x->counted ? ckt_ptx_address_at(w, &x->barrier, l) : 0;
		if (!x->multicast) {
			if (!copy_bulk(w, x, l, to, barrier))
				return RUN_FAULT;
			continue;
		}
		/*
		 * Copies to the same offset in every block that the mask names; each block has its
		 * own barrier.
		 */
		for (uint32_t ranks = ((const uint32_t *)ptx_at(w, x->mask))[l] & 0xffff; ranks;
			ranks &= ranks - 1) {
			uint64_t rank = (uint64_t)(__builtin_ctz(ranks) + 1) << 24,
				 low = PTX_SHARED_MAX - 1;
			if (!copy_bulk(w, x, l, (to & low) | rank, (barrier & low) | rank))
				return RUN_FAULT;
		}
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

/* Reads the two spaces in their order: destination, source. */
static void take_spaces(struct ptx_parser *p, struct bulk *x)
{
	unsigned n = 0;
	for (unsigned k = 0; k < p->raw.n_mods && n < 2; k++) {
		bool shared = !strcmp(p->raw.mods[k], "shared::cluster") ||
			!strcmp(p->raw.mods[k], "shared::cta");
		if (!shared && strcmp(p->raw.mods[k], "global"))
			continue;
		p->raw.mod_used[k] = true;
		*(n++ ? &x->from_shared : &x->to_shared) = shared;
	}
	if (n != 2)
		ckt_ptx_bad(p, "two state spaces expected");
}

void ckt_ptx_decode_bulk(struct ptx_parser *p)
{
	static const char *const ops[] = {
		"add", "min", "max", "inc", "dec", "and", "or", "xor", NULL};
	if (ckt_ptx_mod(p, "tensor"))
		ckt_ptx_bad(p, "tensor copies (TMA) are not supported");
	if (ckt_ptx_mod(p, "commit_group") || ckt_ptx_mod(p, "wait_group") ||
		ckt_ptx_mod(p, "prefetch")) {
		ckt_ptx_mod_prefix(p, ""); /* already complete, or a hint */
		ckt_ptx_emit(p, exec_nothing);
		return;
	}
	struct bulk *x = ckt_ptx_new(p, sizeof *x);
	take_spaces(p, x);
	x->counted = ckt_ptx_mod(p, "mbarrier::complete_tx::bytes");
	if (!x->counted && !ckt_ptx_mod(p, "bulk_group"))
		ckt_ptx_bad(p, "unknown completion of a bulk copy");
	x->multicast = ckt_ptx_mod(p, "multicast::cluster");
	bool hint = ckt_ptx_mod(p, "L2::cache_hint");
	if (ckt_ptx_mod(p, "reduce")) {
		ckt_ptx_mod(p, "noftz");
		int op = ckt_ptx_mod_one(p, ops);
		x->type = ckt_ptx_need_type(p);
		unsigned bytes = ckt_ptx_type_bytes(x->type);
		if (op < 0 || bytes < 2 || bytes > 8 ||
			(bytes == 2 && !ckt_ptx_type_float(x->type)) ||
			(ckt_ptx_type_float(x->type) && op > 2) ||
			((x->type == T_F32 || x->type == T_F64) && op))
			ckt_ptx_bad(p, "unknown reduction");
		x->op = (enum bulk_op)(BULK_ADD + op);
	}
	unsigned n = 3u + x->counted + x->multicast + hint;
	ckt_ptx_need_operands(p, n, n);
	x->to = ckt_ptx_decode_address(
		p, &p->raw.operands[0], x->to_shared ? SP_SHARED : SP_GLOBAL);
	x->from = ckt_ptx_decode_address(
		p, &p->raw.operands[1], x->from_shared ? SP_SHARED : SP_GLOBAL);
	x->size = ckt_ptx_source(p, 2, T_U32);
	if (x->counted)
		x->barrier = ckt_ptx_decode_address(p, &p->raw.operands[3], SP_SHARED);
	if (x->multicast)
		x->mask = ckt_ptx_source(p, 3 + x->counted, T_U16);
	ckt_ptx_emit(p, exec_bulk)->side = x;
}

void ckt_ptx_decode_refused(struct ptx_parser *p)
{
	ckt_ptx_fail(p, CKT_PTX_INVALID, "instruction '%s' is not supported", p->raw.op);
}

const struct ptx_opcode ckt_ptx_opcodes_cluster[] = {
	{"mapa", decode_mapa},
	{"getctarank", decode_mapa},
	{"wgmma", ckt_ptx_decode_refused},
	{"tcgen05", ckt_ptx_decode_refused},
	{"tensormap", ckt_ptx_decode_refused},
	{"clusterlaunchcontrol", ckt_ptx_decode_refused},
	{"multimem", ckt_ptx_decode_refused},
	{"sured", ckt_ptx_decode_refused},
	{NULL, NULL},
};
