/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom and red.  Other blocks run on other threads, so device atomics use the host's atomics: one
 * instruction for integers, and a loop of compare and exchange for the rest.
 */
#include <math.h>
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/atom.h"
#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static const char *const atomic_names[] = {
	"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", NULL};

static uint16_t half_combine(enum ptx_type type, int op, uint16_t old, uint16_t v)
{
	bool bf = type == T_BF16 || type == T_BF16X2;
	double x = bf ? ckt_ptx_bf16_to_float(old) : ckt_ptx_half_to_float(old),
	       y = bf ? ckt_ptx_bf16_to_float(v) : ckt_ptx_half_to_float(v), r;
	if (op != A_ADD && x == y) /* -0 is less than 0 */
		return op == A_MIN ? old | v : old & v;
	r = op == A_ADD ? x + y : op == A_MIN ? fmin(x, y) : fmax(x, y);
	return bf ? ckt_ptx_bf16_from_double(r, ROUND_RN) : ckt_ptx_half_from_double(r, ROUND_RN);
}

static uint32_t combine_32(enum ptx_type type, int op, uint32_t old, uint32_t v, bool in_memory)
{
	if (type == T_F16X2 || type == T_BF16X2)
		return half_combine(type, op, (uint16_t)old, (uint16_t)v) |
			(uint32_t)half_combine(type, op, (uint16_t)(old >> 16), (uint16_t)(v >> 16))
			<< 16;
	if (type == T_F32)
		return op == A_ADD
			? atomic_add_f32(old, v, in_memory)
			: ptx_canonical(op == A_MIN ? fminf(ptx_float(old), ptx_float(v))
						    : fmaxf(ptx_float(old), ptx_float(v)));
	return atomic_32(op, type == T_S32, old, v);
}

static uint64_t combine_64(enum ptx_type type, int op, uint64_t old, uint64_t v, bool in_memory)
{
	if (type == T_F64)
		return op == A_ADD
			? atomic_add_f64(old, v, in_memory)
			: ptx_double_bits(op == A_MIN ? fmin(ptx_double(old), ptx_double(v))
						      : fmax(ptx_double(old), ptx_double(v)));
	return atomic_64(op, type == T_S64, old, v);
}

