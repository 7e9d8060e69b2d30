/*
 * Video instructions on pairs and quadruples of small integers in one register, without selectors.
 */
#include <string.h>

#include "softgpu/ptx/op.h"

enum video_op { V_ADD, V_SUB, V_AVRG, V_ABSDIFF, V_MIN, V_MAX, V_SET };
enum { SIGNED_A = 1, SIGNED_B = 2, SIGNED_D = 4, SATURATE = 8, ACCUMULATE = 16 };

static int32_t part(uint32_t v, unsigned k, unsigned bits, bool is_signed)
{
	uint32_t field = v >> (k * bits) & ((1u << bits) - 1);
	return is_signed && field >> (bits - 1) ? (int32_t)(field - (1u << bits)) : (int32_t)field;
}

static int32_t compute(int op, int compare, int32_t x, int32_t y)
{
	switch (op) {
	case V_ADD: return x + y;
	case V_SUB: return x - y;
	case V_AVRG: return (x + y + (x + y >= 0)) >> 1;
	case V_ABSDIFF: return x < y ? y - x : x - y;
	case V_MIN: return x < y ? x : y;
	case V_MAX: return x > y ? x : y;
	default: break;
	}
	switch (compare) {
	case 0: return x == y;
	case 1: return x != y;
	case 2: return x < y;
	case 3: return x <= y;
	case 4: return x > y;
	default: return x >= y;
	}
}

/* x: operation, y: flags, z: parts | comparison << 4. */
static int exec_video(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	unsigned n = i->z & 15, bits = 32 / n;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t r = 0, sum = c[l];
		for (unsigned k = 0; k < n; k++) {
			int32_t v = compute(i->x, i->z >> 4, part(a[l], k, bits, i->y & SIGNED_A), part(b[l], k, bits, i->y & SIGNED_B));
			if (i->y & SATURATE) {
				int32_t least = i->y & SIGNED_D ? -(1 << (bits - 1)) : 0, most = (1 << (bits - (i->y & SIGNED_D ? 1 : 0))) - 1;
				v = v < least ? least : v > most ? most : v;
			}
			r |= ((uint32_t)v & ((1u << bits) - 1)) << (k * bits);
			sum += (uint32_t)v;
		}
		d[l] = i->y & ACCUMULATE ? sum : r;
	}
	return RUN_NEXT;
}

static void decode_video(struct ptx_parser *p)
{
	static const char *const names[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"};
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
	size_t length = strlen(p->raw.op) - 1;
	int op = 0, compare = 0, flags = 0;
	while (strlen(names[op]) != length || strncmp(names[op], p->raw.op, length))
		op++;
	enum ptx_type d = op == V_SET ? T_U32 : ckt_ptx_need_type(p), a = ckt_ptx_need_type(p), b = ckt_ptx_need_type(p);
	if (op == V_SET && (compare = ckt_ptx_mod_one(p, compares)) < 0)
		ckt_ptx_bad(p, "comparison expected");
	flags |= (a == T_S32 ? SIGNED_A : 0) | (b == T_S32 ? SIGNED_B : 0) | (d == T_S32 ? SIGNED_D : 0);
	flags |= ckt_ptx_mod(p, "sat") ? SATURATE : 0;
	flags |= ckt_ptx_mod(p, "add") ? ACCUMULATE : 0;
	ckt_ptx_need_operands(p, 4, 4);
	int32_t sa = ckt_ptx_source(p, 1, T_U32), sb = ckt_ptx_source(p, 2, T_U32), sc = ckt_ptx_source(p, 3, T_U32), sd = ckt_ptx_dest(p, 0, T_U32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_video);
	i->a = sa;
	i->b = sb;
	i->c = sc;
	i->d = sd;
	i->x = (uint8_t)op;
	i->y = (uint8_t)flags;
	i->z = (uint8_t)(p->raw.op[length] - '0') | (uint8_t)(compare << 4);
}

const struct ptx_opcode ckt_ptx_opcodes_video[] = {
	{"vadd2", decode_video}, {"vadd4", decode_video}, {"vsub2", decode_video}, {"vsub4", decode_video}, {"vavrg2", decode_video},
	{"vavrg4", decode_video}, {"vabsdiff2", decode_video}, {"vabsdiff4", decode_video}, {"vmin2", decode_video}, {"vmin4", decode_video},
	{"vmax2", decode_video}, {"vmax4", decode_video}, {"vset2", decode_video}, {"vset4", decode_video},
	{NULL, NULL},
};
