/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: PTX texts, as the soft GPU parses, checks and links them (softgpu/ptx/front and
 * the decoders of instructions in softgpu/ptx/execution).  Nothing is executed.
 *
 * The first byte chooses how the rest is loaded; a byte 0xff separates two texts that are linked.
 * The mutator works on lines and words; lines of other inputs are taken over whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/front/link.h"
#include "softgpu/ptx/ptx.h"
#include "tests/fuzz/fuzz.h"

enum {
	TEXTS_MAX = 3,
	GLOBALS_BYTES_MAX = 1 << 20,
	SEPARATOR = 0xff,
	LINES_MAX = 4096,
	PREPARED_MAX = 3
};
enum { RELOCATABLE = 1, NO_LOG = 2, OLDER = 4, FAILS = 0xc0 };

static unsigned split(const uint8_t *data, size_t size, struct ckt_ptx_text *texts)
{
	unsigned count = 0;
	while (count < TEXTS_MAX) {
		const uint8_t *end = count + 1 < TEXTS_MAX ? memchr(data, SEPARATOR, size) : NULL;
		size_t length = end ? (size_t)(end - data) : size;
		/* In just as many bytes, so that a read behind them is seen. */
		char *copy = malloc(length);
		memcpy(copy, data, length);
		texts[count] = (struct ckt_ptx_text){copy, length, count ? NULL : "fuzz"};
		count++;
		if (!end)
			break;
		data += length + 1;
		size -= length + 1;
	}
	return count;
}

/* As the driver does: variables get their addresses, and their first contents. */
static void bind(struct ckt_ptx_module *module)
{
	uint8_t *memory = NULL;
	uint64_t bytes = 0;
	size_t count = ckt_ptx_module_global_count(module);
	for (size_t i = 0; i < count; i++) {
		struct ckt_ptx_global *global = ckt_ptx_module_global(module, i);
		fuzz_insist(global->name && global->align_bytes &&
				!(global->align_bytes & (global->align_bytes - 1)),
			"a variable without a name or an alignment");
		if (global->size_bytes > GLOBALS_BYTES_MAX ||
			(bytes += global->size_bytes) > GLOBALS_BYTES_MAX)
			return;
	}
	memory = malloc(bytes ? bytes : 1);
	uint64_t at = (uintptr_t)memory;
	for (size_t i = 0; i < count; i++) {
		struct ckt_ptx_global *global = ckt_ptx_module_global(module, i);
		global->address = at;
		at += global->size_bytes;
	}
	ckt_ptx_module_bind(module);
	free(memory);
}

static void look(struct ckt_ptx_module *module)
{
	size_t count = ckt_ptx_module_function_count(module);
	for (size_t i = 0; i < count; i++) {
		const struct ckt_ptx_function_info *info =
			ckt_ptx_function_info(ckt_ptx_module_function(module, i));
		fuzz_insist(ckt_ptx_module_find_function(module, info->name), "a nameless kernel");
		uint32_t end = 0;
		for (size_t n = 0; n < info->n_params; n++) {
			const struct ckt_ptx_param *p = &info->params[n];
			fuzz_insist(p->offset_bytes >= end, "parameters overlap");
			end = p->offset_bytes + p->size_bytes;
		}
		fuzz_insist(end <= info->param_bytes, "a parameter behind the last byte");
		/* As the first launch does: shared memory and constants get their places. */
		const struct ptx_prepared *prepared;
		if (i < PREPARED_MAX && !info->refusal)
			ckt_ptx_prepare(ckt_ptx_module_function(module, i), &prepared);
		fuzz_insist(info->registers >= 1 && info->registers <= 255, "registers");
	}
	ckt_ptx_module_find_function(module, "none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char log[256] = "";
	struct ckt_ptx_text texts[TEXTS_MAX];
	struct ckt_ptx_module *module = NULL;
	if (!size)
		return 0;
	unsigned count = split(data + 1, size - 1, texts);
	struct ckt_ptx_load_options options = {
		.target = data[0] & OLDER ? 80 : 120, .allow_undefined = data[0] & RELOCATABLE};
	fuzz_fail_allocation((data[0] & FAILS) == FAILS ? (data[0] & 63) * 2 + 1 : 0);
	enum ckt_ptx_result result = ckt_ptx_module_load(texts, count, &options,
		data[0] & NO_LOG ? NULL : log, data[0] & NO_LOG ? 0 : sizeof log, &module);
	fuzz_fail_allocation(0);
	fuzz_insist(memchr(log, 0, sizeof log), "a log without an end");
	fuzz_insist(!result == !!module, "a module or an error");
	if (module) {
		bind(module);
		look(module);
		ckt_ptx_module_destroy(module);
	} else {
		fuzz_insist(data[0] & NO_LOG || log[0] || result == CKT_PTX_NO_MEMORY,
			"a refusal without a word");
	}
	for (unsigned i = 0; i < count; i++)
		free((void *)texts[i].text);
	return 0;
}

/* ---- Lines and words */

struct range {
	size_t from, to;
};

/* Lines end with a line feed, and statements with a semicolon. */
static unsigned find_lines(const uint8_t *data, size_t size, struct range *lines)
{
	unsigned count = 0;
	size_t from = 1;
	for (size_t i = 1; i < size && count < LINES_MAX; i++)
		if (data[i] == '\n' || data[i] == ';' || i + 1 == size) {
			lines[count++] = (struct range){from, i + 1};
			from = i + 1;
		}
	return count;
}

static bool is_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || c == '%' || c == '.' || c == ':';
}

