/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRICKET_SOFT_TRACE=FILE: logs the instructions of one thread as it runs them, each with the
 * values of the registers that it names.
 *
 * CRICKET_SOFT_TRACE_THREAD=KERNEL[:BX,BY,BZ[:TX,TY,TZ]] selects the thread.  KERNEL may be a
 * prefix of a name.  The defaults are the first block and its first thread.  The text of
 * instructions is kept only for modules that are loaded while the variable is set.  A line has the
 * form
 *
 *	KERNEL PTX-LINE  instruction;  name=value ...
 *
 * with the hexadecimal values after the instruction.  A line that begins with "-" is an instruction
 * whose guard was false.  Successive launches are all traced, so a kernel that runs twice is traced
 * twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static struct {
	FILE *file;
	char kernel[256];
	uint32_t block[3], thread[3];
} trace;
static pthread_once_t trace_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

static void read_environment(void)
{
	const char *path = getenv("CRICKET_SOFT_TRACE"),
		   *which = getenv("CRICKET_SOFT_TRACE_THREAD");
	if (!path || !*path)
		return;
	if (which && *which) {
		size_t n = strcspn(which, ":");
		const char *rest = which + n;
		snprintf(trace.kernel, sizeof trace.kernel, "%.*s", (int)n, which);
		if (*rest &&
			sscanf(rest, ":%u,%u,%u:%u,%u,%u", &trace.block[0], &trace.block[1],
				&trace.block[2], &trace.thread[0], &trace.thread[1],
				&trace.thread[2]) < 1)
			fprintf(stderr,
				"cricket soft GPU: CRICKET_SOFT_TRACE_THREAD=%s is not KERNEL:BX,BY,BZ:TX,TY,TZ\n",
				which);
	}
	trace.file = fopen(path, "we");
	if (!trace.file)
		fprintf(stderr, "cricket soft GPU: CRICKET_SOFT_TRACE=%s: %s\n", path,
			strerror(errno));
}

bool ckt_ptx_trace_wanted(void)
{
	pthread_once(&trace_once, read_environment);
	return trace.file != NULL;
}

static void note_operand(struct ptx_source *s, const struct ptx_operand *o)
{
	if (o->kind == OP_VECTOR || o->kind == OP_ADDRESS)
		for (unsigned k = 0; k < o->n_elements && o->elements; k++)
			note_operand(s, &o->elements[k]);
	if (o->kind != OP_REG || s->n_regs == sizeof s->regs / sizeof *s->regs)
		return;
	s->regs[s->n_regs++] = (struct ptx_source_register){.name = o->name,
		.name_size = o->name_size,
		.reg = o->reg,
		.lane_bytes = (uint8_t)ckt_ptx_lane_bytes(o->type)};
}

void ckt_ptx_trace_note(struct ptx_parser *p, size_t first)
{
	struct ckt_ptx_function *f = p->function;
	struct ptx_source s = {0};
	if (!p->raw.start || first == f->n_code)
		return;
	const char *end = memchr(p->raw.start, ';', (size_t)(p->end - p->raw.start));
	s.text = ckt_ptx_copy_name(p, p->raw.start, (size_t)((end ? end : p->end) - p->raw.start));
	for (char *c = (char *)s.text; *c; c++)
		*c = *c == '\n' || *c == '\t' || *c == '\r' ? ' ' : *c;
	for (unsigned k = 0; k < p->raw.n_operands; k++)
		note_operand(&s, &p->raw.operands[k]);
	for (unsigned k = 0; k < s.n_regs; k++)
		s.regs[k].name = ckt_ptx_copy_name(p, s.regs[k].name, s.regs[k].name_size);
	/* A PTX instruction may become several; the last of them represents it. */
	while (f->n_sources + 1 < f->n_code)
		PTX_PUSH(p, f->sources, f->n_sources, f->cap_sources, (struct ptx_source){0});
	PTX_PUSH(p, f->sources, f->n_sources, f->cap_sources, s);
}

void ckt_ptx_trace_start(struct ptx_block *block)
{
	const struct ckt_ptx_launch *launch = block->grid->launch;
	bool yes = trace.file &&
		!strncmp(block->grid->entry->info.name, trace.kernel, strlen(trace.kernel)) &&
		!memcmp(block->ctaid, trace.block, sizeof trace.block);
	uint32_t number =
		(trace.thread[2] * launch->block[1] + trace.thread[1]) * launch->block[0] +
		trace.thread[0];
	for (uint32_t n = 0; n < block->n_warps; n++)
		block->warps[n].traced =
			yes && number / PTX_LANES == n ? 1u << number % PTX_LANES : 0;
}

void ckt_ptx_trace_step(struct ptx_warp *w, const struct ptx_frame *frame,
	const struct ckt_ptx_function *f, uint32_t pc, bool ran)
{
	const struct ptx_source *s = pc < f->n_sources ? &f->sources[pc] : NULL;
	unsigned l = (unsigned)__builtin_ctz(w->traced);
	if (!s || !s->text)
		return;
	pthread_mutex_lock(&trace_lock);
	fprintf(trace.file, "%s%s %u  %s;", ran ? "" : "- ", f->info.name, f->code[pc].line,
		s->text);
	for (unsigned k = 0; ran && k < s->n_regs; k++) {
		const struct ptx_source_register *r = &s->regs[k];
		const uint8_t *at = frame->regs + r->reg;
		fprintf(trace.file, "%s %s=", k ? "" : " ", r->name);
		if (!r->lane_bytes)
			fprintf(trace.file, "%u", *(const uint32_t *)at >> l & 1);
		else if (r->lane_bytes == 4)
			fprintf(trace.file, "0x%x", ((const uint32_t *)at)[l]);
		else if (r->lane_bytes == 8)
			fprintf(trace.file, "0x%llx",
				(unsigned long long)((const uint64_t *)at)[l]);
		else
			fprintf(trace.file, "0x%016llx%016llx",
				(unsigned long long)((const uint64_t *)at)[2 * l + 1],
				(unsigned long long)((const uint64_t *)at)[2 * l]);
	}
	fputc('\n', trace.file);
	fflush(trace.file);
	pthread_mutex_unlock(&trace_lock);
}
