/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running PTX in the tests.
 */
#include "harness.h"

#include <sys/mman.h>

bool unit_load_refused;
char unit_log[512], unit_message[256], unit_output[65536];

void *unit_alloc(size_t size)
{
	size = (size + 4095) & ~(size_t)4095;
	/* A page that the device may not touch stays behind every block. */
	uint8_t *memory =
		mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
		ckt_soft_memmap_set((uint64_t)(uintptr_t)memory, size,
			CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE))
		abort();
	ckt_soft_memmap_set((uint64_t)(uintptr_t)memory + size, 4096, 0);
	return memory;
}

struct ckt_ptx_module *unit_load(
	const char *const *texts, size_t n_texts, enum ckt_ptx_result *ret_result)
{
	struct ckt_ptx_text list[8] = {0};
	char names[8][16];
	struct ckt_ptx_load_options options = {.target = 120};
	struct ckt_ptx_module *module = NULL;
	for (size_t k = 0; k < n_texts; k++) {
		snprintf(names[k], sizeof names[k], "text%zu", k);
		/*
		 * A copy without a NUL at the end, so that reading past it is noticed under the
		 * sanitizers.
		 */
		size_t size = strlen(texts[k]);
		char *copy = malloc(size ? size : 1);
		memcpy(copy, texts[k], size);
		list[k] = (struct ckt_ptx_text){.text = copy, .size_bytes = size, .name = names[k]};
	}
	enum ckt_ptx_result r =
		ckt_ptx_module_load(list, n_texts, &options, unit_log, sizeof unit_log, &module);
	for (size_t k = 0; k < n_texts; k++)
		free((void *)list[k].text);
	if (ret_result)
		*ret_result = r;
	if (r != CKT_PTX_OK)
		return NULL;
	for (size_t k = 0; !unit_load_refused && k < ckt_ptx_module_function_count(module); k++) {
		const char *refusal =
			ckt_ptx_function_info(ckt_ptx_module_function(module, k))->refusal;
		if (!refusal)
			continue;
		snprintf(unit_log, sizeof unit_log, "%s", refusal);
		ckt_ptx_module_destroy(module);
		if (ret_result)
			*ret_result = CKT_PTX_INVALID;
		return NULL;
	}
	for (size_t k = 0; k < ckt_ptx_module_global_count(module); k++) {
		struct ckt_ptx_global *g = ckt_ptx_module_global(module, k);
		g->address = (uint64_t)(uintptr_t)unit_alloc(g->size_bytes ? g->size_bytes : 1);
	}
	ckt_ptx_module_bind(module);
	return module;
}

uint64_t unit_global(struct ckt_ptx_module *module, const char *name)
{
	for (size_t k = 0; k < ckt_ptx_module_global_count(module); k++)
		if (!strcmp(ckt_ptx_module_global(module, k)->name, name))
			return ckt_ptx_module_global(module, k)->address;
	return 0;
}

static void output(void *data, int fd, const char *text, size_t size)
{
	size_t n = strlen(unit_output);
	(void)data;
	(void)fd;
	if (n + size < sizeof unit_output) {
		memcpy(unit_output + n, text, size);
		unit_output[n + size] = 0;
	}
}

static void *heap_alloc(void *data, uint64_t size)
{
	(void)data;
	return unit_alloc(size);
}

static void heap_free(void *data, void *address)
{
	(void)data;
	(void)address;
}

const struct ckt_ptx_texture *unit_textures[4];

static const struct ckt_ptx_texture *texture_of(void *data, uint64_t handle)
{
	(void)data;
	return handle >= 1 && handle <= 4 ? unit_textures[handle - 1] : NULL;
}

enum ckt_ptx_fault unit_run(struct ckt_ptx_module *module, const struct unit_launch *u)
{
	struct ckt_ptx_device device = {.n_sm = 4,
		.capability = 120,
		.output = output,
		.heap_alloc = heap_alloc,
		.heap_free = heap_free,
		.texture = texture_of,
		.surface = texture_of};
	struct ckt_ptx_launch launch = {.grid = {u->grid, 1, 1},
		.block = {u->block, 1, 1},
		.dynamic_shared_bytes = u->shared,
		.params = u->args,
		.cooperative = u->cooperative,
		.cancel = u->cancel,
		.device = &device};
	if (u->cluster)
		memcpy(launch.cluster, (uint32_t[3]){u->cluster, 1, 1}, sizeof launch.cluster);
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, u->kernel);
	unit_output[0] = 0;
	if (!f) {
		fprintf(stderr, "no kernel %s\n", u->kernel);
		return CKT_PTX_FAULT_LAUNCH_FAILURE;
	}
	return ckt_ptx_launch(f, &launch, unit_message, sizeof unit_message);
}

