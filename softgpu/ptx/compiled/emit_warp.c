/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a whole warp, if all 32 lanes run together and all take part, so that none waits.
 * The handler does everything else.
 */
#include <stdio.h>

#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/execution/warp.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

/* Whether the operand is a constant that is already known; it is the same for all lanes. */
static bool known(const struct emitter *e, int32_t operand, uint32_t *ret_value)
{
	const struct ptx_constant *c = ckt_emit_is_register(operand) || operand == PTX_OPERAND_NONE
		? NULL
		: ckt_emit_constant(e->f, operand);
	if (!c || c->symbol)
		return false;
	*ret_value = (uint32_t)c->value;
	return true;
}

bool ckt_emit_fits_warp(const struct emitter *e, uint32_t pc)
{
	if (!e->forms[pc] || e->forms[pc]->kind != FORM_WARP)
		return false;
	const struct warp_insn *x = e->f->code[pc].side;
	uint32_t member;
	if (known(e, x->member, &member) && member != ~0u)
		return false;
	if ((x->op == W_SHFL || x->op == W_MATCH || x->op == W_REDUX) &&
		(!ckt_emit_is_register(x->d) || x->a == PTX_OPERAND_NONE))
		return false;
	return !(x->op == W_REDUX && x->type == T_F32) &&
		!(x->op == W_VOTE && x->a == PTX_OPERAND_NONE);
}

/*
 * The lane that a lane reads, as in run_shfl (op_warp.c); the lane itself if that lane is outside.
 */
static unsigned shuffled(unsigned mode, int lane, uint32_t b, uint32_t c, bool *ret_in)
{
	int bval = (int)(b & 31), cval = (int)(c & 31), segment = (int)(c >> 8 & 31),
	    least = lane & segment, most = least | (cval & ~segment), from;
	switch (mode) {
	case SHFL_UP:
		from = lane - bval;
		break;
	case SHFL_DOWN:
		from = lane + bval;
		break;
	case SHFL_BFLY:
		from = lane ^ bval;
		break;
	default:
		from = least | (bval & ~segment);
		break;
	}
	*ret_in = mode == SHFL_UP ? from >= most : from <= most;
	return (unsigned)(*ret_in ? from : lane) & 31;
}

static void say_shuffle(struct emitter *e, const struct warp_insn *x)
{
	char a[EMIT_VALUE], b[EMIT_VALUE], c[EMIT_VALUE];
	uint32_t bval, cval, ok = 0;
	if (!known(e, x->b, &bval) || !known(e, x->c, &cval)) {
		say(e, "\t\tuint32_t ok = shuffle((uint32_t *)(R + %d), %s, %s, %s, %u); (void)ok;\n",
			x->d, ckt_emit_row(x->a, a), ckt_emit_row(x->b, b), ckt_emit_row(x->c, c),
			x->mode);
		if (ckt_emit_is_register(x->p))
			say(e, "\t\t*(uint32_t *)(R + %d) = ok;\n", x->p);
		return;
	}
	say(e, "\t\tconst sixteen low = *(const sixteen *)(%s), high = *(const sixteen *)(%s + 64);\n",
		ckt_emit_row(x->a, a), a);
	for (int lane = 0; lane < PTX_LANES; lane++) {
		bool in;
		unsigned from = shuffled(x->mode, lane, bval, cval, &in);
		ok |= (uint32_t)in << lane;
		if (lane % 16 == 0)
			say(e, "\t\t*(sixteen *)(R + %d) = __builtin_shufflevector(low, high",
				x->d + 4 * lane);
		say(e, ", %u%s", from, lane % 16 == 15 ? ");\n" : "");
	}
	if (ckt_emit_is_register(x->p))
		say(e, "\t\t*(uint32_t *)(R + %d) = 0x%xu;\n", x->p, ok);
}

static void say_vote(struct emitter *e, const struct warp_insn *x)
{
	static const char *const answers[] = {"bits == ~0u", "bits != 0", "bits == ~0u || !bits"};
	char a[EMIT_VALUE];
	say(e, "\t\tconst uint32_t bits = %s*(const uint32_t *)(%s);\n", x->negated ? "~" : "",
		ckt_emit_row(x->a, a));
	if (!ckt_emit_is_register(x->d))
		return;
	if (x->mode == VOTE_BALLOT)
		say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((uint32_t *)(R + %d))[l] = bits;\n",
			x->d);
	else
		say(e, "\t\t*(uint32_t *)(R + %d) = %s ? ~0u : 0;\n", x->d, answers[x->mode]);
}

static void say_redux(struct emitter *e, const struct warp_insn *x)
{
	static const char *const signed_ones[] = {
		"v + x", "x < v ? x : v", "x > v ? x : v", "v & x", "v | x", "v ^ x"};
	const char *type = x->type == T_S32 ? "int32_t" : "uint32_t";
	char a[EMIT_VALUE];
	say(e, "\t\t%s v = *(const %s *)(%s);\n\t\tfor (unsigned l = 1; l < 32; l++) { const %s x = ((const %s *)(%s))[l]; v = %s; }\n",
		type, type, ckt_emit_row(x->a, a), type, type, a, signed_ones[x->mode]);
	say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((%s *)(R + %d))[l] = v;\n", type, x->d);
}

static void say_answer(struct emitter *e, const struct warp_insn *x)
{
	char a[EMIT_VALUE];
	switch (x->op) {
	case W_SHFL:
		say_shuffle(e, x);
		break;
	case W_VOTE:
		say_vote(e, x);
		break;
	case W_REDUX:
		say_redux(e, x);
		break;
	case W_MATCH:
		say(e, "\t\tuint32_t all = match_%u((uint32_t *)(R + %d), (const void *)(%s), %u); (void)all;\n",
			x->wide ? 64 : 32, x->d, ckt_emit_row(x->a, a), x->mode);
		if (x->mode && ckt_emit_is_register(x->p))
			say(e, "\t\t*(uint32_t *)(R + %d) = all;\n", x->p);
		break;
	case W_ELECT:
		if (ckt_emit_is_register(x->d))
			say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((uint32_t *)(R + %d))[l] = 0;\n",
				x->d);
		if (ckt_emit_is_register(x->p))
			say(e, "\t\t*(uint32_t *)(R + %d) = 1;\n", x->p);
		break;
	default:
		break; /* a barrier */
	}
}

void ckt_emit_say_warp(struct emitter *e, uint32_t pc)
{
	const struct warp_insn *x = e->f->code[pc].side;
	uint32_t member;
	ckt_emit_say_guard(e, &e->f->code[pc]);
	if (known(e, x->member, &member))
		say(e, "\tif (m == ~0u) {\n");
	else
		say(e, "\tif (m == ~0u && all_ones((const uint32_t *)(R + %d))) {\n", x->member);
	say_answer(e, x);
	say(e, "\t} else if (m) {\n");
	ckt_emit_say_call(e, pc);
	say(e, "\t}\n");
}
