/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a whole warp: shuffles, votes, matches, reductions and the warp barrier.
 *
 * All lanes in the member mask must arrive before any of them continues.  Early lanes leave their
 * values in warp->stage and wait as a group.  The last lanes run the instruction for all: for each
 * waiting group, from the code where it waits.
 */
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/warp.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

static void set_predicate(struct ptx_warp *w, int32_t operand, uint32_t mask, uint32_t bits)
{
	if (operand == PTX_OPERAND_NONE)
		return;
	uint32_t *d = ptx_at(w, operand);
	*d = (*d & ~mask) | (bits & mask);
}

/* Writes the lanes' values into the stage, where every participant finds them. */
static void bring(struct ptx_warp *w, const struct warp_insn *x, uint32_t m)
{
	if (x->op == W_VOTE) {
		uint32_t bits = *(uint32_t *)ptx_at(w, x->a);
		bits ^= x->negated ? ~0u : 0;
		for (uint32_t rest = m; rest; rest &= rest - 1)
			w->stage[__builtin_ctz(rest)] = bits >> __builtin_ctz(rest) & 1;
	} else if (x->a != PTX_OPERAND_NONE) {
		for (uint32_t rest = m; rest; rest &= rest - 1) {
			unsigned l = (unsigned)__builtin_ctz(rest);
			w->stage[l] = x->wide ? ((const uint64_t *)ptx_at(w, x->a))[l]
					      : ((const uint32_t *)ptx_at(w, x->a))[l];
		}
	}
}

static void run_shfl(struct ptx_warp *w, const struct warp_insn *x, uint32_t m)
{
	const uint32_t *b = ptx_at(w, x->b), *c = ptx_at(w, x->c);
	uint32_t *d = ptx_at(w, x->d), ok = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest), from, bval = (int)(b[lane] & 31),
		    cval = (int)(c[lane] & 31), segment = (int)(c[lane] >> 8 & 31);
		int most = (lane & segment) | (cval & ~segment), least = lane & segment;
		bool in;
		switch (x->mode) {
		case SHFL_UP:
			from = lane - bval;
			in = from >= most;
			break;
		case SHFL_DOWN:
			from = lane + bval;
			in = from <= most;
			break;
		case SHFL_BFLY:
			from = lane ^ bval;
			in = from <= most;
			break;
		default:
			from = least | (bval & ~segment);
			in = from <= most;
			break;
		}
		if (!in)
			from = lane;
		ok |= (uint32_t)in << lane;
		d[lane] = (uint32_t)w->stage[from & 31];
	}
	set_predicate(w, x->p, m, ok);
}

static void run_vote(struct ptx_warp *w, const struct warp_insn *x, uint32_t m, uint32_t members)
{
	uint32_t ballot = 0;
	for (uint32_t rest = members; rest; rest &= rest - 1)
		ballot |= (uint32_t)(w->stage[__builtin_ctz(rest)] & 1) << __builtin_ctz(rest);
	bool all = ballot == members, any = ballot != 0;
	if (x->mode == VOTE_BALLOT) {
		uint32_t *d = ptx_at(w, x->d);
		for (uint32_t rest = m; rest; rest &= rest - 1)
			d[__builtin_ctz(rest)] = ballot;
	} else {
		set_predicate(w, x->d, m,
			(x->mode == VOTE_ALL                  ? all
					: x->mode == VOTE_ANY ? any
							      : all || !any)
				? ~0u
				: 0);
	}
}

static void run_match(struct ptx_warp *w, const struct warp_insn *x, uint32_t m, uint32_t members)
{
	uint32_t *d = ptx_at(w, x->d), same_all = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t same = 0;
		for (uint32_t others = members; others; others &= others - 1)
			same |= (uint32_t)(w->stage[__builtin_ctz(others)] == w->stage[l])
				<< __builtin_ctz(others);
		if (x->mode) /* all */
			same = same == members ? members : 0;
		same_all |= (uint32_t)(same != 0) << l;
		d[l] = same;
	}
	if (x->mode)
		set_predicate(w, x->p, m, same_all);
}

static uint32_t redux_float(const struct warp_insn *x, uint32_t r, uint32_t v)
{
	float a = ptx_float(r), b = ptx_float(v);
	if (x->abs) {
		a = __builtin_fabsf(a);
		b = __builtin_fabsf(b);
	}
	if (a != a || b != b)
		return x->nan || (a != a && b != b) ? 0x7fffffff : ptx_float_bits(a != a ? b : a);
	return ptx_float_bits(x->mode == REDUX_MIN ? (a < b ? a : b) : (a > b ? a : b));
}