static uint64_t run_16(uint16_t *at, enum ptx_type type, int op, uint16_t v, uint16_t desired)
{
	uint16_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST), wanted;
	if (op == A_CAS) {
		old = v;
		__atomic_compare_exchange_n(
			at, &old, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return old;
	}
	do {
		wanted = op == A_EXCH ? v : half_combine(type, op, old, v);
	} while (!__atomic_compare_exchange_n(
		at, &old, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return old;
}

static uint64_t run_32(
	uint32_t *at, enum ptx_type type, int op, uint32_t v, uint32_t desired, bool in_memory)
{
	bool integer = type == T_U32 || type == T_S32 || type == T_B32;
	uint32_t old;
	if (op == A_CAS) {
		old = v;
		__atomic_compare_exchange_n(
			at, &old, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return old;
	}
	if (op == A_EXCH)
		return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST);
	if (op == A_ADD && integer)
		return __atomic_fetch_add(at, v, __ATOMIC_SEQ_CST);
	old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(at, &old, combine_32(type, op, old, v, in_memory), true,
		__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return old;
}

static uint64_t run_64(
	uint64_t *at, enum ptx_type type, int op, uint64_t v, uint64_t desired, bool in_memory)
{
	uint64_t old;
	if (op == A_CAS) {
		old = v;
		__atomic_compare_exchange_n(
			at, &old, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return old;
	}
	if (op == A_EXCH)
		return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST);
	if (op == A_ADD && type != T_F64)
		return __atomic_fetch_add(at, v, __ATOMIC_SEQ_CST);
	old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(at, &old, combine_64(type, op, old, v, in_memory), true,
		__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return old;
}

/* exch and cas of 128 bits: one lock for all, because not every host has the instruction. */
static unsigned __int128 run_128(
	unsigned __int128 *at, int op, unsigned __int128 v, unsigned __int128 desired)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	unsigned __int128 old = *at;
	if (op == A_EXCH)
		*at = v;
	else if (old == v)
		*at = desired;
	pthread_mutex_unlock(&lock);
	return old;
}

static uint64_t lane_value(const struct ptx_warp *w, int32_t operand, unsigned bytes, unsigned l)
{
	if (operand == PTX_OPERAND_NONE)
		return 0;
	return bytes == 8 ? ((const uint64_t *)ptx_at(w, operand))[l]
			  : ((const uint32_t *)ptx_at(w, operand))[l];
}

static void atomic_128(struct ptx_warp *w, const struct atomic *a, uint8_t *at, unsigned l)
{
	const unsigned __int128 *b = ptx_at(w, a->b[0]), *c = a->op == A_CAS ? ptx_at(w, a->c) : b;
	unsigned __int128 old = run_128((unsigned __int128 *)at, a->op, b[l], c[l]);
	if (a->d[0] != PTX_OPERAND_NONE)
		((unsigned __int128 *)ptx_at(w, a->d[0]))[l] = old;
}

static inline uint64_t address_of(const struct ptx_warp *w, const struct ptx_insn *i, unsigned l)
{
	return ckt_ptx_lane_address(w, i->a, i->e, i->imm, l);
}

/*
 * Adds 32-bit integers.  Lanes that add to the same address share one atomic instruction of the
 * host; each lane gets the value that it would have found if the lanes had run one after the other.
 */
static int exec_add_32(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const struct atomic *a = i->side;
	const uint32_t *b = ptx_at(w, a->b[0]);
	uint32_t *d = a->d[0] == PTX_OPERAND_NONE ? NULL : ptx_at(w, a->d[0]);
	enum { ACCESS = CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE };
	unsigned first = (unsigned)__builtin_ctz(m);
	uint64_t address = address_of(w, i, first);
	uint32_t same = 0, sum = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		same += address_of(w, i, l) == address;
		sum += b[l];
	}
	w->polls += d != NULL;
	/* In local memory, equal addresses are different words for every lane. */
	if (same == (uint32_t)__builtin_popcount(m) && address < PTX_LOCAL_WINDOW &&
		(a->space == SP_GLOBAL || a->space == SP_SHARED || a->space == SP_GENERIC)) {
		uint32_t *at =
			(uint32_t *)ckt_ptx_memory_quick(w, first, a->space, address, 4, ACCESS);
		if (!at)
			return RUN_FAULT;
		uint32_t old = __atomic_fetch_add(at, sum, __ATOMIC_SEQ_CST);
		for (uint32_t rest = m; d && rest; rest &= rest - 1) {
			unsigned l = (unsigned)__builtin_ctz(rest);
			/* read before d is written: b and d may be the same register */
			uint32_t next = old + b[l];
			d[l] = old;
			old = next;
		}
		return RUN_NEXT;
	}
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t *at = (uint32_t *)ckt_ptx_memory_quick(
			w, l, a->space, address_of(w, i, l), 4, ACCESS);
		if (!at)
			return RUN_FAULT;
		uint32_t old = __atomic_fetch_add(at, b[l], __ATOMIC_SEQ_CST);
		if (d)
			d[l] = old;
	}
	return RUN_NEXT;
}

static int exec_atomic(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const struct atomic *a = i->side;
	/*
	 * Waiting loops use compare and exchange, exchange, or any atomic whose result they read.
	 */
	w->polls += a->op == A_CAS || a->op == A_EXCH || a->d[0] != PTX_OPERAND_NONE;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t address = address_of(w, i, l);
		uint8_t *at = ckt_ptx_memory_quick(w, l, a->space, address,
			(uint32_t)a->bytes * a->n, CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE);
		if (!at)
			return RUN_FAULT;
		bool in_memory = a->space != SP_SHARED &&
			(address < PTX_SHARED_WINDOW || address >= PTX_CODE_WINDOW);
		if (a->bytes == 16) {
			atomic_128(w, a, at, l);
			continue;
		}
		for (unsigned k = 0; k < a->n; k++, at += a->bytes) {
			uint64_t b = lane_value(w, a->b[k], a->bytes, l),
				 c = lane_value(w, a->c, a->bytes, l), old;
			if (a->bytes == 8)
				old = run_64((uint64_t *)at, a->type, a->op, b, c, in_memory);
			else if (a->bytes == 4)
				old = run_32((uint32_t *)at, a->type, a->op, (uint32_t)b,
					(uint32_t)c, in_memory);
			else
				old = run_16(
					(uint16_t *)at, a->type, a->op, (uint16_t)b, (uint16_t)c);
			if (a->d[k] == PTX_OPERAND_NONE)
				continue;
			if (a->bytes == 8)
				((uint64_t *)ptx_at(w, a->d[k]))[l] = old;
			else
				((uint32_t *)ptx_at(w, a->d[k]))[l] = (uint32_t)old;
		}
	}
	return RUN_NEXT;
}

