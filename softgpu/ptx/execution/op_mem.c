/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of single elements and vectors in every state space. */
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

enum { ORDER_WEAK = 0, ORDER_STRONG };

/*
 * insn->a: the address or PTX_OPERAND_NONE for the frame, imm: offset, x: space, y: bytes of an
 * element, z: elements | order << 4.
 */

static inline uint64_t address_of(const struct ptx_warp *w, const struct ptx_insn *i, unsigned l)
{
	return ckt_ptx_lane_address(w, i->a, i->e, i->imm, l);
}

/*
 * Loads one element and widens it.  Each size is a single host access, because another block may
 * write the same word at the same moment.  Acquire and release cost nothing on most hosts, so weak
 * accesses have them too.
 */
static inline uint64_t load_element(const uint8_t *from, unsigned bytes)
{
	switch (bytes) {
	case 1:
		return __atomic_load_n(from, __ATOMIC_ACQUIRE);
	case 2:
		return __atomic_load_n((const uint16_t *)from, __ATOMIC_ACQUIRE);
	case 4:
		return __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
	}
}

static inline void store_element(uint8_t *to, unsigned bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		__atomic_store_n(to, (uint8_t)v, __ATOMIC_RELEASE);
		break;
	case 2:
		__atomic_store_n((uint16_t *)to, (uint16_t)v, __ATOMIC_RELEASE);
		break;
	case 4:
		__atomic_store_n((uint32_t *)to, (uint32_t)v, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n((uint64_t *)to, v, __ATOMIC_RELEASE);
		break;
	}
}

typedef long long two_words __attribute__((vector_size(16)));

/*
 * Loads a whole vector or a word of 16 bytes.  A GPU moves it at once if its address is a multiple
 * of its size: CUB keeps a status and its value in one vector, and reads it while another block
 * writes it.  A host with AVX also moves 16 bytes at once; the buffer is aligned for that.
 */
static inline void load_whole(void *buffer, const uint8_t *from, unsigned bytes)
{
	if (bytes <= 8)
		*(uint64_t *)buffer = load_element(from, bytes);
	else if ((uintptr_t)from % 16)
		memcpy(buffer, from, bytes);
	else
		for (unsigned k = 0; k < bytes; k += 16)
			*(two_words *)((uint8_t *)buffer + k) =
				*(const volatile two_words *)(from + k);
}

static inline void store_whole(uint8_t *to, const void *buffer, unsigned bytes)
{
	if (bytes <= 8)
		store_element(to, bytes, *(const uint64_t *)buffer);
	else if ((uintptr_t)to % 16)
		memcpy(to, buffer, bytes);
	else
		for (unsigned k = 0; k < bytes; k += 16)
			*(volatile two_words *)(to + k) =
				*(const two_words *)((const uint8_t *)buffer + k);
}

static inline uint64_t widen(uint64_t v, unsigned bytes, bool sign)
{
	if (!sign)
		return v;
	return bytes == 1    ? (uint64_t)(int64_t)(int8_t)v
		: bytes == 2 ? (uint64_t)(int64_t)(int16_t)v
		: bytes == 4 ? (uint64_t)(int64_t)(int32_t)v
			     : v;
}

/*
 * The common cases have a handler for each space: one weak element of 4 or 8 bytes in a register of
 * that size.  The compiler then knows how to find a lane's memory.
 */
