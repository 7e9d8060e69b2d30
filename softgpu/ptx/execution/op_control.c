/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, calls, returns, the end of threads, and the barriers of a block. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/builtin.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

/*
 * ---- Branches. m excludes lanes that failed the guard; the group's other lanes continue after the
 * branch
 */

HANDLER(exec_bra)
{
	if (m == w->mask) {
		w->pc = (uint32_t)i->imm;
		return RUN_JUMP;
	}
	ckt_ptx_group_store(w, w->frame, w->mask & ~m, w->pc);
	ckt_ptx_group_store(w, w->frame, m, (uint32_t)i->imm);
	return RUN_PICK;
}
PTX_FORM(exec_bra, FORM_BRANCH, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_brx)
{
	const uint32_t *a = ptx_at(w, i->a);
	if (w->mask & ~m)
		ckt_ptx_group_store(w, w->frame, w->mask & ~m, w->pc);
	while (m) {
		unsigned lane = (unsigned)__builtin_ctz(m);
		uint32_t index = a[lane], same = 0;
		if (index >= (uint64_t)i->imm)
			return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_INVALID_PC,
				"brx.idx %u of %u targets", index, (unsigned)i->imm);
		for (uint32_t rest = m; rest; rest &= rest - 1)
			if (a[__builtin_ctz(rest)] == index)
				same |= rest & -rest;
		ckt_ptx_group_store(w, w->frame, same, (uint32_t)i->list[index]);
		m &= ~same;
	}
	return RUN_PICK;
}
PTX_FORM(exec_brx, FORM_SWITCH, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_exit)
{
	if (w->mask & ~m)
		ckt_ptx_group_store(w, w->frame, w->mask & ~m, w->pc);
	for (struct ptx_frame *frame = w->frame, *parent; frame; frame = parent) {
		parent = frame->parent;
		ckt_ptx_frame_leave(w, frame, m);
	}
	ckt_ptx_lanes_exit(w, m);
	return RUN_PICK;
}
PTX_FORM(exec_exit, FORM_END, 0, 0, 0, 0, 0, NULL)

/* Copies a function's results into the caller's variables and returns there. */
HANDLER(exec_ret)
{
	struct ptx_frame *frame = w->frame, *parent = frame->parent;
	if (!parent)
		return exec_exit(w, i, m);
	const struct ptx_call *call = frame->call;
	const struct ckt_ptx_function *f = frame->function;
	for (unsigned k = 0; k < call->n_rets && k < f->n_rets; k++) {
		uint32_t size = call->ret_sizes[k] < f->rets[k].size_bytes ? call->ret_sizes[k]
									   : f->rets[k].size_bytes;
		for (uint32_t rest = m; rest; rest &= rest - 1) {
			unsigned l = (unsigned)__builtin_ctz(rest);
			memcpy(ckt_ptx_local(w, l, parent->local_base + call->rets[k]),
				ckt_ptx_local(w, l, frame->local_base + f->rets[k].offset_bytes),
				size);
		}
	}
	uint32_t others = w->mask & ~m, return_pc = frame->return_pc;
	if (others)
		ckt_ptx_group_store(w, frame, others, w->pc);
	ckt_ptx_group_store(w, parent, m, return_pc);
	ckt_ptx_frame_leave(w, frame, m);
	return RUN_PICK;
}
PTX_FORM(exec_ret, FORM_END, 0, 0, 0, 0, 0, NULL)

/* ---- Calls */