static char *case_text(const struct unit_case *c)
{
	static const char *const stores[] = {"st.global.b64 [addr+24], xo;",
		"st.global.b32 [addr+24], ro;", "st.global.b16 [addr+24], ho;",
		"selp.b32 ro, 1, 0, po; st.global.b32 [addr+24], ro;"};
	char *text = malloc(8192);
	snprintf(text, 8192,
		UNIT_HEAD
		".visible .entry k(.param .u64 data, .param .u64 n)\n{\n"
		".reg .b64 addr, i, n64, xa, xb, xc, xo; .reg .b32 ra, rb, rc, ro, t1, t2; .reg .b16 ha, hb, hc, ho; "
		".reg .pred p, q, s, t, po, end;\n"
		"ld.param.u64 addr, [data]; ld.param.u64 n64, [n];\n"
		"mov.u32 t1, %%ctaid.x; mov.u32 t2, %%ntid.x; mul.wide.u32 i, t1, t2; mov.u32 t1, %%tid.x; "
		"cvt.u64.u32 xa, t1; add.u64 i, i, xa;\n"
		"setp.ge.u64 end, i, n64; @end bra done; shl.b64 i, i, 5; add.u64 addr, addr, i;\n"
		"ld.global.v2.b64 {xa, xb}, [addr]; ld.global.b64 xc, [addr+16];\n"
		"cvt.u32.u64 ra, xa; cvt.u32.u64 rb, xb; cvt.u32.u64 rc, xc; cvt.u16.u64 ha, xa; cvt.u16.u64 hb, xb; "
		"cvt.u16.u64 hc, xc;\n"
		"mov.b32 ro, 0; mov.b64 xo, 0; mov.b16 ho, 0; setp.ne.u32 po, ro, 0;\n%s\n%s\ndone: ret;\n}\n",
		c->code, stores[c->result]);
	return text;
}

static uint64_t cut(enum unit_result result, uint64_t v)
{
	return result == UNIT_64 ? v : result == UNIT_16 ? (uint16_t)v : (uint32_t)v;
}

