/*
 * A kernel as C: what the interpreter would do, written out.
 *
 * A function becomes ckt_kernel_INDEX, which runs one group of lanes as run_group does (sched.c): from warp->pc until the group meets
 * another, is split, waits, faults or has used its budget.  Groups, barriers and fairness stay the scheduler's, so progress is the same.
 *
 *   block      instructions from a place where a group may begin to the next; each looks at the budget and at the meeting point
 *   stretch    instructions of a block that lanes compute by themselves: one loop over the lanes, which the C compiler turns into vector
 *              instructions; registers are read before it and written behind it, those nobody reads again are not
 *   the rest   loads and stores are done here where all goes well, by their handlers where not; everything else is a call of its handler
 *
 * What a lane computes is the text of the handler's own expression (form.h), so the two answer the same bits.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compile.h"
#include "softgpu/ptx/form.h"

enum {
	STRETCH = 64,		/* instructions of one: a compiler's time grows faster than their number */
	MOST_INSNS = 10000,	/* of all functions: a minute of compiling */
	VALUE = 48,		/* bytes of the longest name of an operand's value, or its text */
};

struct block { uint32_t first, end; uint64_t *live_in; };

struct emitter {
	FILE *out;
	const struct ckt_ptx_function *f;
	uint32_t param_bytes, n;
	const struct ptx_form **forms;
	bool *starts;			/* by instruction: a block starts here */
	struct block *blocks;
	uint32_t n_blocks, *block_of;	/* by instruction that starts one */
	uint32_t *ids, n_ids, words;	/* by offset / 4: number of a register plus one */
	uint64_t *live;
	bool *said;			/* functions of loads and stores, by access_number */
	bool failed;
};

static void __attribute__((format(printf, 2, 3))) say(struct emitter *e, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (vfprintf(e->out, format, ap) < 0)
		e->failed = true;
	va_end(ap);
}

/* ---- Forms, by handler */

extern const struct ptx_form *const __start_ptx_forms[] __attribute__((visibility("hidden")));
extern const struct ptx_form *const __stop_ptx_forms[] __attribute__((visibility("hidden")));
static const struct ptx_form **sorted;
static size_t n_sorted;
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

static int by_handler(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)(*(const struct ptx_form *const *)a)->fn, y = (uintptr_t)(*(const struct ptx_form *const *)b)->fn;
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

static bool is_register(int32_t operand) { return operand != PTX_OPERAND_NONE && operand >= 0; }

static const struct ptx_constant *constant_of(const struct ckt_ptx_function *f, int32_t operand)
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
	return low < f->n_constants && f->constants[low].offset == offset ? &f->constants[low] : NULL;
}

/* The registers that an instruction reads, and those it writes.  all: it may touch any. */
struct touched {
	int32_t reads[2 * PTX_FORM_REGS], writes[PTX_FORM_REGS];
	unsigned n_reads, n_writes;
	bool all;
};

static void reads(struct touched *t, int32_t operand)
{
	if (is_register(operand) && t->n_reads < 2 * PTX_FORM_REGS)
		t->reads[t->n_reads++] = operand;
}

static void writes(struct touched *t, int32_t operand)
{
	if (is_register(operand) && t->n_writes < PTX_FORM_REGS)
		t->writes[t->n_writes++] = operand;
}

static void touch_side(struct touched *t, const struct ptx_form *form, const struct ptx_insn *i)
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

static void touch(const struct ptx_form *form, const struct ptx_insn *i, struct touched *t)
{
	*t = (struct touched){.all = !form};
	reads(t, i->guard);
	switch (form ? form->kind : FORM_NOTHING) {
	case FORM_PLAIN:
		reads(t, i->a), reads(t, i->b), reads(t, i->c), reads(t, i->d), reads(t, i->e);
		break;
	case FORM_SIDE: case FORM_LOADS: case FORM_STORES: touch_side(t, form, i); break;
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
	case FORM_PACK: case FORM_UNPACK:
		t->all = i->x > PTX_FORM_REGS;
		for (unsigned k = 0; k < i->x && !t->all; k++)
			(form->kind == FORM_PACK ? reads : writes)(t, i->list[k]);
		(form->kind == FORM_PACK ? writes : reads)(t, form->kind == FORM_PACK ? i->d : i->a);
		break;
	case FORM_SREG: case FORM_PARAM: writes(t, i->d); break;
	case FORM_LOAD: reads(t, i->a), writes(t, i->d); break;
	case FORM_STORE: reads(t, i->a), reads(t, i->b); break;
	case FORM_SWITCH: reads(t, i->a); break;
	default: break;
	}
	/* Who fails the guard keeps the old value. */
	if (i->guard != PTX_OPERAND_NONE)
		for (unsigned k = 0; k < t->n_writes; k++)
			reads(t, t->writes[k]);
}

