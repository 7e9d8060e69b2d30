/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running PTX in the tests: texts in, words out.  One thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"
#include "tests/unit/suite.h"

extern char unit_log[512];      /* of the last load */
extern char unit_message[256];  /* of the last launch */
extern char unit_output[65536]; /* printf and assert text of the last launch, NUL-terminated */

/* What handle n + 1 names, as a texture and as a surface. */
extern const struct ckt_ptx_texture *unit_textures[4];

/* Zeroed memory that the device may touch; lives until the program ends. */
void *unit_alloc(size_t size);
/*
 * Loads, gives every global an address and binds; NULL with unit_log after a failure, *ret_result
 * (may be NULL) says which.  A kernel that is refused is a failure, too, unless unit_load_refused.
 */
extern bool unit_load_refused;
struct ckt_ptx_module *unit_load(
	const char *const *texts, size_t n_texts, enum ckt_ptx_result *ret_result);
uint64_t unit_global(struct ckt_ptx_module *module, const char *name);

struct unit_launch {
	const char *kernel;
	unsigned grid, block, shared;
	bool cooperative;
	const volatile bool *cancel;
	uint64_t args[8]; /* 64-bit parameters */
	unsigned cluster; /* blocks of one, or 0 */
};
enum ckt_ptx_fault unit_run(struct ckt_ptx_module *module, const struct unit_launch *launch);

/*
 * One instruction or a few, for every combination of the values: reads xa, xb, xc (64 bits), ra,
 * rb, rc (32), ha, hb, hc (16), writes xo or ro or ho, or the predicate po; p, q, s and t are there
 * for use.
 */
enum unit_result { UNIT_64, UNIT_32, UNIT_16, UNIT_PRED };
struct unit_case {
	const char *code;
	enum unit_result result;
	uint64_t (*expect)(uint64_t a, uint64_t b, uint64_t c);
	bool (*equal)(uint64_t have, uint64_t want); /* NULL: the same bits */
};
void unit_check(
	const struct unit_case *cases, size_t n_cases, const uint64_t *values, size_t n_values);
/*
 * The same for rows of a, b and c; what came out of each becomes its fourth word.  False where the
 * code does not load or run.
 */
bool unit_compute(const char *code, enum unit_result result, uint64_t (*rows)[4], size_t n);

/* Rows with what must come out. */
struct unit_row {
	uint64_t a, b, c, want;
};
void unit_rows(const char *code, enum unit_result result, const struct unit_row *rows, size_t n,
	const char *file, unsigned line);
#define ROWS(code, result, ...)                                                                   \
	do {                                                                                      \
		static const struct unit_row rows_[] = {__VA_ARGS__};                             \
		unit_rows(code, result, rows_, sizeof rows_ / sizeof *rows_, __FILE__, __LINE__); \
	} while (0)

/*
 * A kernel of many threads: body has t (its number in the grid, 32 bits), m (the address of 64 KiB
 * of memory, kept from one kernel to the next unless cleared), r0 to r31, x0 to x15, h0 to h7, p0
 * to p7 and f0 to f7; r0 of every thread comes back.
 */
enum { UNIT_MEMORY = 65536 };
extern uint32_t *unit_memory;
void unit_clear(void);
extern unsigned unit_cluster; /* of the next kernels' launches; 0: none */
enum ckt_ptx_fault unit_threads(
	const char *module_scope, const char *body, unsigned grid, unsigned block, uint32_t *ret);
/*
 * What loading the text says: the result, and that the log begins with "text0:LINE: " and has the
 * words; line 0: anything.
 */
void unit_refused(const char *text, enum ckt_ptx_result want, unsigned line, const char *words,
	const char *file, unsigned at);
#define REFUSED(text, want, line, words) unit_refused(text, want, line, words, __FILE__, __LINE__)
/* One instruction in a kernel: its line is 5. */
#define REFUSED_BODY(body, words) REFUSED(UNIT_BODY body "\nret; }\n", CKT_PTX_INVALID, 5, words)
#define UNIT_BODY                                                                                                               \
	".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b16 h<9>; .reg .b32 r<9>; .reg .b64 x<9>; " \
	".reg .f32 f<9>; .reg .f64 d<9>; .reg .pred p<9>;\n"

#define UNIT_HEAD ".version 8.8\n.target sm_90\n.address_size 64\n"

int unit_main(const char *suite, const struct unit_test *tests, size_t n_tests);
#define UNIT_MAIN(suite, tests)                                                  \
	int main(void)                                                           \
	{                                                                        \
		return unit_main(suite, tests, sizeof(tests) / sizeof *(tests)); \
	}