static void run_redux(struct ptx_warp *w, const struct warp_insn *x, uint32_t m, uint32_t members)
{
	uint32_t r = (uint32_t)w->stage[__builtin_ctz(members)], *d = ptx_at(w, x->d);
	if (x->type == T_F32)
		r = redux_float(x, r, r);
	for (uint32_t rest = members & (members - 1); rest; rest &= rest - 1) {
		uint32_t v = (uint32_t)w->stage[__builtin_ctz(rest)];
		bool less = x->type == T_S32 ? (int32_t)v < (int32_t)r : v < r;
		if (x->type == T_F32) {
			r = redux_float(x, r, v);
			continue;
		}
		switch (x->mode) {
		case REDUX_ADD:
			r += v;
			break;
		case REDUX_MIN:
			r = less ? v : r;
			break;
		case REDUX_MAX:
			r = less ? r : v;
			break;
		case REDUX_AND:
			r &= v;
			break;
		case REDUX_OR:
			r |= v;
			break;
		default:
			r ^= v;
			break;
		}
	}
	for (uint32_t rest = m; rest; rest &= rest - 1)
		d[__builtin_ctz(rest)] = r;
}

/* Gives lanes m of the current frame their results; members are all participants. */
static void answer(struct ptx_warp *w, const struct warp_insn *x, uint32_t m, uint32_t members)
{
	switch (x->op) {
	case W_BARRIER:
		break;
	case W_SHFL:
		run_shfl(w, x, m);
		break;
	case W_VOTE:
		run_vote(w, x, m, members);
		break;
	case W_MATCH:
		run_match(w, x, m, members);
		break;
	case W_REDUX:
		run_redux(w, x, m, members);
		break;
	case W_ELECT: {
		uint32_t leader = members & -members,
			 *d = x->d == PTX_OPERAND_NONE ? NULL : ptx_at(w, x->d);
		for (uint32_t rest = m; d && rest; rest &= rest - 1)
			d[__builtin_ctz(rest)] = (uint32_t)__builtin_ctz(leader);
		set_predicate(w, x->p, m, leader);
		break;
	}
	}
}

/* A waiting group's pc is that of the instruction itself. */
static const struct warp_insn *waiting_at(const struct ptx_group *g)
{
	return g->frame->function->code[g->pc].side;
}

/*
 * Releases the groups that wait for the same members.  Precondition: every live lane of `members`
 * waits or is running.
 */
static void release_waiting(
	struct ptx_warp *w, const struct warp_insn *x, uint32_t member_mask, uint32_t members)
{
	struct ptx_frame *frame = w->frame;
	for (unsigned k = 0; k < w->n_groups; k++) {
		struct ptx_group *g = &w->groups[k];
		if (g->state != GROUP_WARP || g->sync_mask != member_mask ||
			waiting_at(g)->op != x->op)
			continue;
		ckt_ptx_warp_select(w, g->frame);
		answer(w, waiting_at(g), g->mask, members);
		g->state = GROUP_READY;
		g->pc++;
	}
	ckt_ptx_warp_select(w, frame);
}

/*
 * One subset of the running lanes with the same member mask arrives.  True if it may continue,
 * false if it must wait.
 */
static bool arrive(struct ptx_warp *w, const struct warp_insn *x, uint32_t m, uint32_t member_mask)
{
	uint32_t here = m, members = member_mask & w->live;
	for (unsigned k = 0; k < w->n_groups; k++) {
		const struct ptx_group *g = &w->groups[k];
		if (g->state == GROUP_WARP && g->sync_mask == member_mask &&
			waiting_at(g)->op == x->op)
			here |= g->mask;
	}
	bring(w, x, m);
	if (members & ~here)
		return false;
	members = here & member_mask ? here & member_mask : here;
	answer(w, x, m, members);
	if (here != m)
		release_waiting(w, x, member_mask, members);
	return true;
}