/* Moves lanes m into a new activation of f, and stores them as a group at its start. */
static int enter(
	struct ptx_warp *w, const struct ptx_insn *i, const struct ckt_ptx_function *f, uint32_t m)
{
	const struct ptx_call *call = i->call;
	struct ptx_frame *caller = w->frame;
	unsigned lane = (unsigned)__builtin_ctz(m);
	/*
	 * A caller may declare other parameters than the function has.  The call then passes only
	 * those that both declare, as registers of a GPU would.
	 */
	uint64_t base =
		(uint64_t)caller->local_base + caller->function->frame_bytes + caller->extra;
	if (base + f->frame_bytes > w->stack_bytes)
		return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_STACK_OVERFLOW, "stack overflow in %s",
			f->info.name);
	struct ptx_frame *frame = ckt_ptx_frame_enter(w, f, caller, m);
	if (!frame)
		return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_LAUNCH_FAILURE, "out of memory");
	frame->call = call;
	frame->return_pc = w->pc;
	for (unsigned k = 0; k < call->n_args && k < f->info.n_params; k++) {
		uint32_t size = call->arg_sizes[k] < f->params[k].size_bytes
			? call->arg_sizes[k]
			: f->params[k].size_bytes;
		for (uint32_t rest = m; rest; rest &= rest - 1) {
			unsigned l = (unsigned)__builtin_ctz(rest);
			memcpy(ckt_ptx_local(w, l, frame->local_base + f->params[k].offset_bytes),
				ckt_ptx_local(w, l, caller->local_base + call->args[k]), size);
		}
	}
	ckt_ptx_group_store(w, frame, m, 0);
	return RUN_PICK;
}