/* ---- What is computed lane by lane */

/* Whether a compiler finds no vector instructions for it: such a one gets a loop of its own, so that it spoils none. */
static bool is_lonely(const struct ptx_form *form)
{
	static const char *const names[] = {"divide_u", "divide_s", "modulo_", "mul_hi_u64", "mul_hi_s64", "mad_hi_u64", "mad_hi_s64", "popc_", "clz_", "bfind_",
					    "fns", "fma_f32", "fma_f64", "brev_64", "u64_to_f", "s64_to_f", "f32_to_s64", "f64_to_s64", "f32_to_u32"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (!strncmp(form->name, names[k], strlen(names[k])))
			return true;
	return false;
}

static bool fits_lane(const struct emitter *e, uint32_t pc)
{
	const struct ptx_form *form = e->forms[pc];
	const struct ptx_insn *i = &e->f->code[pc];
	char text[128];
	if (!form)
		return false;
	switch (form->kind) {
	case FORM_LANE: return form->d <= 8 && form->a <= 8 && form->b <= 8 && form->c <= 8 && is_register(i->d);
	case FORM_COMPARE: return is_register(i->d);
	case FORM_PACK: case FORM_UNPACK: return i->z <= 8 && i->x <= PTX_FORM_REGS;
	case FORM_NOTHING: return true;
	case FORM_SREG: return i->y && (ckt_ptx_sreg_text(i->x, text, sizeof text) || ckt_ptx_sreg_uniform_text(i->x, text, sizeof text));
	case FORM_PARAM: return i->imm >= 0 && (uint64_t)i->imm + i->y <= e->param_bytes && i->imm % i->y == 0;
	default: return false;
	}
}

/* ---- Loads and stores done here */

struct access { bool is_load, shared; unsigned n, bytes, address_bytes; int32_t address, regs[8]; uint8_t slots[8]; bool is_signed[8]; };

static bool find_access(const struct emitter *e, uint32_t pc, struct access *a)
{
	const struct ptx_form *form = e->forms[pc];
	const struct ptx_insn *i = &e->f->code[pc];
	*a = (struct access){.n = 1, .address = i->a, .shared = i->x == SP_SHARED, .address_bytes = i->e == 4 ? 4 : 8};
	if (!form || i->a == PTX_OPERAND_NONE || !(i->x == SP_SHARED || i->x <= SP_CONST))
		return false;
	a->is_load = form->kind == FORM_LOAD || form->kind == FORM_LOADS;
	if (form->kind == FORM_LOAD || form->kind == FORM_STORE) {
		a->bytes = a->slots[0] = form->d;
		a->regs[0] = a->is_load ? i->d : i->b;
		return true;
	}
	if (form->kind != FORM_LOADS && form->kind != FORM_STORES)
		return false;
	int32_t regs[PTX_FORM_REGS];
	a->n = form->regs(i, regs) - 1;
	a->bytes = i->y;
	if (i->z >> 4 || a->bytes > 8 || a->n > 4)
		return false;	/* ordered, or too wide */
	for (unsigned k = 0; k < a->n; k++) {
		a->regs[k] = regs[1 + k];
		a->slots[k] = ckt_ptx_element_slot(i, k, &a->is_signed[k]);
		if (a->slots[k] > 8)
			return false;
	}
	return true;
}

enum { ACCESSES = 128 };

/* Loads and stores that differ in their registers only share a function. */
static unsigned access_number(const struct access *a)
{
	unsigned bytes = (unsigned)__builtin_ctz(a->bytes);
	return a->is_load | a->shared << 1 | (a->address_bytes == 8) << 2 | bytes << 3 | (a->n - 1) << 5;
}

static void say_access_functions(struct emitter *e)
{
	for (uint32_t pc = 0; pc < e->n; pc++) {
		struct access a;
		if (!find_access(e, pc, &a) || e->said[access_number(&a)])
			continue;
		e->said[access_number(&a)] = true;
		say(e, "APART bool access_%u(uint8_t *w, const uint8_t *A, uint64_t imm, uint32_t m, uint%u_t (*v)[32]) { return %s_%u(w, A, %u, imm, m, %d, %u, v); }\n",
		    access_number(&a), a.bytes * 8, a.is_load ? "load" : "store", a.bytes, a.address_bytes, a.shared, a.n);
	}
}

/* ---- Blocks and what lives in them */

static bool ends_block(const struct emitter *e, uint32_t pc)
{
	const struct ptx_form *form = e->forms[pc];
	struct access a;
	return !fits_lane(e, pc) && !find_access(e, pc, &a) && !(form && form->kind == FORM_NOTHING);
}

static void find_blocks(struct emitter *e)
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
			e->starts[pc] = true;	/* a group that waits is at the instruction itself */
		if (pc + 1 < e->n)
			e->starts[pc + 1] = true;
	}
	for (uint32_t pc = 0; pc < e->n; pc++) {
		if (!e->starts[pc])
			continue;
		e->block_of[pc] = e->n_blocks;
		e->blocks[e->n_blocks++] = (struct block){.first = pc};
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

static void set_bit(uint64_t *bits, uint32_t n) { bits[n / 64] |= 1ull << n % 64; }
static bool get_bit(const uint64_t *bits, uint32_t n) { return bits[n / 64] >> n % 64 & 1; }

/* live: behind the instruction, then before it. */
static void live_before(struct emitter *e, uint32_t pc, uint64_t *live)
{
	struct touched t;
	touch(e->forms[pc], &e->f->code[pc], &t);
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

/* What is read behind a block. */
static void live_behind(const struct emitter *e, const struct block *b, uint64_t *live)
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

static bool find_live(struct emitter *e)
{
	/* Every register gets its number first, so that the sets have their size. */
	for (uint32_t pc = 0; pc < e->n; pc++) {
		struct touched t;
		touch(e->forms[pc], &e->f->code[pc], &t);
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

/* e->live becomes what is read behind instruction end - 1 of block b. */
static void live_at(struct emitter *e, const struct block *b, uint32_t end)
{
	live_behind(e, b, e->live);
	for (uint32_t pc = b->end; pc-- > end;)
		live_before(e, pc, e->live);
}

/* ---- Stretches */

enum { USED = 1, LOADED = 2, WRITTEN = 4 };
struct local { int32_t reg; uint8_t bytes, how; };
struct stretch { struct local locals[STRETCH * 6]; unsigned n; };

static struct local *local_of(struct stretch *s, int32_t reg, unsigned bytes)
{
	for (unsigned k = 0; k < s->n; k++)
		if (s->locals[k].reg == reg)
			return &s->locals[k];
	if (s->n == sizeof s->locals / sizeof *s->locals)
		return NULL;
	s->locals[s->n] = (struct local){.reg = reg, .bytes = (uint8_t)bytes};
	return &s->locals[s->n++];
}

static bool note_read(const struct emitter *e, struct stretch *s, int32_t operand, unsigned bytes)
{
	if (!bytes || operand == PTX_OPERAND_NONE)
		return true;
	const struct ptx_constant *c = is_register(operand) ? NULL : constant_of(e->f, operand);
	if (c && !c->symbol)
		return true;
	struct local *v = local_of(s, operand, bytes);
	if (!v)
		return false;
	if (!(v->how & WRITTEN))
		v->how |= LOADED;
	return true;
}

static bool note_write(const struct emitter *e, struct stretch *s, int32_t operand, unsigned bytes, bool guarded)
{
	if (!is_register(operand))
		return true;
	if (guarded && !note_read(e, s, operand, bytes))
		return false;
	struct local *v = local_of(s, operand, bytes);
	if (!v)
		return false;
	v->how |= WRITTEN;
	return true;
}

static bool note_insn(const struct emitter *e, struct stretch *s, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const struct ptx_form *form = e->forms[pc];
	bool guarded = i->guard != PTX_OPERAND_NONE, ok = note_read(e, s, i->guard, 1);
	switch (form->kind) {
	case FORM_LANE:
		ok = ok && note_read(e, s, i->a, form->a) && note_read(e, s, i->b, form->b) && note_read(e, s, i->c, form->c) && note_read(e, s, i->e, form->e);
		return ok && note_write(e, s, i->d, form->d, guarded);
	case FORM_COMPARE:
		ok = ok && note_read(e, s, i->a, form->a) && note_read(e, s, i->b, form->b) && (!i->x || note_read(e, s, i->c, 1));
		return ok && note_write(e, s, i->d, 1, guarded) && note_write(e, s, i->e, 1, guarded);
	case FORM_PACK:
		for (unsigned k = 0; k < i->x; k++)
			ok = ok && note_read(e, s, i->list[k], i->y == 64 ? 8 : 4);
		return ok && note_write(e, s, i->d, i->z, guarded);
	case FORM_UNPACK:
		ok = ok && note_read(e, s, i->a, i->z);
		for (unsigned k = 0; k < i->x; k++)
			ok = ok && note_write(e, s, i->list[k], i->y == 64 ? 8 : 4, guarded);
		return ok;
	case FORM_SREG: case FORM_PARAM: return ok && note_write(e, s, i->d, i->y, guarded);
	default: return ok;
	}
}

/* The value of an operand inside a stretch. */
static const char *value_of(const struct emitter *e, int32_t operand, unsigned bytes, char text[VALUE])
{
	const struct ptx_constant *c = is_register(operand) || operand == PTX_OPERAND_NONE ? NULL : constant_of(e->f, operand);
	if (operand == PTX_OPERAND_NONE)
		snprintf(text, VALUE, "0");
	else if (is_register(operand))
		snprintf(text, VALUE, "%c%d", bytes == 1 ? 'p' : 'r', operand);
	else if (!c || c->symbol)
		snprintf(text, VALUE, "k%u", (uint32_t)operand & 0x7fffffffu);	/* an address, known when the kernel is launched */
	else if (bytes == 1)
		snprintf(text, VALUE, "%d", c->value != 0);
	else if (bytes == 4)
		snprintf(text, VALUE, "0x%xu", (uint32_t)c->value);
	else
		snprintf(text, VALUE, "0x%llxull", (unsigned long long)c->value);
	return text;
}

/* A form's text with the instruction's small values put in. */
static void say_text(struct emitter *e, const struct ptx_insn *i, const char *text)
{
	for (const char *at; (at = strstr(text, "i->")); text = at) {
		say(e, "%.*s", (int)(at - text), text);
		at += 3;
		if (!strncmp(at, "imm", 3)) {
			say(e, "((int64_t)%lluull)", (unsigned long long)i->imm);
			at += 3;
		} else {
			say(e, "%u", *at == 'x' ? i->x : *at == 'y' ? i->y : i->z);
			at++;
		}
	}
	say(e, "%s", text);
}

static const char *type_of(unsigned bytes) { return bytes == 8 ? "uint64_t" : "uint32_t"; }

/* d or the guard's other side into the local of a register. */
static void say_result(struct emitter *e, const struct ptx_insn *i, int32_t reg, unsigned bytes, const char *result)
{
	char guard[VALUE];
	if (!is_register(reg))
		return;
	if (i->guard != PTX_OPERAND_NONE)
		say(e, " %c%d = %s%s ? %s : %c%d;", bytes == 1 ? 'p' : 'r', reg, i->guard_negated ? "!" : "", value_of(e, i->guard, 1, guard), result,
		    bytes == 1 ? 'p' : 'r', reg);
	else
		say(e, " %c%d = %s;", bytes == 1 ? 'p' : 'r', reg, result);
}

static void say_source(struct emitter *e, char name, int32_t operand, unsigned bytes)
{
	char value[VALUE];
	if (bytes)
		say(e, "const %s %c = %s; ", type_of(bytes), name, value_of(e, operand, bytes, value));
}

static void say_compare(struct emitter *e, const struct ptx_insn *i)
{
	static const char *const joins[] = {"", " & c", " | c", " ^ c"};
	say(e, " uint32_t o = !d;");
	if (i->x)
		say(e, " d = d%s; o = o%s;", joins[i->x & 3], joins[i->x & 3]);
	say_result(e, i, i->d, 1, "d");
	say_result(e, i, i->e, 1, "o");
}

static void say_pack(struct emitter *e, const struct ptx_insn *i)
{
	char value[VALUE];
	say(e, "%s d = 0;", type_of(i->z));
	for (unsigned k = 0; k < i->x; k++) {
		say(e, " d |= (%s)(%s", type_of(i->z), value_of(e, i->list[k], i->y == 64 ? 8 : 4, value));
		if (i->y < 64)
			say(e, " & 0x%llxu", (1ull << i->y) - 1);
		say(e, ") << %u;", k * i->y);
	}
	say_result(e, i, i->d, i->z, "d");
}

static void say_unpack(struct emitter *e, const struct ptx_insn *i)
{
	char part[VALUE];
	say_source(e, 'a', i->a, i->z);
	for (unsigned k = 0; k < i->x; k++) {
		if (i->y == 64)
			snprintf(part, sizeof part, "a");
		else
			snprintf(part, sizeof part, "(uint32_t)(a >> %u & 0x%llxu)", k * i->y, (1ull << i->y) - 1);
		say_result(e, i, i->list[k], i->y == 64 ? 8 : 4, part);
	}
}

static void say_insn(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const struct ptx_form *form = e->forms[pc];
	char text[128];
	if (form->kind == FORM_NOTHING)
		return;
	say(e, "\t\t{ ");
	switch (form->kind) {
	case FORM_LANE: case FORM_COMPARE:
		say_source(e, 'a', i->a, form->a);
		say_source(e, 'b', i->b, form->b);
		if (form->kind == FORM_LANE || i->x)
			say_source(e, 'c', i->c, form->c);
		if (form->kind == FORM_LANE)
			say_source(e, 'e', i->e, form->e);
		say(e, "%s d; ", type_of(form->d));
		say_text(e, i, form->text);
		if (form->kind == FORM_COMPARE)
			say_compare(e, i);
		else
			say_result(e, i, i->d, form->d, "d");
		break;
	case FORM_PACK: say_pack(e, i); break;
	case FORM_UNPACK: say_unpack(e, i); break;
	default:	/* FORM_SREG, FORM_PARAM */
		if (form->kind == FORM_PARAM || !ckt_ptx_sreg_text(i->x, text, sizeof text))
			snprintf(text, sizeof text, "u%u", pc);
		say_result(e, i, i->d, i->y, text);
	}
	say(e, " }\n");
}

/* What is the same for all lanes is read before the loop. */
static void say_uniform(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	char text[128];
	if (e->forms[pc]->kind == FORM_PARAM)
		say(e, "\tconst %s u%u = *(const %s *)(P + %lld);\n", type_of(i->y), pc, type_of(i->y), (long long)i->imm);
	else if (e->forms[pc]->kind == FORM_SREG && !ckt_ptx_sreg_text(i->x, text, sizeof text) && ckt_ptx_sreg_uniform_text(i->x, text, sizeof text))
		say(e, "\tconst uint32_t u%u = %s;\n", pc, text);
}

static void say_stretch(struct emitter *e, const struct block *b, uint32_t first, uint32_t end, const struct stretch *s)
{
	live_at(e, b, end);
	say(e, "INSIDE void stretch_%u_%u(uint8_t *w, uint8_t *R, const uint8_t *K, const uint8_t *P, uint32_t m, const int full)\n{\n", e->f->index, first);
	for (uint32_t pc = first; pc < end; pc++)
		say_uniform(e, pc);
	for (unsigned k = 0; k < s->n; k++) {
		const struct local *v = &s->locals[k];
		uint32_t offset = (uint32_t)v->reg & 0x7fffffffu;
		if (v->reg < 0)
			say(e, "\tconst %s k%u = *(const %s *)(K + %u);\n", type_of(v->bytes), offset, type_of(v->bytes), offset);
		else if (v->bytes == 1 && (v->how & LOADED))
			say(e, "\tconst uint32_t q%d = *(const uint32_t *)(R + %d);\n", v->reg, v->reg);
		if (v->bytes == 1 && (v->how & WRITTEN))
			say(e, "\tuint32_t o%d = 0;\n", v->reg);
	}
	say(e, "\tINDEPENDENT\n\tfor (unsigned l = 0; l < 32; l++) {\n\t\tconst uint32_t in = full || (m >> l & 1); (void)in;\n");
	for (unsigned k = 0; k < s->n; k++) {
		const struct local *v = &s->locals[k];
		if (v->reg < 0)
			continue;
		if (v->bytes == 1 && (v->how & LOADED))
			say(e, "\t\tuint32_t p%d = q%d >> l & 1;\n", v->reg, v->reg);
		else if (v->how & LOADED)
			say(e, "\t\t%s r%d = ((const %s *)(R + %d))[l];\n", type_of(v->bytes), v->reg, type_of(v->bytes), v->reg);
		else
			say(e, "\t\t%s %c%d;\n", type_of(v->bytes), v->bytes == 1 ? 'p' : 'r', v->reg);
	}
	for (uint32_t pc = first; pc < end; pc++)
		say_insn(e, pc);
	for (unsigned k = 0; k < s->n; k++) {
		const struct local *v = &s->locals[k];
		if (!(v->how & WRITTEN) || !get_bit(e->live, id_of(e, v->reg)))
			continue;
		if (v->bytes == 1)
			say(e, "\t\to%d |= p%d << l;\n", v->reg, v->reg);
		else
			say(e, "\t\t((%s *)(R + %d))[l] = in ? r%d : ((%s *)(R + %d))[l];\n", type_of(v->bytes), v->reg, v->reg, type_of(v->bytes), v->reg);
	}
	say(e, "\t}\n");
	for (unsigned k = 0; k < s->n; k++) {
		const struct local *v = &s->locals[k];
		if (v->bytes == 1 && (v->how & WRITTEN) && get_bit(e->live, id_of(e, v->reg)))
			say(e, "\t{ uint32_t *q = (uint32_t *)(R + %d); *q = (*q & ~m) | (o%d & m); }\n", v->reg, v->reg);
	}
	say(e, "}\n");
	for (int full = 1; full >= 0; full--)
		say(e, "APART void stretch_%u_%u_%s(uint8_t *w, uint8_t *R, const uint8_t *K, const uint8_t *P, uint32_t m) { stretch_%u_%u(w, R, K, P, %s, %d); }\n",
		    e->f->index, first, full ? "full" : "part", e->f->index, first, full ? "~0u" : "m", full);
}

/* How far a stretch from `first` goes. */
static uint32_t stretch_end(struct emitter *e, const struct block *b, uint32_t first, struct stretch *s)
{
	uint32_t pc = first;
	s->n = 0;
	while (pc < b->end && pc - first < STRETCH && fits_lane(e, pc)) {
		bool lonely = is_lonely(e->forms[pc]);
		if (lonely && pc > first)
			break;
		if (!note_insn(e, s, pc))
			e->failed = true;
		pc++;
		if (lonely)
			break;
	}
	return pc;
}

/* ---- Functions */

static void say_guard(struct emitter *e, const struct ptx_insn *i)
{
	const struct ptx_constant *c = is_register(i->guard) || i->guard == PTX_OPERAND_NONE ? NULL : constant_of(e->f, i->guard);
	if (i->guard == PTX_OPERAND_NONE)
		say(e, "\tm = mask;\n");
	else if (c)
		say(e, "\tm = %s;\n", (c->value != 0) != (i->guard_negated != 0) ? "mask" : "0");
	else
		say(e, "\tm = mask & %s*(const uint32_t *)(R + %d);\n", i->guard_negated ? "~" : "", i->guard);
}

static void say_go(struct emitter *e, uint32_t pc)
{
	if (pc < e->n)
		say(e, "goto at_%u;", pc);
	else
		say(e, "{ pc = %u; goto leave; }", pc);
}

static void say_branch(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	if (i->guard == PTX_OPERAND_NONE) {
		say(e, "\t");
		say_go(e, (uint32_t)i->imm);
		say(e, "\n");
		return;
	}
	say_guard(e, i);
	say(e, "\tif (m == mask) ");
	say_go(e, (uint32_t)i->imm);
	say(e, "\n\tif (m) {\n\t\tGROUP_STORE(w, WP(WARP_FRAME), mask & ~m, %u);\n\t\tGROUP_STORE(w, WP(WARP_FRAME), m, %u);\n\t\tr = RUN_PICK;\n\t\tgoto out;\n\t}\n",
	    pc + 1, (uint32_t)i->imm);
}

static void say_call(struct emitter *e, uint32_t pc)
{
	say_guard(e, &e->f->code[pc]);
	say(e, "\tif (m) {\n\t\tW32(WARP_PC) = %u;\n\t\tr = CALL(%u, m);\n\t\tif (r)\n\t\t\tgoto look;\n\t}\n", pc + 1, pc);
}

static void say_access(struct emitter *e, uint32_t pc, const struct access *a)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const char *bank = is_register(a->address) ? "R" : "K";
	say(e, "\t{ uint%u_t v[%u][32];\n", a->bytes * 8, a->n);
	for (unsigned k = 0; k < a->n && !a->is_load; k++) {
		const char *from = is_register(a->regs[k]) ? "R" : "K";
		say(e, "\tfor (unsigned l = 0; l < 32; l++) v[%u][l] = (uint%u_t)((const %s *)(%s + %u))[l];\n", k, a->bytes * 8, type_of(a->slots[k]), from,
		    (uint32_t)a->regs[k] & 0x7fffffffu);
	}
	say_guard(e, i);
	say(e, "\tif (!m) {\n\t} else if (!access_%u(w, %s + %u, %lluull, m, v)) {\n", access_number(a), bank, (uint32_t)a->address & 0x7fffffffu,
	    (unsigned long long)i->imm);
	say(e, "\t\tW32(WARP_PC) = %u;\n\t\tr = CALL(%u, m);\n\t\tif (r)\n\t\t\tgoto look;\n", pc + 1, pc);
	say(e, "\t}");
	if (a->is_load)
		say(e, " else if (m == ~0u) {\n");
	for (int full = 1; full >= 0 && a->is_load; full--) {
		for (unsigned k = 0; k < a->n; k++) {
			const char *type = type_of(a->slots[k]);
			if (a->regs[k] == PTX_OPERAND_NONE)
				continue;
			char value[64];
			if (a->is_signed[k] && a->bytes == 2 && a->slots[k] == 4)
				snprintf(value, sizeof value, "(uint32_t)(int16_t)v[%u][l]", k);
			else
				snprintf(value, sizeof value, "(%s)(%sint%u_t)v[%u][l]", type, a->is_signed[k] ? "" : "u", a->bytes * 8, k);
			if (full)
				say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((%s *)(R + %d))[l] = %s;\n", type, a->regs[k], value);
			else
				say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((%s *)(R + %d))[l] = m >> l & 1 ? %s : ((%s *)(R + %d))[l];\n", type, a->regs[k],
				    value, type, a->regs[k]);
		}
		say(e, "\t}%s", full ? " else {\n" : "");
	}
	say(e, "\n\t}\n");
}

static void say_block(struct emitter *e, const struct block *b, struct stretch *s)
{
	say(e, "at_%u:\n\t__asm__ volatile(\"\" ::: \"memory\");\n\tif (stop <= %u || !left) { pc = %u; goto leave; }\n\tleft = left > %u ? left - %u : 0;\n", b->first,
	    b->first, b->first, b->end - b->first, b->end - b->first);
	for (uint32_t pc = b->first; pc < b->end;) {
		const struct ptx_form *form = e->forms[pc];
		struct access a;
		if (fits_lane(e, pc)) {
			uint32_t end = stretch_end(e, b, pc, s);
			say(e, "\tif (mask == ~0u) stretch_%u_%u_full(w, R, K, P, mask); else stretch_%u_%u_part(w, R, K, P, mask);\n", e->f->index, pc, e->f->index, pc);
			pc = end;
			continue;
		}
		if (form && form->kind == FORM_BRANCH)
			say_branch(e, pc);
		else if (find_access(e, pc, &a))
			say_access(e, pc, &a);
		else
			say_call(e, pc);
		pc++;
	}
}

static void say_function(struct emitter *e)
{
	struct stretch *s = malloc(sizeof *s);
	if (!s) {
		e->failed = true;
		return;
	}
	say_access_functions(e);
	for (uint32_t b = 0; b < e->n_blocks; b++) {
		for (uint32_t pc = e->blocks[b].first; pc < e->blocks[b].end;) {
			if (!fits_lane(e, pc)) {
				pc++;
				continue;
			}
			uint32_t end = stretch_end(e, &e->blocks[b], pc, s);
			say_stretch(e, &e->blocks[b], pc, end, s);
			pc = end;
		}
	}
	say(e, "__attribute__((visibility(\"default\"))) int ckt_kernel_%u(uint8_t *w, const uint8_t *code, uint32_t stop, unsigned *budget)\n{\n", e->f->index);
	say(e, "\tuint8_t *const R = WP(WARP_BANK);\n\tconst uint8_t *const K = WP(WARP_BANK + 8), *const P = *(uint8_t **)(LAUNCH + LAUNCH_PARAMS);\n"
	       "\tuint8_t *const frame = WP(WARP_FRAME);\n\tuint32_t mask = W32(WARP_MASK), m, pc = W32(WARP_PC);\n\tunsigned left = *budget;\n\tint r;\n"
	       "\t(void)K; (void)P; (void)m;\nagain:\n\tswitch (pc) {\n");
	for (uint32_t b = 0; b < e->n_blocks; b++)
		say(e, "\tcase %u: goto at_%u;\n", e->blocks[b].first, e->blocks[b].first);
	say(e, "\tdefault: r = -1; goto out;\n\t}\n");
	for (uint32_t b = 0; b < e->n_blocks; b++)
		say_block(e, &e->blocks[b], s);
	/* Behind the last instruction stands nothing: the interpreter would read on, so its text ends with ret. */
	say(e, "\tr = -1;\n\tpc = %u;\n\tgoto leave;\nlook:\n\tif (r != RUN_JUMP || WP(WARP_FRAME) != frame)\n\t\tgoto out;\n\tmask = W32(WARP_MASK);\n"
	       "\tpc = W32(WARP_PC);\n\tgoto again;\nleave:\n\tW32(WARP_PC) = pc;\n\tr = RUN_JUMP;\nout:\n\t*budget = left;\n\treturn r;\n}\n",
	    e->n);
	free(s);
}

static void emit_function(FILE *out, const struct ckt_ptx_function *f, bool *said, bool *failed)
{
	struct emitter e = {.out = out, .said = said, .f = f, .n = (uint32_t)f->n_code, .param_bytes = f->info.is_entry ? f->info.param_bytes : 0};
	e.forms = calloc(e.n, sizeof *e.forms);
	e.starts = calloc(e.n, sizeof *e.starts);
	e.blocks = calloc(e.n, sizeof *e.blocks);
	e.block_of = calloc(e.n, sizeof *e.block_of);
	e.ids = calloc(f->reg_bytes / 4 + 16, sizeof *e.ids);
	if (e.forms && e.starts && e.blocks && e.block_of && e.ids) {
		for (uint32_t pc = 0; pc < e.n; pc++)
			e.forms[pc] = ckt_ptx_form(f->code[pc].fn);
		find_blocks(&e);
		if (find_live(&e))
			say_function(&e);
		else
			e.failed = true;
	} else {
		e.failed = true;
	}
	*failed |= e.failed;
	free(e.forms);
	free(e.starts);
	free(e.blocks);
	free(e.block_of);
	free(e.ids);
	free(e.live);
}

/* Where the structures have what compiled code looks at. */
static void say_layout(FILE *out)
{
	const struct { const char *name; uint64_t value; } values[] = {
		{"WARP_BANK", offsetof(struct ptx_warp, bank)}, {"WARP_FRAME", offsetof(struct ptx_warp, frame)},
		{"WARP_MASK", offsetof(struct ptx_warp, mask)}, {"WARP_PC", offsetof(struct ptx_warp, pc)}, {"WARP_BLOCK", offsetof(struct ptx_warp, block)},
		{"WARP_LAST", offsetof(struct ptx_warp, last_page)}, {"WARP_LAST_WRITE", offsetof(struct ptx_warp, last_page_write)},
		{"WARP_TID", offsetof(struct ptx_warp, tid)}, {"BLOCK_CTAID", offsetof(struct ptx_block, ctaid)},
		{"BLOCK_SHARED", offsetof(struct ptx_block, shared)}, {"BLOCK_SHARED_BYTES", offsetof(struct ptx_block, shared_bytes)},
		{"BLOCK_GRID", offsetof(struct ptx_block, grid)}, {"GRID_LAUNCH", offsetof(struct ptx_grid, launch)},
		{"LAUNCH_GRID", offsetof(struct ckt_ptx_launch, grid)}, {"LAUNCH_BLOCK", offsetof(struct ckt_ptx_launch, block)},
		{"LAUNCH_PARAMS", offsetof(struct ckt_ptx_launch, params)}, {"INSN_BYTES", sizeof(struct ptx_insn)}, {"SHARED_MAX", PTX_SHARED_MAX},
		{"PAGE_SHIFT", CKT_SOFT_PAGE_SHIFT}, {"LEAF_SHIFT", CKT_SOFT_LEAF_SHIFT}, {"LEAF_PAGES", CKT_SOFT_LEAF_PAGES},
		{"PAGE_READ", CKT_SOFT_PAGE_READ}, {"PAGE_WRITE", CKT_SOFT_PAGE_WRITE}, {"RUN_JUMP", RUN_JUMP}, {"RUN_PICK", RUN_PICK}};
	_Static_assert(offsetof(struct ptx_insn, fn) == 0, "CALL reads the handler there");
	for (size_t k = 0; k < sizeof values / sizeof *values; k++)
		fprintf(out, "#define %s %llu\n", values[k].name, (unsigned long long)values[k].value);
	fputs("#define LAUNCH (*(const uint8_t **)(*(const uint8_t **)(WP(WARP_BLOCK) + BLOCK_GRID) + GRID_LAUNCH))\n", out);
}

static bool is_wanted(const struct ckt_ptx_module *module, size_t k, const struct ptx_prepared *prepared)
{
	return module->functions[k]->n_code && (!prepared || prepared->pools[k]);
}

static bool fits(const struct ckt_ptx_module *module, const struct ptx_prepared *prepared)
{
	size_t n_insns = 0;
	for (size_t k = 0; k < module->n_functions; k++)
		n_insns += is_wanted(module, k, prepared) ? module->functions[k]->n_code : 0;
	return n_insns <= MOST_INSNS;
}

bool ckt_ptx_emit_fits(const struct ckt_ptx_module *module) { return fits(module, NULL); }

char *ckt_ptx_emit_kernel(const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared)
{
	const struct ckt_ptx_module *module = entry->module;
	size_t size = 0;
	char *text = NULL;
	bool failed = false, said[ACCESSES] = {false};
	if (!fits(module, prepared))
		return NULL;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	say_layout(out);
	fputs(ckt_ptx_kernel_head, out);
	for (size_t k = 0; k < module->n_functions && !failed; k++)
		if (is_wanted(module, k, prepared))
			emit_function(out, module->functions[k], said, &failed);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