HANDLER(exec_warp)
{
	const struct warp_insn *x = i->side;
	const uint32_t *member = ptx_at(w, x->member);
	uint32_t first = member[__builtin_ctz(m)], same = 0, all = w->mask, pc = w->pc;
	for (uint32_t rest = m; rest; rest &= rest - 1)
		same |= member[__builtin_ctz(rest)] == first ? rest & -rest : 0;
	if (same == m && m == all && arrive(w, x, m, first))
		return RUN_NEXT;
	if (same == m && m == all) {
		ckt_ptx_group_store(w, w->frame, m, pc - 1);
		w->groups[w->n_groups - 1].state = GROUP_WARP;
		w->groups[w->n_groups - 1].sync_mask = first;
		return RUN_PICK;
	}
	/*
	 * Several tiles of the warp run together, or some lanes fail a guard: each subset arrives
	 * by itself.
	 */
	uint32_t through = all & ~m;
	while (m) {
		first = member[__builtin_ctz(m)];
		same = 0;
		for (uint32_t rest = m; rest; rest &= rest - 1)
			same |= member[__builtin_ctz(rest)] == first ? rest & -rest : 0;
		if (arrive(w, x, same, first)) {
			through |= same;
		} else {
			ckt_ptx_group_store(w, w->frame, same, pc - 1);
			w->groups[w->n_groups - 1].state = GROUP_WARP;
			w->groups[w->n_groups - 1].sync_mask = first;
		}
		m &= ~same;
	}
	if (through == all)
		return RUN_NEXT;
	if (through)
		ckt_ptx_group_store(w, w->frame, through, pc);
	return RUN_PICK;
}

/* activemask and the old forms without a mask: the lanes that happen to run together. */
HANDLER(exec_activemask)
{
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = m;);
	return RUN_NEXT;
}
PTX_FORM(exec_activemask, FORM_MASK, 4, 0, 0, 0, 0, NULL)

HANDLER(exec_unsynced)
{
	const struct warp_insn *x = i->side;
	bring(w, x, m);
	answer(w, x, m, m);
	return RUN_NEXT;
}

static unsigned registers(const struct ptx_insn *i, int32_t *ret_regs)
{
	const struct warp_insn *x = i->side;
	memcpy(ret_regs, (int32_t[]){x->member, x->a, x->b, x->c, x->d, x->p},
		6 * sizeof *ret_regs);
	return 6;
}
PTX_FORM_SIDE(exec_warp, FORM_WARP, registers)
PTX_FORM_SIDE(exec_unsynced, FORM_SIDE, registers)

/* ---- Decoding */

static void emit(struct ptx_parser *p, const struct warp_insn *x)
{
	ckt_ptx_emit(p, x->member == PTX_OPERAND_NONE ? exec_unsynced : exec_warp)->side = x;
}

static struct warp_insn *start(struct ptx_parser *p, enum ptx_warp_op op)
{
	struct warp_insn *x = ckt_ptx_new(p, sizeof *x);
	*x = (struct warp_insn){.op = op,
		.member = PTX_OPERAND_NONE,
		.a = PTX_OPERAND_NONE,
		.b = PTX_OPERAND_NONE,
		.c = PTX_OPERAND_NONE,
		.d = PTX_OPERAND_NONE,
		.p = PTX_OPERAND_NONE};
	return x;
}

void ckt_ptx_decode_warp_barrier(struct ptx_parser *p)
{
	struct warp_insn *x = start(p, W_BARRIER);
	if (!ckt_ptx_mod(p, "sync"))
		ckt_ptx_bad(p, ".sync expected");
	ckt_ptx_need_operands(p, 1, 1);
	x->member = ckt_ptx_source(p, 0, T_U32);
	emit(p, x);
}

static int32_t second(struct ptx_parser *p, const struct ptx_operand *o)
{
	if (o->reg2 != PTX_OPERAND_NONE && o->type2 != T_PRED)
		ckt_ptx_bad(p, "predicate expected after |");
	return o->reg2;
}

static void decode_shfl(struct ptx_parser *p)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
	struct warp_insn *x = start(p, W_SHFL);
	bool sync = ckt_ptx_mod(p, "sync");
	int mode = ckt_ptx_mod_one(p, modes);
	if (mode < 0 || ckt_ptx_type_bytes(ckt_ptx_need_type(p)) != 4)
		ckt_ptx_bad(p, "unknown shuffle");
	ckt_ptx_need_operands(p, sync ? 5 : 4, sync ? 5 : 4);
	x->mode = (unsigned)mode;
	x->a = ckt_ptx_source(p, 1, T_B32);
	x->b = ckt_ptx_source(p, 2, T_B32);
	x->c = ckt_ptx_source(p, 3, T_B32);
	if (sync)
		x->member = ckt_ptx_source(p, 4, T_B32);
	x->d = ckt_ptx_dest(p, 0, T_B32);
	x->p = second(p, &p->raw.operands[0]);
	emit(p, x);
}