#define PLAIN(name, T, SPACE)                                                                      \
	HANDLER(load_##name)                                                                       \
	{                                                                                          \
		T *d = ptx_at(w, i->d);                                                            \
		for (uint32_t rest = m; rest; rest &= rest - 1) {                                  \
			unsigned l = (unsigned)__builtin_ctz(rest);                                \
			const uint8_t *from = ckt_ptx_memory_quick(                                \
				w, l, SPACE, address_of(w, i, l), sizeof(T), CKT_SOFT_PAGE_READ);  \
			if (!from)                                                                 \
				return RUN_FAULT;                                                  \
			d[l] = __atomic_load_n((const T *)from, __ATOMIC_RELAXED);                 \
		}                                                                                  \
		return RUN_NEXT;                                                                   \
	}                                                                                          \
	HANDLER(store_##name)                                                                      \
	{                                                                                          \
		const T *b = ptx_at(w, i->b);                                                      \
		for (uint32_t rest = m; rest; rest &= rest - 1) {                                  \
			unsigned l = (unsigned)__builtin_ctz(rest);                                \
			uint8_t *to = ckt_ptx_memory_quick(                                        \
				w, l, SPACE, address_of(w, i, l), sizeof(T), CKT_SOFT_PAGE_WRITE); \
			if (!to)                                                                   \
				return RUN_FAULT;                                                  \
			__atomic_store_n((T *)to, b[l], __ATOMIC_RELAXED);                         \
		}                                                                                  \
		return RUN_NEXT;                                                                   \
	}                                                                                          \
	PTX_FORM(load_##name, FORM_LOAD, sizeof(T), 0, 0, 0, 0, NULL)                              \
	PTX_FORM(store_##name, FORM_STORE, sizeof(T), 0, 0, 0, 0, NULL)
PLAIN(global_32, uint32_t, SP_GLOBAL)
PLAIN(global_64, uint64_t, SP_GLOBAL)
PLAIN(shared_32, uint32_t, SP_SHARED)
PLAIN(shared_64, uint64_t, SP_SHARED)
PLAIN(other_32, uint32_t, (enum ptx_space)i->x)
PLAIN(other_64, uint64_t, (enum ptx_space)i->x)

static ptx_handler *plain_access(bool is_load, enum ptx_space space, unsigned bytes)
{
	static ptx_handler *const loads[3][2] = {{load_global_32, load_global_64},
		{load_shared_32, load_shared_64}, {load_other_32, load_other_64}};
	static ptx_handler *const stores[3][2] = {{store_global_32, store_global_64},
		{store_shared_32, store_shared_64}, {store_other_32, store_other_64}};
	unsigned k = space == SP_GLOBAL ? 0 : space == SP_SHARED ? 1 : 2;
	return (is_load ? loads : stores)[k][bytes == 8];
}

/* Loads a parameter of the kernel, which is the same for every lane. */
HANDLER(load_param)
{
	uint64_t address = address_of(w, i, (unsigned)__builtin_ctz(m));
	const uint8_t *from = ckt_ptx_memory(
		w, (unsigned)__builtin_ctz(m), SP_PARAM_ENTRY, address, i->y, CKT_SOFT_PAGE_READ);
	if (!from)
		return RUN_FAULT;
	if (i->y == 4) {
		uint32_t *d = ptx_at(w, i->d), v = *(const uint32_t *)from;
		PTX_FOR_LANES(m, d[l] = v;);
	} else {
		uint64_t *d = ptx_at(w, i->d), v = *(const uint64_t *)from;
		PTX_FOR_LANES(m, d[l] = v;);
	}
	return RUN_NEXT;
}
PTX_FORM(load_param, FORM_PARAM, 0, 0, 0, 0, 0, NULL)

struct element {
	int32_t reg;
	uint8_t slot, sign;
}; /* slot: bytes per lane of the register */

HANDLER(load)
{
	const struct element *elements = i->side;
	unsigned n = i->z & 15, order = i->z >> 4, bytes = i->y;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		const uint8_t *from = ckt_ptx_memory_quick(w, l, (enum ptx_space)i->x,
			address_of(w, i, l), bytes * n, CKT_SOFT_PAGE_READ);
		if (!from)
			return RUN_FAULT;
		_Alignas(16) uint8_t whole[32];
		load_whole(whole, from, bytes * n);
		for (unsigned k = 0; k < n; k++) {
			const struct element *e = &elements[k];
			if (e->reg == PTX_OPERAND_NONE)
				continue;
			void *d = ptx_at(w, e->reg);
			if (bytes == 16) {
				memcpy((uint8_t *)d + 16 * l, whole + 16 * k, 16);
				continue;
			}
			uint64_t v = widen(load_element(whole + bytes * k, bytes), bytes, e->sign);
			if (e->slot == 8)
				((uint64_t *)d)[l] = v;
			else
				((uint32_t *)d)[l] =
					bytes == 2 && !e->sign ? (uint16_t)v : (uint32_t)v;
		}
	}
	w->polls += order != ORDER_WEAK;
	return RUN_NEXT;
}

HANDLER(store)
{
	const struct element *elements = i->side;
	unsigned n = i->z & 15, bytes = i->y;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint8_t *to = ckt_ptx_memory_quick(w, l, (enum ptx_space)i->x, address_of(w, i, l),
			bytes * n, CKT_SOFT_PAGE_WRITE);
		if (!to)
			return RUN_FAULT;
		_Alignas(16) uint8_t whole[32] = {0};
		for (unsigned k = 0; k < n; k++) {
			const struct element *e = &elements[k];
			const void *s = ptx_at(w, e->reg);
			if (bytes == 16)
				memcpy(whole + 16 * k, (const uint8_t *)s + 16 * l, 16);
			else
				store_element(whole + bytes * k, bytes,
					e->slot == 8 ? ((const uint64_t *)s)[l]
						     : ((const uint32_t *)s)[l]);
		}
		store_whole(to, whole, bytes * n);
	}
	return RUN_NEXT;
}

/* Lists the address and then the elements. */
static unsigned registers(const struct ptx_insn *i, int32_t *ret_regs)
{
	const struct element *elements = i->side;
	unsigned n = i->z & 15;
	ret_regs[0] = i->a;
	for (unsigned k = 0; k < n; k++)
		ret_regs[1 + k] = elements[k].reg;
	return 1 + n;
}
PTX_FORM_SIDE(load, FORM_LOADS, registers)
PTX_FORM_SIDE(store, FORM_STORES, registers)

/* The size and sign of a loaded or stored register, for compiled code. */
uint8_t ckt_ptx_element_slot(const struct ptx_insn *i, unsigned k, bool *ret_signed)
{
	const struct element *e = &((const struct element *)i->side)[k];
	*ret_signed = e->sign;
	return e->slot;
}

/* ---- Decoding */

/* Consumes the modifiers that name the space. */
enum ptx_space ckt_ptx_memory_space(struct ptx_parser *p)
{
	static const char *const names[] = {"global", "const", "shared", "shared::cta",
		"shared::cluster", "local", "param", "param::func", "param::entry", NULL};
	static const enum ptx_space spaces[] = {SP_GLOBAL, SP_CONST, SP_SHARED, SP_SHARED,
		SP_SHARED, SP_LOCAL, SP_PARAM, SP_PARAM, SP_PARAM};
	int n = ckt_ptx_mod_one(p, names);
	return n < 0 ? SP_GENERIC : spaces[n];
}

static unsigned take_order(struct ptx_parser *p)
{
	static const char *const orders[] = {
		"weak", "volatile", "relaxed", "acquire", "release", "mmio", NULL};
	static const char *const advice[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "cta",
		"cluster", "gpu", "sys", NULL};
	unsigned order = ORDER_WEAK;
	for (int n; (n = ckt_ptx_mod_one(p, orders)) >= 0;)
		order = n ? ORDER_STRONG : order;
	while (ckt_ptx_mod_one(p, advice) >= 0)
		;
	ckt_ptx_mod_prefix(p, "L1::");
	if (ckt_ptx_mod_prefix(p, "L2::cache_hint") && p->raw.n_operands > 2)
		p->raw.n_operands--; /* drops the hint itself */
	ckt_ptx_mod_prefix(p, "L2::");
	return order;
}

struct ptx_address ckt_ptx_decode_address(
	struct ptx_parser *p, const struct ptx_operand *o, enum ptx_space space)
{
	struct ptx_address address = {
		.operand = PTX_OPERAND_NONE, .imm = (int64_t)o->value, .bytes = 8, .space = space};
	struct ptx_operand name;
	const struct ptx_operand *base = o->elements;
	if (o->indexed &&
		(!strcmp(p->raw.op, "ld") || !strcmp(p->raw.op, "ldu") ||
			!strcmp(p->raw.op, "st"))) {
		name = *o;
		name.value = 0;
		base = &name;
	} else if (o->kind != OP_ADDRESS || o->n_elements > 1) {
		ckt_ptx_bad(p, "address expected");
	}
	if (space == SP_PARAM && p->function->info.is_entry &&
		!(base && base->kind == OP_LOCAL && base->variable->space == SP_PARAM))
		address.space = SP_PARAM_ENTRY;
	if (!base) {
		address.operand = ckt_ptx_constant(p, 0, 0, NULL, 8);
		return address;
	}
	if (base->kind == OP_LOCAL && !base->index_scale) {
		address.imm += base->variable->offset;
		if (base->variable->space == SP_PARAM_ENTRY) {
			if (space != SP_PARAM)
				ckt_ptx_bad(p, "use ld.param to read a parameter");
			address.operand = ckt_ptx_constant(p, 0, 0, NULL, 8);
		} else if (space == SP_GENERIC) {
			/* a local variable without its space: only its generic address works */
			address.imm += (int64_t)PTX_LOCAL_WINDOW;
		}
		return address;
	}
	if (base->kind == OP_LOCAL && base->variable->space == SP_PARAM_ENTRY && space != SP_PARAM)
		ckt_ptx_bad(p, "use ld.param to read a parameter");
	if (base->kind == OP_LOCAL && space == SP_GENERIC)
		address.imm += (int64_t)PTX_LOCAL_WINDOW;
	if (base->kind == OP_REG && ckt_ptx_lane_bytes(base->type) == 4) {
		if (space == SP_GENERIC || space == SP_GLOBAL)
			ckt_ptx_bad(p, "an address of global or generic memory must have 64 bits");
		address.bytes = 4;
		address.operand = base->reg;
		return address;
	}
	address.operand = ckt_ptx_source_of(p, base, T_U64);
	if (base->kind == OP_SYMBOL && base->symbol->space == SP_SHARED && space == SP_GENERIC)
		address.imm += (int64_t)PTX_SHARED_WINDOW;
	return address;
}

/* One access: n elements of the type, weak or strong. */
struct access {
	bool is_load;
	enum ptx_space space;
	unsigned order, n, bytes;
	enum ptx_type type;
};

static struct access take_access(struct ptx_parser *p)
{
	static const char *const vectors[] = {"v2", "v4", "v8", NULL};
	struct access access = {
		.is_load = p->raw.op[0] == 'l', .space = ckt_ptx_memory_space(p), .n = 1};
	access.order = take_order(p);
	int v = ckt_ptx_mod_one(p, vectors);
	if (v >= 0)
		access.n = 2u << v;
	access.type = ckt_ptx_need_type(p);
	access.bytes = ckt_ptx_type_bytes(access.type);
	ckt_ptx_need_operands(p, 2, 2);
	if (!access.bytes || access.bytes * access.n > 32)
		ckt_ptx_bad(p, "unsuitable type");
	if (access.bytes * access.n > 16 && p->target < 100)
		ckt_ptx_bad(p, "vectors of 32 bytes need .target sm_100 or higher");
	return access;
}

/* The loaded or stored operands, one for each element. */
static const struct ptx_operand *element_operands(struct ptx_parser *p, const struct access *access)
{
	const struct ptx_operand *value = &p->raw.operands[access->is_load ? 0 : 1];
	if (value->kind == OP_VECTOR) {
		if (value->n_elements != access->n)
			ckt_ptx_bad(p, "wrong number of elements");
		return value->elements;
	}
	if (access->n > 1)
		ckt_ptx_bad(p, "elements expected");
	return value;
}

static struct element decode_element(
	struct ptx_parser *p, const struct access *access, const struct ptx_operand *o)
{
	struct element e = {.reg = PTX_OPERAND_NONE,
		.slot = (uint8_t)ckt_ptx_lane_bytes(access->type),
		.sign = ckt_ptx_type_signed(access->type)};
	if (access->is_load && o->kind == OP_SINK)
		return e;
	if (o->kind != OP_REG) {
		if (access->is_load)
			ckt_ptx_bad(p, "register expected");
		e.reg = ckt_ptx_source_of(p, o, access->type);
		return e;
	}
	/* A register may be wider than the element. */
	e.slot = (uint8_t)ckt_ptx_lane_bytes(o->type);
	e.reg = o->reg;
	if (o->type == T_PRED || ckt_ptx_type_bytes(o->type) < access->bytes ||
		(access->bytes == 16) != (e.slot == 16))
		ckt_ptx_bad(p, "register too narrow");
	if (!access->is_load && ckt_ptx_type_float(access->type) &&
		e.slot != ckt_ptx_lane_bytes(access->type))
		ckt_ptx_bad(p, "the sizes of the float and its register differ");
	return e;
}

static ptx_handler *access_handler(
	const struct access *access, const struct ptx_address *address, const struct element *first)
{
	bool plain = access->n == 1 && !access->order &&
		(access->bytes == 4 || access->bytes == 8) && first->slot == access->bytes &&
		first->reg != PTX_OPERAND_NONE;
	if (!plain)
		return access->is_load ? load : store;
	if (access->is_load && address->space == SP_PARAM_ENTRY &&
		(address->operand & (int32_t)PTX_CONST_BIT))
		return load_param;
	return plain_access(access->is_load, address->space, access->bytes);
}

static void decode_ld_st(struct ptx_parser *p)
{
	struct access access = take_access(p);
	const struct ptx_operand *parts = element_operands(p, &access);
	struct ptx_address address =
		ckt_ptx_decode_address(p, &p->raw.operands[access.is_load ? 1 : 0], access.space);
	struct element *elements = ckt_ptx_new(p, access.n * sizeof *elements);
	for (unsigned k = 0; k < access.n; k++)
		elements[k] = decode_element(p, &access, &parts[k]);
	struct ptx_insn *i = ckt_ptx_emit(p, access_handler(&access, &address, elements));
	i->a = address.operand;
	i->e = address.bytes;
	i->imm = address.imm;
	i->x = (uint8_t)address.space;
	i->y = (uint8_t)access.bytes;
	i->z = (uint8_t)(access.n | access.order << 4);
	i->side = elements;
	i->d = i->b = elements[0].reg;
}

/* Only cache hints read a policy, and they may be ignored: any value works. */
HANDLER(exec_policy)
{
	uint64_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = 0;);
	return RUN_NEXT;
}

static void decode_createpolicy(struct ptx_parser *p)
{
	bool range = ckt_ptx_mod(p, "range"), converted = ckt_ptx_mod(p, "cvt");
	ckt_ptx_mod_prefix(p, ""); /* legal.c checks the modifiers */
	ckt_ptx_need_operands(p, range ? 4 : converted ? 2 : 1, range ? 4 : 2);
	if (range) {
		ckt_ptx_decode_address(p, &p->raw.operands[1], SP_GENERIC);
		ckt_ptx_source(p, 2, T_U32);
		ckt_ptx_source(p, 3, T_U32);
	} else if (p->raw.n_operands > 1) {
		ckt_ptx_source(p, 1, converted ? T_B64 : T_F32);
	}
	int32_t d = ckt_ptx_dest(p, 0, T_B64);
	ckt_ptx_emit(p, exec_policy)->d = d;
}

const struct ptx_opcode ckt_ptx_opcodes_mem[] = {
	{"ld", decode_ld_st},
	{"ldu", decode_ld_st},
	{"st", decode_ld_st},
	{"createpolicy", decode_createpolicy},
	{NULL, NULL},
};
