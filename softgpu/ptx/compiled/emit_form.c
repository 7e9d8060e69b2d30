/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of a compiled kernel: the form of a handler, and the registers and constants
 * that an instruction touches.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

extern const struct ptx_form *const __start_ptx_forms[] __attribute__((visibility("hidden")));
extern const struct ptx_form *const __stop_ptx_forms[] __attribute__((visibility("hidden")));
static const struct ptx_form **sorted;
static size_t n_sorted;
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

static int by_handler(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)(*(const struct ptx_form *const *)a)->fn,
		  y = (uintptr_t)(*(const struct ptx_form *const *)b)->fn;
	return (x > y) - (x < y);
}

static void sort_forms(void)
{
	size_t n = (size_t)(__stop_ptx_forms - __start_ptx_forms);
	sorted = malloc(n * sizeof *sorted);
	if (!sorted)
		return;
	memcpy(sorted, __start_ptx_forms, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_handler);
	n_sorted = n;
}

const struct ptx_form *ckt_ptx_form(ptx_handler *fn)
{
	pthread_once(&sorted_once, sort_forms);
	size_t low = 0, high = n_sorted;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if ((uintptr_t)sorted[middle]->fn < (uintptr_t)fn)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n_sorted && sorted[low]->fn == fn ? sorted[low] : NULL;
}

/* ---- Operands */

const struct ptx_constant *ckt_emit_constant(const struct ckt_ptx_function *f, int32_t operand)
{
	uint32_t offset = (uint32_t)operand & 0x7fffffffu;
	size_t low = 0, high = f->n_constants;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (f->constants[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->n_constants && f->constants[low].offset == offset ? &f->constants[low]
									  : NULL;
}

static void reads(struct emit_touched *t, int32_t operand)
{
	if (ckt_emit_is_register(operand) && t->n_reads < 2 * PTX_FORM_REGS)
		t->reads[t->n_reads++] = operand;
}

static void writes(struct emit_touched *t, int32_t operand)
{
	if (ckt_emit_is_register(operand) && t->n_writes < PTX_FORM_REGS)
		t->writes[t->n_writes++] = operand;
}

static void touch_side(
	struct emit_touched *t, const struct ptx_form *form, const struct ptx_insn *i)
{
	int32_t regs[PTX_FORM_REGS];
	unsigned n = form->regs(i, regs);
	if (n > PTX_FORM_REGS) {
		t->all = true;
		return;
	}
	for (unsigned k = 0; k < n; k++) {
		if (form->kind == FORM_LOADS && k > 0)
			writes(t, regs[k]);
		else
			reads(t, regs[k]);
	}
}

void ckt_emit_touch(const struct ptx_form *form, const struct ptx_insn *i, struct emit_touched *t)
{
	*t = (struct emit_touched){.all = !form};
	reads(t, i->guard);
	switch (form ? form->kind : FORM_NOTHING) {
	case FORM_PLAIN:
		reads(t, i->a), reads(t, i->b), reads(t, i->c), reads(t, i->d), reads(t, i->e);
		break;
	case FORM_SIDE:
	case FORM_ATOMIC:
	case FORM_WARP:
	case FORM_LOADS:
	case FORM_STORES:
		touch_side(t, form, i);
		break;
	case FORM_LANE:
		if (form->a)
			reads(t, i->a);
		if (form->b)
			reads(t, i->b);
		if (form->c)
			reads(t, i->c);
		if (form->e)
			reads(t, i->e);
		writes(t, i->d);
		break;
	case FORM_COMPARE:
		reads(t, i->a), reads(t, i->b);
		if (i->x)
			reads(t, i->c);
		writes(t, i->d), writes(t, i->e);
		break;
	case FORM_PACK:
	case FORM_UNPACK:
		t->all = i->x > PTX_FORM_REGS;
		for (unsigned k = 0; k < i->x && !t->all; k++)
			(form->kind == FORM_PACK ? reads : writes)(t, i->list[k]);
		(form->kind == FORM_PACK ? writes : reads)(
			t, form->kind == FORM_PACK ? i->d : i->a);
		break;
	case FORM_SREG:
	case FORM_MASK:
	case FORM_PARAM:
		writes(t, i->d);
		break;
	case FORM_LOAD:
		reads(t, i->a), writes(t, i->d);
		break;
	case FORM_STORE:
		reads(t, i->a), reads(t, i->b);
		break;
	case FORM_SWITCH:
		reads(t, i->a);
		break;
	default:
		break;
	}
	/* A lane that fails the guard keeps the old value, so the old value is read. */
	if (i->guard != PTX_OPERAND_NONE)
		for (unsigned k = 0; k < t->n_writes; k++)
			reads(t, t->writes[k]);
}
