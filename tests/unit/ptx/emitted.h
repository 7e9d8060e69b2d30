/* SPDX-License-Identifier: Apache-2.0 */
/* The C text of kernels, for the tests of emit*.c. */
#pragma once

#include "harness.h"
#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/front/link.h"

/* Of a text's first function, or of all of its module; malloc'd, NULL where there is none. */
static inline char *emitted(const char *text, bool whole)
{
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	const struct ptx_prepared *prepared;
	if (!module) {
		fprintf(stderr, "%s\n", unit_log);
		return NULL;
	}
	const struct ckt_ptx_function *f = ckt_ptx_module_function(module, 0);
	char *c = ckt_ptx_prepare(f, &prepared) ? NULL
						: ckt_ptx_emit_kernel(f, whole ? NULL : prepared);
	ckt_ptx_module_destroy(module);
	return c;
}

static inline unsigned times(const char *text, const char *part)
{
	unsigned n = 0;
	for (const char *at = text; at && (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

#define EMITTED(body)                                                                                             \
	UNIT_HEAD                                                                                                 \
	".visible .entry k(.param .u64 a) { .reg .b64 x, y; .reg .b32 r<9>; .reg .pred p; .reg .f32 f<4>;\n" body \
	"\nret; }\n"