/* The word at or behind a place; empty at the end. */
static struct range find_word(const uint8_t *data, size_t size, size_t from)
{
	while (from < size && !is_word(data[from]))
		from++;
	while (from > 1 && is_word(data[from - 1]) && data[from] != '.')
		from--;
	size_t to = from < size ? from + 1 : from;
	while (to < size && is_word(data[to]) && data[to] != '.')
		to++;
	return (struct range){from, to};
}

/* Puts bytes in place of a range; the new size, or the old one where there is no room. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, struct range range,
	const void *bytes, size_t count)
{
	size_t after = size - (range.to - range.from) + count;
	if (after > max_size)
		return size;
	memmove(data + range.from + count, data + range.to, size - range.to);
	memcpy(data + range.from, bytes, count);
	return after;
}

static size_t change_word(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
	static const char *const words[] = {".u32", ".b64", ".f32", ".f16x2", ".pred", ".b128",
		".shared", ".global", ".const", ".param", ".local", ".v2", ".v4", ".align", ".sat",
		".rn", ".ftz", ".cluster", ".sync", ".aligned", ".reg", ".func", ".entry",
		".visible", ".extern", ".weak", ".common", ".branchtargets", ".callprototype",
		".maxntid", ".reqntid", "0x7fffffff", "4294967296", "18446744073709551615", "-1",
		"0f7f800000", "0d3ff0000000000000", "1e999", "%tid.x", "%clock64", "_", "WARP_SZ",
		"\"text\"", "1?2:3", "generic(x)", "@!p", "{", "}", "(", ")", "<3>", "[2]", "+",
		"<<63", "/*", "//"};
	struct range at = find_word(data, size, 1 + fuzz_random(seed) % size);
	struct range other = find_word(data, size, 1 + fuzz_random(seed) % size);
	char word[64];
	size_t count;
	switch (fuzz_random(seed) % 4) {
	case 0:
		count = (size_t)snprintf(word, sizeof word, "%s",
			words[fuzz_random(seed) % (sizeof words / sizeof *words)]);
		break;
	case 1:
		count = (size_t)snprintf(
			word, sizeof word, "%d", (int)fuzz_number(fuzz_random(seed) % 64, seed));
		break;
	case 2:
		/* As well as another one of the text, and nothing. */
		count = 0;
		break;
	default:
		count = other.to - other.from < sizeof word ? other.to - other.from : 0;
		memcpy(word, data + other.from, count);
	}
	return replace(data, size, max_size, at, word, count);
}

