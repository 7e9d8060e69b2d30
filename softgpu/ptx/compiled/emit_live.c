/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the blocks of a compiled kernel, and the registers that are read after each instruction. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static bool ends_block(const struct emitter *e, uint32_t pc)
{
	const struct ptx_form *form = e->forms[pc];
	struct emit_access a;
	return !ckt_emit_fits_lane(e, pc) && !ckt_emit_find_access(e, pc, &a) &&
		!ckt_emit_fits_atomic(e, pc) && !(form && form->kind == FORM_NOTHING);
}

void ckt_emit_find_blocks(struct emitter *e)
{
	e->starts[0] = true;
	for (uint32_t pc = 0; pc < e->n; pc++) {
		const struct ptx_insn *i = &e->f->code[pc];
		const struct ptx_form *form = e->forms[pc];
		if (form && form->kind == FORM_BRANCH && (uint64_t)i->imm < e->n)
			e->starts[i->imm] = true;
		for (int64_t k = 0; form && form->kind == FORM_SWITCH && k < i->imm; k++)
			if ((uint32_t)i->list[k] < e->n)
				e->starts[i->list[k]] = true;
		if (!ends_block(e, pc))
			continue;
		if (!form || (form->kind != FORM_BRANCH && form->kind != FORM_END))
			e->starts[pc] = true; /* a waiting group's pc is this instruction */
		if (pc + 1 < e->n)
			e->starts[pc + 1] = true;
	}
	for (uint32_t pc = 0; pc < e->n; pc++) {
		if (!e->starts[pc])
			continue;
		e->block_of[pc] = e->n_blocks;
		e->blocks[e->n_blocks++] = (struct emit_block){.first = pc};
	}
	for (uint32_t b = 0; b < e->n_blocks; b++)
		e->blocks[b].end = b + 1 < e->n_blocks ? e->blocks[b + 1].first : e->n;
}

static uint32_t id_of(struct emitter *e, int32_t operand)
{
	uint32_t *id = &e->ids[(uint32_t)operand / 4];
	if (!*id)
		*id = ++e->n_ids;
	return *id - 1;
}

static void set_bit(uint64_t *bits, uint32_t n)
{
	bits[n / 64] |= 1ull << n % 64;
}

/* Changes live from the registers read after the instruction to those read before it. */
static void live_before(struct emitter *e, uint32_t pc, uint64_t *live)
{
	struct emit_touched t;
	ckt_emit_touch(e->forms[pc], &e->f->code[pc], &t);
	if (t.all) {
		memset(live, 0xff, e->words * sizeof *live);
		return;
	}
	for (unsigned k = 0; k < t.n_writes; k++) {
		uint32_t id = id_of(e, t.writes[k]);
		live[id / 64] &= ~(1ull << id % 64);
	}
	for (unsigned k = 0; k < t.n_reads; k++)
		set_bit(live, id_of(e, t.reads[k]));
}

static void join(const struct emitter *e, uint64_t *live, uint32_t pc)
{
	if (pc >= e->n)
		return;
	const uint64_t *from = e->blocks[e->block_of[pc]].live_in;
	for (uint32_t k = 0; k < e->words; k++)
		live[k] |= from[k];
}

/* The registers that are read after a block. */
static void live_behind(const struct emitter *e, const struct emit_block *b, uint64_t *live)
{
	uint32_t last = b->end - 1;
	const struct ptx_insn *i = &e->f->code[last];
	const struct ptx_form *form = e->forms[last];
	bool guarded = i->guard != PTX_OPERAND_NONE;
	memset(live, 0, e->words * sizeof *live);
	if (form && form->kind == FORM_BRANCH) {
		join(e, live, (uint32_t)i->imm);
		if (!guarded)
			return;
	} else if (form && form->kind == FORM_SWITCH) {
		for (int64_t k = 0; k < i->imm; k++)
			join(e, live, (uint32_t)i->list[k]);
	} else if (form && form->kind == FORM_END && !guarded) {
		return;
	}
	join(e, live, b->end);
}

bool ckt_emit_find_live(struct emitter *e)
{
	/* Number every register first, because the sets need their size. */
	for (uint32_t pc = 0; pc < e->n; pc++) {
		struct emit_touched t;
		ckt_emit_touch(e->forms[pc], &e->f->code[pc], &t);
		for (unsigned k = 0; k < t.n_reads; k++)
			id_of(e, t.reads[k]);
		for (unsigned k = 0; k < t.n_writes; k++)
			id_of(e, t.writes[k]);
	}
	e->words = e->n_ids / 64 + 1;
	if ((uint64_t)e->words * e->n_blocks > (64u << 20) / 8)
		return false;
	e->live = calloc((size_t)e->words * (e->n_blocks + 1), sizeof *e->live);
	if (!e->live)
		return false;
	for (uint32_t b = 0; b < e->n_blocks; b++)
		e->blocks[b].live_in = e->live + (size_t)e->words * (b + 1);
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t b = e->n_blocks; b-- > 0;) {
			live_behind(e, &e->blocks[b], e->live);
			for (uint32_t pc = e->blocks[b].end; pc-- > e->blocks[b].first;)
				live_before(e, pc, e->live);
			if (memcmp(e->live, e->blocks[b].live_in, e->words * sizeof *e->live)) {
				memcpy(e->blocks[b].live_in, e->live, e->words * sizeof *e->live);
				changed = true;
			}
		}
	}
	return true;
}

void ckt_emit_live_at(struct emitter *e, const struct emit_block *b, uint32_t end)
{
	live_behind(e, b, e->live);
	for (uint32_t pc = b->end; pc-- > end;)
		live_before(e, pc, e->live);
}

bool ckt_emit_is_live(struct emitter *e, int32_t reg)
{
	uint32_t id = id_of(e, reg);
	return e->live[id / 64] >> id % 64 & 1;
}