HANDLER(exec_call)
{
	const struct ptx_symbol *symbol = i->call->symbol->target;
	if (w->mask & ~m)
		ckt_ptx_group_store(w, w->frame, w->mask & ~m, w->pc);
	if (symbol->function)
		return enter(w, i, symbol->function, m);
	w->mask = m;
	int r = ckt_ptx_builtin_run(w, i->call, symbol->builtin, m);
	return r == RUN_NEXT ? RUN_JUMP : r;
}
PTX_FORM(exec_call, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_call_indirect)
{
	const uint64_t *a = ptx_at(w, i->a);
	const struct ckt_ptx_module *module = w->frame->function->module;
	if (w->mask & ~m)
		ckt_ptx_group_store(w, w->frame, w->mask & ~m, w->pc);
	while (m) {
		unsigned lane = (unsigned)__builtin_ctz(m);
		uint64_t address = a[lane], index = (address - PTX_CODE_WINDOW) >> 4;
		uint32_t same = 0;
		for (uint32_t rest = m; rest; rest &= rest - 1)
			if (a[__builtin_ctz(rest)] == address)
				same |= rest & -rest;
		if (address < PTX_CODE_WINDOW || (address & 15) || index >= module->n_functions ||
			module->functions[index]->info.is_entry ||
			!w->block->grid->prepared->pools[index])
			return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_INVALID_PC,
				"indirect call to 0x%llx", (unsigned long long)address);
		int r = enter(w, i, module->functions[index], same);
		if (r != RUN_PICK)
			return r;
		m &= ~same;
	}
	return RUN_PICK;
}
PTX_FORM(exec_call_indirect, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* ---- Other instructions */

HANDLER(exec_trap)
{
	return ckt_ptx_fault(
		w, (unsigned)__builtin_ctz(m), CKT_PTX_FAULT_TRAP, i->x ? "breakpoint" : "trap");
}
PTX_FORM(exec_trap, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

int ckt_ptx_exec_refused(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	(void)i;
	return ckt_ptx_fault(w, (unsigned)__builtin_ctz(m), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION, "%s",
		w->frame->function->refusal);
}
PTX_FORM(ckt_ptx_exec_refused, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_nanosleep)
{
	(void)i;
	(void)m;
	return RUN_YIELD;
}
PTX_FORM(exec_nanosleep, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_nothing)
{
	(void)w;
	(void)i;
	(void)m;
	return RUN_NEXT;
}
PTX_FORM(exec_nothing, FORM_NOTHING, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_fence)
{
	(void)w;
	(void)i;
	(void)m;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return RUN_NEXT;
}
PTX_FORM(exec_fence, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/*
 * bar and barrier.  x: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or.  a: barrier, b: thread
 * count or none, c: predicate, d: result.  Every warp keeps its arrivals; ckt_ptx_barriers_check
 * completes a barrier when enough threads have arrived.
 */
HANDLER(exec_barrier)
{
	struct ptx_block *block = w->block;
	unsigned lane = (unsigned)__builtin_ctz(m);
	uint32_t id = ((const uint32_t *)ptx_at(w, i->a))[lane];
	uint32_t count = i->b == PTX_OPERAND_NONE ? 0 : ((const uint32_t *)ptx_at(w, i->b))[lane];
	if (id >= PTX_MAX_BARRIERS)
		return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_INSTRUCTION, "barrier %u", id);
	if (count % PTX_LANES)
		return ckt_ptx_fault(w, lane, CKT_PTX_FAULT_ILLEGAL_INSTRUCTION,
			"barrier for %u threads: not a multiple of 32", count);
	struct ptx_barrier *bar = &block->barriers[id];
	bar->expected = count;
	bar->arrived += (uint32_t)__builtin_popcount(m & ~w->arrived[id]);
	w->arrived[id] |= m;
	if (i->x >= 2) {
		uint32_t p = *(uint32_t *)ptx_at(w, i->c);
		bar->red_count += (uint32_t)__builtin_popcount(p & m);
		bar->red_lanes += (uint32_t)__builtin_popcount(m);
	}
	uint32_t others = w->mask & ~m;
	if (others)
		ckt_ptx_group_store(w, w->frame, others, w->pc);
	ckt_ptx_group_store(w, w->frame, m, w->pc);
	if (i->x != 1) {
		w->groups[w->n_groups - 1].state = GROUP_BARRIER;
		w->groups[w->n_groups - 1].barrier = (uint8_t)id;
	}
	ckt_ptx_barriers_check(block);
	return RUN_PICK;
}
PTX_FORM(exec_barrier, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* ---- Decoding */

static void decode_bra(struct ptx_parser *p)
{
	ckt_ptx_mod(p, "uni");
	ckt_ptx_need_operands(p, 1, 1);
	ckt_ptx_emit(p, exec_bra);
	ckt_ptx_label(p, &p->raw.operands[0], (uint32_t)(p->function->n_code - 1), NULL);
}

static void decode_brx(struct ptx_parser *p)
{
	ckt_ptx_mod(p, "uni");
	if (!ckt_ptx_mod(p, "idx"))
		ckt_ptx_bad(p, "brx.idx expected");
	ckt_ptx_need_operands(p, 2, 2);
	const struct ptx_operand *o = &p->raw.operands[1];
	const struct ptx_name *entry =
		o->kind == OP_NAME ? ckt_ptx_lookup(p, p->scope, o->name, o->name_size) : NULL;
	if (!entry || entry->kind != NAME_TARGETS)
		ckt_ptx_bad(p, "no such .branchtargets");
	int32_t a = ckt_ptx_source(p, 0, T_U32);
	int32_t *list = ckt_ptx_new(p, entry->targets->n * sizeof *list);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_brx);
	i->a = a;
	i->list = list;
	i->imm = entry->targets->n;
	for (uint32_t k = 0; k < entry->targets->n; k++) {
		struct ptx_operand label = {.kind = OP_NAME,
			.name = entry->targets->names[k],
			.name_size = entry->targets->name_sizes[k]};
		ckt_ptx_label(p, &label, (uint32_t)(p->function->n_code - 1), &list[k]);
	}
}

/*
 * Copies a register's or constant's value into the parameter variable at imm of the frame, or back.
 * x: bytes per lane; y: 1 to copy back; z: bytes of the type.
 */
HANDLER(exec_pass)
{
	uint8_t *row = ptx_at(w, i->a);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint8_t *lane = row + (size_t)l * i->x,
			*variable = ckt_ptx_local(w, l, w->frame->local_base + (uint32_t)i->imm);
		if (i->y)
			memset(lane, 0, i->x);
		memcpy(i->y ? lane : variable, i->y ? variable : lane, i->z);
	}
	return RUN_NEXT;
}
PTX_FORM(exec_pass, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void emit_pass(
	struct ptx_parser *p, int32_t reg, enum ptx_type type, uint32_t offset, bool back)
{
	struct ptx_insn *i = ckt_ptx_emit(p, exec_pass);
	i->a = reg;
	i->x = (uint8_t)ckt_ptx_lane_bytes(type);
	i->y = back;
	i->z = (uint8_t)ckt_ptx_type_bytes(type);
	i->imm = offset;
}

/*
 * Collects the parameter variables of one list.  A register or constant gets a variable of its own,
 * which is filled before the call.
 */
static uint32_t call_list(struct ptx_parser *p, const struct ptx_operand *list, bool are_rets,
	uint32_t **ret_offsets, uint32_t **ret_sizes)
{
	struct ckt_ptx_function *f = p->function;
	uint32_t n = list ? list->n_elements : 0;
	*ret_offsets = ckt_ptx_new(p, n * sizeof **ret_offsets);
	*ret_sizes = ckt_ptx_new(p, n * sizeof **ret_sizes);
	for (uint32_t k = 0; k < n; k++) {
		const struct ptx_operand *o = &list->elements[k];
		if (o->kind == OP_LOCAL && o->variable->space == SP_PARAM && !o->indexed &&
			!o->value) {
			(*ret_offsets)[k] = o->variable->offset;
			(*ret_sizes)[k] = o->variable->size;
			continue;
		}
		bool is_constant = o->kind == OP_CONST && !are_rets;
		if (!is_constant && o->kind != OP_REG && !(o->kind == OP_SINK && are_rets))
			ckt_ptx_bad(
				p, "parameter variable, register or constant expected in a call");
		/* The callee's parameter determines how many bytes of a constant it takes. */
		enum ptx_type type = o->kind == OP_REG ? o->type : T_B64;
		if (type == T_PRED)
			ckt_ptx_bad(p, "a predicate cannot be a parameter");
		f->frame_bytes = (f->frame_bytes + 15) & ~15u;
		(*ret_offsets)[k] = f->frame_bytes;
		(*ret_sizes)[k] = ckt_ptx_type_bytes(type);
		f->frame_bytes += 16;
		if (!are_rets)
			emit_pass(p, o->kind == OP_REG ? o->reg : ckt_ptx_source_of(p, o, type),
				type, (*ret_offsets)[k], false);
	}
	return n;
}

static void decode_call(struct ptx_parser *p)
{
	ckt_ptx_mod(p, "uni");
	struct ptx_raw *raw = &p->raw;
	unsigned at = 0;
	const struct ptx_operand *rets = NULL, *args = NULL;
	struct ptx_call *call = ckt_ptx_new(p, sizeof *call);
	if (at < raw->n_operands && raw->operands[at].kind == OP_LIST)
		rets = &raw->operands[at++];
	if (at >= raw->n_operands)
		ckt_ptx_bad(p, "function expected");
	const struct ptx_operand *callee = &raw->operands[at++];
	if (at < raw->n_operands && raw->operands[at].kind == OP_LIST)
		args = &raw->operands[at++];
	call->n_rets = call_list(p, rets, true, &call->rets, &call->ret_sizes);
	call->n_args = call_list(p, args, false, &call->args, &call->arg_sizes);
	if (callee->kind == OP_SYMBOL && callee->symbol->kind == SYM_FUNCTION) {
		call->symbol = callee->symbol;
		PTX_PUSH(p, p->function->callees, p->function->n_callees, p->function->cap_callees,
			callee->symbol);
		ckt_ptx_emit(p, exec_call)->call = call;
	} else if (callee->kind == OP_REG) {
		const struct ptx_operand *type = at < raw->n_operands ? &raw->operands[at] : NULL;
		const struct ptx_name *entry = type && type->kind == OP_NAME
			? ckt_ptx_lookup(p, p->scope, type->name, type->name_size)
			: NULL;
		if (!entry || (entry->kind != NAME_PROTOTYPE && entry->kind != NAME_TARGETS))
			ckt_ptx_bad(p, "no such .callprototype or .calltargets");
		int32_t a = ckt_ptx_source_of(p, callee, T_U64);
		p->function->has_indirect_call = true;
		struct ptx_insn *i = ckt_ptx_emit(p, exec_call_indirect);
		i->a = a;
		i->call = call;
	} else {
		ckt_ptx_fail(p, CKT_PTX_INVALID, "function %.*s is not declared",
			(int)callee->name_size, callee->name ? callee->name : "");
	}
	for (uint32_t k = 0; k < call->n_rets; k++)
		if (rets->elements[k].kind == OP_REG)
			emit_pass(p, rets->elements[k].reg, rets->elements[k].type, call->rets[k],
				true);
}

static void decode_simple(struct ptx_parser *p)
{
	static const struct {
		const char *name;
		ptx_handler *fn;
	} simple[] = {{"ret", exec_ret}, {"exit", exec_exit}, {"trap", exec_trap},
		{"brkpt", exec_trap}, {"pmevent", exec_nothing}, {"discard", exec_nothing},
		{"prefetch", exec_nothing}, {"prefetchu", exec_nothing},
		{"applypriority", exec_nothing}, {"setmaxnreg", exec_nothing},
		{"griddepcontrol", exec_nothing}};
	ckt_ptx_mod(p, "uni");
	if (!strcmp(p->raw.op, "pmevent")) {
		ckt_ptx_need_operands(p, 1, 1);
		if (p->raw.operands[0].kind != OP_CONST)
			ckt_ptx_bad(p, "constant expected");
	}
	/* prefetch.global.L2 [a], setmaxnreg.inc.sync.aligned.u32 n: hints */
	if (p->raw.n_operands)
		ckt_ptx_mod_prefix(p, "");
	if (!strcmp(p->raw.op, "griddepcontrol"))
		ckt_ptx_mod_prefix(p, "");
	for (size_t k = 0; k < sizeof simple / sizeof *simple; k++)
		if (!strcmp(p->raw.op, simple[k].name))
			ckt_ptx_emit(p, simple[k].fn)->x = p->raw.op[0] == 'b';
}

static void decode_nanosleep(struct ptx_parser *p)
{
	ckt_ptx_need_type(p);
	ckt_ptx_emit(p, exec_nanosleep);
}

static void decode_fence(struct ptx_parser *p)
{
	ckt_ptx_mod_prefix(p, ""); /* legal.c checks the modifiers; every form is one full fence */
	ckt_ptx_emit(p, exec_fence);
}

static void decode_bar(struct ptx_parser *p)
{
	static const char *const kinds[] = {"sync", "arrive", "red", NULL},
				 *const joins[] = {"popc", "and", "or", NULL};
	ckt_ptx_mod(p, "cta");
	ckt_ptx_mod(p, "aligned");
	if (ckt_ptx_mod(p, "warp")) {
		ckt_ptx_decode_warp_barrier(p);
		return;
	}
	if (ckt_ptx_mod(p, "cluster")) {
		ckt_ptx_decode_cluster_barrier(p);
		return;
	}
	int kind = ckt_ptx_mod_one(p, kinds), join = -1;
	if (kind < 0)
		ckt_ptx_bad(p, ".sync, .arrive or .red expected");
	unsigned at = 0;
	int32_t d = PTX_OPERAND_NONE, c = PTX_OPERAND_NONE, b = PTX_OPERAND_NONE;
	if (kind == 2) {
		join = ckt_ptx_mod_one(p, joins);
		enum ptx_type type = ckt_ptx_need_type(p);
		if (join < 0 || (join == 0) != (type == T_U32) || (join && type != T_PRED))
			ckt_ptx_bad(p, "unknown reduction");
		ckt_ptx_need_operands(p, 3, 4);
		d = ckt_ptx_dest(p, at++, type);
		c = ckt_ptx_pred_source(p, &p->raw.operands[p->raw.n_operands - 1]);
	} else {
		ckt_ptx_need_operands(p, 1, 2);
	}
	int32_t a = ckt_ptx_source(p, at++, T_U32);
	if (at + (kind == 2) < p->raw.n_operands)
		b = ckt_ptx_source(p, at, T_U32);
	else if (kind == 1)
		ckt_ptx_bad(p, "arrive needs a number of threads");
	struct ptx_insn *i = ckt_ptx_emit(p, exec_barrier);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->x = (uint8_t)(kind < 2 ? kind : 2 + join);
}

const struct ptx_opcode ckt_ptx_opcodes_control[] = {
	{"bra", decode_bra},
	{"brx", decode_brx},
	{"call", decode_call},
	{"ret", decode_simple},
	{"exit", decode_simple},
	{"trap", decode_simple},
	{"brkpt", decode_simple},
	{"pmevent", decode_simple},
	{"discard", decode_simple},
	{"prefetch", decode_simple},
	{"prefetchu", decode_simple},
	{"applypriority", decode_simple},
	{"setmaxnreg", decode_simple},
	{"griddepcontrol", decode_simple},
	{"nanosleep", decode_nanosleep},
	{"membar", decode_fence},
	{"fence", decode_fence},
	{"bar", decode_bar},
	{"barrier", decode_bar},
	{NULL, NULL},
};