static size_t move_line(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
	static struct range lines[LINES_MAX];
	static uint8_t copy[1 << 16];
	unsigned count = find_lines(data, size, lines);
	if (!count)
		return size;
	struct range line = lines[fuzz_random(seed) % count], to = lines[fuzz_random(seed) % count];
	size_t bytes = line.to - line.from;
	if (bytes > sizeof copy)
		return size;
	memcpy(copy, data + line.from, bytes);
	switch (fuzz_random(seed) % 3) {
	case 0:
		return replace(data, size, max_size, line, copy, 0);
	case 1:
		return replace(data, size, max_size, to, copy, bytes);
	default:
		to.to = to.from;
		return replace(data, size, max_size, to, copy, bytes);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (size < 2 || fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	for (unsigned n = 1 + fuzz_random(&seed) % 3; n; n--)
		size = fuzz_random(&seed) % 3 ? change_word(data, size, max_size, &seed)
					      : move_line(data, size, max_size, &seed);
	if (fuzz_random(&seed) % 16 == 0)
		data[0] = (uint8_t)fuzz_random(&seed);
	return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two,
	size_t two_size, uint8_t *out, size_t max_out, unsigned seed);
/* Lines of the second go between lines of the first. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two,
	size_t two_size, uint8_t *out, size_t max_out, unsigned seed)
{
	static struct range lines[LINES_MAX];
	if (!one_size || !two_size || one_size > max_out)
		return 0;
	memcpy(out, one, one_size);
	unsigned count = find_lines(two, two_size, lines);
	if (!count)
		return one_size;
	unsigned first = fuzz_random(&seed) % count, last = first + fuzz_random(&seed) % 3;
	size_t from = lines[first].from, to = lines[last < count ? last : count - 1].to;
	count = find_lines(one, one_size, lines);
	struct range at = {one_size, one_size};
	if (count)
		at.from = at.to = lines[fuzz_random(&seed) % count].from;
	return replace(out, one_size, max_out, at, two + from, to - from);
}

/* ---- A seed; the kept corpus has the forms of instructions */

/* The tables of opcodes are built once a process: so memory runs out in that first. */
static void build_tables(const char *text, size_t size)
{
	const struct ckt_ptx_text texts[] = {{text, size, "tables"}};
	const struct ckt_ptx_load_options options = {.target = 120};
	struct ckt_ptx_module *module = NULL;
	enum ckt_ptx_result result = CKT_PTX_NO_MEMORY;
	for (unsigned number = 1; result; number++) {
		fuzz_fail_allocation(number);
		result = ckt_ptx_module_load(texts, 1, &options, NULL, 0, &module);
		fuzz_insist(!result || (result == CKT_PTX_NO_MEMORY && number < 10000),
			"without memory a module loads or says so");
	}
	fuzz_fail_allocation(0);
	ckt_ptx_module_destroy(module);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char seed[] =
		"\0.version 9.0\n.target sm_90\n.address_size 64\n"
		".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
		".global .u32 x[4] = {1, 2};\n.visible .global .align 8 .u64 p[2] = {x, x+8};\n"
		".const .f32 c = 1.5;\n.extern .shared .align 16 .b8 s[];\n"
		".func (.param .b32 r) twice(.param .b32 a)\n{\n\t.reg .b32 %r<3>;\n"
		"\tld.param.u32 %r1, [a];\n\tadd.u32 %r2, %r1, %r1;\n"
		"\tst.param.b32 [r], %r2;\n\tret;\n}\n"
		".visible .entry k(.param .u64 out, .param .align 8 .b8 st[16])\n"
		".maxntid 128, 1, 1\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<3>;\n"
		"\tld.param.u64 %d1, [out];\n\tmov.u32 %r1, %tid.x;\n\tsetp.gt.u32 %p1, %r1, 3;\n"
		"\t@%p1 bra DONE;\n\t{\n\t.param .b32 p0;\n\t.param .b32 r0;\n"
		"\tst.param.b32 [p0], %r1;\n\tcall.uni (r0), twice, (p0);\n"
		"\tld.param.b32 %r2, [r0];\n\t}\n\tst.global.u32 [%d1+4], %r2;\nDONE:\n\tret;\n}\n";
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	/* The first bytes of a variable are kept in as many bytes as it has, mostly untouched zeros. */
	fuzz_bound_allocations((size_t)256 << 20);
	if (!directory) {
		build_tables(seed + 1, sizeof seed - 2);
		return 0;
	}
	fuzz_write_seed(directory, "ptx", seed, sizeof seed - 1);
	exit(0);
}