static void decode_vote(struct ptx_parser *p)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
	struct warp_insn *x = start(p, W_VOTE);
	bool sync = ckt_ptx_mod(p, "sync");
	int mode = ckt_ptx_mod_one(p, modes);
	enum ptx_type type = ckt_ptx_need_type(p);
	if (mode < 0 || (mode == VOTE_BALLOT) != (type == T_B32))
		ckt_ptx_bad(p, "unknown vote");
	ckt_ptx_need_operands(p, sync ? 3 : 2, sync ? 3 : 2);
	struct ptx_operand a = p->raw.operands[1];
	x->mode = (unsigned)mode;
	x->negated = a.negated && a.kind == OP_REG;
	if (a.kind == OP_REG)
		a.negated = false;
	x->a = ckt_ptx_pred_source(p, &a);
	if (sync)
		x->member = ckt_ptx_source(p, 2, T_B32);
	x->d = ckt_ptx_dest(p, 0, type);
	emit(p, x);
}

static void decode_match(struct ptx_parser *p)
{
	static const char *const modes[] = {"any", "all", NULL};
	struct warp_insn *x = start(p, W_MATCH);
	int mode = ckt_ptx_mod_one(p, modes);
	bool sync = ckt_ptx_mod(p, "sync");
	enum ptx_type type = ckt_ptx_need_type(p);
	if (mode < 0 || !sync || (ckt_ptx_type_bytes(type) != 4 && ckt_ptx_type_bytes(type) != 8))
		ckt_ptx_bad(p, "unknown match");
	ckt_ptx_need_operands(p, 3, 3);
	x->mode = (unsigned)mode;
	x->wide = ckt_ptx_type_bytes(type) == 8;
	x->a = ckt_ptx_source(p, 1, type);
	x->member = ckt_ptx_source(p, 2, T_B32);
	x->d = ckt_ptx_dest(p, 0, T_B32);
	x->p = second(p, &p->raw.operands[0]);
	emit(p, x);
}

static void decode_redux(struct ptx_parser *p)
{
	static const char *const modes[] = {"add", "min", "max", "and", "or", "xor", NULL};
	struct warp_insn *x = start(p, W_REDUX);
	bool sync = ckt_ptx_mod(p, "sync");
	int mode = ckt_ptx_mod_one(p, modes);
	x->abs = ckt_ptx_mod(p, "abs");
	x->nan = ckt_ptx_mod(p, "NaN");
	x->type = ckt_ptx_need_type(p);
	if (!sync || mode < 0 || ckt_ptx_type_bytes(x->type) != 4 ||
		(x->type == T_F32 && mode != REDUX_MIN && mode != REDUX_MAX))
		ckt_ptx_bad(p, "unknown reduction");
	ckt_ptx_need_operands(p, 3, 3);
	x->mode = (unsigned)mode;
	x->a = ckt_ptx_source(p, 1, x->type);
	x->member = ckt_ptx_source(p, 2, T_B32);
	x->d = ckt_ptx_dest(p, 0, x->type);
	emit(p, x);
}

static void decode_elect(struct ptx_parser *p)
{
	struct warp_insn *x = start(p, W_ELECT);
	if (!ckt_ptx_mod(p, "sync"))
		ckt_ptx_bad(p, ".sync expected");
	ckt_ptx_need_operands(p, 2, 2);
	x->member = ckt_ptx_source(p, 1, T_B32);
	if (p->raw.operands[0].kind != OP_SINK)
		x->d = ckt_ptx_dest(p, 0, T_B32);
	x->p = second(p, &p->raw.operands[0]);
	emit(p, x);
}

static void decode_activemask(struct ptx_parser *p)
{
	ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 1, 1);
	int32_t d = ckt_ptx_dest(p, 0, T_B32);
	ckt_ptx_emit(p, exec_activemask)->d = d;
}

const struct ptx_opcode ckt_ptx_opcodes_warp[] = {
	{"shfl", decode_shfl},
	{"vote", decode_vote},
	{"match", decode_match},
	{"redux", decode_redux},
	{"elect", decode_elect},
	{"activemask", decode_activemask},
	{NULL, NULL},
};