static unsigned registers(const struct ptx_insn *i, int32_t *ret_regs)
{
	const struct atomic *a = i->side;
	unsigned n = 0;
	ret_regs[n++] = i->a;
	ret_regs[n++] = a->c;
	for (unsigned k = 0; k < a->n && n + 2 <= PTX_FORM_REGS; k++) {
		ret_regs[n++] = a->b[k];
		ret_regs[n++] = a->d[k];
	}
	/* more than the maximum means: any register */
	return a->n > (PTX_FORM_REGS - 2) / 2 ? PTX_FORM_REGS + 1 : n;
}
PTX_FORM_SIDE(exec_atomic, FORM_ATOMIC, registers)
PTX_FORM_SIDE(exec_add_32, FORM_ATOMIC, registers)

/* ---- Decoding */

static void check(struct ptx_parser *p, const struct atomic *a)
{
	bool is_float = ckt_ptx_type_float(a->type);
	bool ok = a->bytes == 4 || a->bytes == 8 ||
		(a->bytes == 2 && (is_float || a->op == A_CAS || a->op == A_EXCH)) ||
		(a->bytes == 16 && (a->op == A_CAS || a->op == A_EXCH));
	if (is_float && a->op > A_MAX)
		ok = false;
	if ((a->op == A_INC || a->op == A_DEC) && a->type != T_U32)
		ok = false;
	if (!ok)
		ckt_ptx_bad(p, "no such atomic operation");
}

static void decode_atomic(struct ptx_parser *p)
{
	static const char *const advice[] = {"relaxed", "acquire", "release", "acq_rel", "cta",
		"cluster", "gpu", "sys", "noftz", NULL};
	static const char *const vectors[] = {"v2", "v4", "v8", NULL};
	bool is_red = p->raw.op[0] == 'r';
	struct atomic *a = ckt_ptx_new(p, sizeof *a);
	enum ptx_space space = ckt_ptx_memory_space(p);
	a->op = ckt_ptx_mod_one(p, atomic_names);
	if (a->op < 0)
		ckt_ptx_bad(p, "unknown atomic operation");
	while (ckt_ptx_mod_one(p, advice) >= 0)
		;
	unsigned at = is_red ? 0 : 1, n_values = a->op == A_CAS ? 2 : 1;
	if (ckt_ptx_mod_prefix(p, "L2::cache_hint") && p->raw.n_operands > at + 1 + n_values)
		p->raw.n_operands--;
	int v = ckt_ptx_mod_one(p, vectors);
	a->n = (uint8_t)(v >= 0 ? 2 << v : 1);
	a->type = ckt_ptx_need_type(p);
	a->bytes = (uint8_t)ckt_ptx_type_bytes(a->type);
	check(p, a);
	ckt_ptx_need_operands(p, at + 1 + n_values, at + 1 + n_values);
	struct ptx_address address = ckt_ptx_decode_address(p, &p->raw.operands[at], space);
	a->space = address.space;
	a->c = a->op == A_CAS ? ckt_ptx_source(p, at + 2, a->type) : PTX_OPERAND_NONE;
	const struct ptx_operand *value = &p->raw.operands[at + 1], *dest = &p->raw.operands[0];
	if (a->n > 1 && (value->kind != OP_VECTOR || value->n_elements != a->n))
		ckt_ptx_bad(p, "elements expected");
	if (a->n > 1 && !is_red && dest->kind != OP_SINK &&
		(dest->kind != OP_VECTOR || dest->n_elements != a->n))
		ckt_ptx_bad(p, "elements expected");
	for (unsigned k = 0; k < a->n; k++) {
		const struct ptx_operand *d =
			a->n > 1 && dest->kind == OP_VECTOR && !is_red ? &dest->elements[k] : dest;
		a->b[k] = ckt_ptx_source_of(p, a->n > 1 ? &value->elements[k] : value, a->type);
		a->d[k] = is_red || d->kind == OP_SINK ? PTX_OPERAND_NONE
						       : ckt_ptx_dest_of(p, d, a->type);
	}
	bool counts = a->op == A_ADD && a->n == 1 && a->bytes == 4 && !ckt_ptx_type_float(a->type);
	struct ptx_insn *i = ckt_ptx_emit(p, counts ? exec_add_32 : exec_atomic);
	i->a = address.operand;
	i->e = address.bytes;
	i->imm = address.imm;
	i->side = a;
}

const struct ptx_opcode ckt_ptx_opcodes_atom[] = {
	{"atom", decode_atomic}, {"red", decode_atomic}, {NULL, NULL}};