bool unit_compute(const char *code, enum unit_result result, uint64_t (*rows)[4], size_t n)
{
	struct unit_case c = {.code = code, .result = result};
	char *text = case_text(&c);
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	free(text);
	if (!module) {
		fprintf(stderr, "%s: %s\n", code, unit_log);
		return false;
	}
	uint64_t(*device)[4] = unit_alloc(n * sizeof *device);
	memcpy(device, rows, n * sizeof *device);
	for (size_t r = 0; r < n; r++)
		device[r][3] = 0;
	struct unit_launch u = {.kernel = "k",
		.grid = (unsigned)((n + 127) / 128),
		.block = 128,
		.args = {(uint64_t)(uintptr_t)device, n}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	if (fault != CKT_PTX_FAULT_NONE)
		fprintf(stderr, "%s: %s\n", code, unit_message);
	memcpy(rows, device, n * sizeof *device);
	munmap(device, n * sizeof *device);
	ckt_soft_memmap_set((uint64_t)(uintptr_t)device, n * sizeof *device, 0);
	ckt_ptx_module_destroy(module);
	return fault == CKT_PTX_FAULT_NONE;
}

static void say_wrong(const char *code, const uint64_t *row, uint64_t have, uint64_t want)
{
	fprintf(stderr, "%s\n  a=%llx b=%llx c=%llx: %llx, expected %llx\n", code,
		(unsigned long long)row[0], (unsigned long long)row[1], (unsigned long long)row[2],
		(unsigned long long)have, (unsigned long long)want);
}

void unit_check(
	const struct unit_case *cases, size_t n_cases, const uint64_t *values, size_t n_values)
{
	size_t n = n_values * n_values * n_values;
	uint64_t(*rows)[4] = calloc(n, sizeof *rows);
	for (size_t k = 0; k < n_cases; k++) {
		const struct unit_case *c = &cases[k];
		for (size_t r = 0; r < n; r++) {
			rows[r][0] = values[r % n_values];
			rows[r][1] = values[r / n_values % n_values];
			rows[r][2] = values[r / n_values / n_values];
		}
		bool ran = unit_compute(c->code, c->result, rows, n);
		CU_ASSERT(ran);
		size_t wrong = 0;
		for (size_t r = 0; ran && r < n; r++) {
			uint64_t have = cut(c->result, rows[r][3]),
				 want = cut(
					 c->result, c->expect(rows[r][0], rows[r][1], rows[r][2]));
			if (c->equal ? c->equal(have, want) : have == want)
				continue;
			if (!wrong++)
				say_wrong(c->code, rows[r], have, want);
		}
		CU_ASSERT_EQUAL(wrong, 0);
	}
	free(rows);
}

void unit_rows(const char *code, enum unit_result result, const struct unit_row *rows, size_t n,
	const char *file, unsigned line)
{
	uint64_t(*copy)[4] = calloc(n, sizeof *copy);
	for (size_t r = 0; r < n; r++)
		memcpy(copy[r], &rows[r], sizeof copy[r]);
	bool ran = unit_compute(code, result, copy, n);
	CU_assertImplementation(ran, line, code, file, "", false);
	for (size_t r = 0; ran && r < n; r++) {
		uint64_t have = cut(result, copy[r][3]), want = cut(result, rows[r].want);
		if (have != want)
			say_wrong(code, copy[r], have, want);
		CU_assertImplementation(have == want, line, code, file, "", false);
	}
	free(copy);
}

uint32_t *unit_memory;
unsigned unit_cluster;

void unit_clear(void)
{
	if (!unit_memory)
		unit_memory = unit_alloc(UNIT_MEMORY);
	memset(unit_memory, 0, UNIT_MEMORY);
}

enum ckt_ptx_fault unit_threads(
	const char *module_scope, const char *body, unsigned grid, unsigned block, uint32_t *ret)
{
	size_t room = strlen(module_scope) + strlen(body) + 1024, n = (size_t)grid * block;
	char *text = malloc(room);
	snprintf(text, room,
		UNIT_HEAD
		"%s\n.visible .entry k(.param .u64 out, .param .u64 memory)\n{\n"
		".reg .b64 m, o, xx, x<16>; .reg .b32 t, tt, r<32>; .reg .b16 h<8>; .reg .pred p<8>; .reg .f32 f<8>;\n"
		"ld.param.u64 o, [out]; ld.param.u64 m, [memory]; mov.u32 t, %%ctaid.x; mov.u32 tt, %%ntid.x; "
		"mul.lo.u32 t, t, tt;\n"
		"mov.u32 tt, %%tid.x; add.u32 t, t, tt; mul.wide.u32 xx, t, 4; add.u64 o, o, xx;\n%s\nst.global.u32 [o], r0;\n"
		"ret;\n}\n",
		module_scope, body);
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n%s\n", unit_log, body);
	free(text);
	CU_ASSERT_PTR_NOT_NULL(module);
	if (!module)
		return CKT_PTX_FAULT_LAUNCH_FAILURE;
	if (!unit_memory)
		unit_clear();
	uint32_t *device = unit_alloc(n * 4);
	struct unit_launch u = {.kernel = "k",
		.grid = grid,
		.block = block,
		.cluster = unit_cluster,
		.args = {(uint64_t)(uintptr_t)device, (uint64_t)(uintptr_t)unit_memory}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	memcpy(ret, device, n * 4);
	munmap(device, n * 4);
	ckt_soft_memmap_set((uint64_t)(uintptr_t)device, n * 4, 0);
	ckt_ptx_module_destroy(module);
	return fault;
}

void unit_refused(const char *text, enum ckt_ptx_result want, unsigned line, const char *words,
	const char *file, unsigned at)
{
	enum ckt_ptx_result result;
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, &result);
	char start[32];
	snprintf(start, sizeof start, "text0:%u: ", line);
	bool good = !module && result == want && strstr(unit_log, words) &&
		(!line || !strncmp(unit_log, start, strlen(start)));
	if (!good)
		fprintf(stderr, "%s\n  gave %d: %s\n  not %d with line %u and \"%s\"\n", text,
			(int)result, module ? "loaded" : unit_log, (int)want, line, words);
	CU_assertImplementation(good, at, words, file, "", false);
	if (module)
		ckt_ptx_module_destroy(module);
}

int unit_main(const char *suite_name, const struct unit_test *tests, size_t n_tests)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t k = 0; k < n_tests; k++)
		CU_add_test(suite, tests[k].name, tests[k].run);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
