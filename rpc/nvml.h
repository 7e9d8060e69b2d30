/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML as both sides know it: its numbers, and the table of forwarded functions (rpc/api/nvml.api).
 * These are facts of NVIDIA's interface; the build does not need its header.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum ckt_nvml_return {
	CKT_NVML_SUCCESS = 0,
	CKT_NVML_UNINITIALIZED = 1,
	CKT_NVML_INVALID_ARGUMENT = 2,
	CKT_NVML_NOT_SUPPORTED = 3,
	CKT_NVML_NO_PERMISSION = 4,
	CKT_NVML_NOT_FOUND = 6,
	CKT_NVML_INSUFFICIENT_SIZE = 7,
	CKT_NVML_DRIVER_NOT_LOADED = 9,
	CKT_NVML_TIMEOUT = 10,
	CKT_NVML_LIBRARY_NOT_FOUND = 12,
	CKT_NVML_FUNCTION_NOT_FOUND = 13,
	CKT_NVML_GPU_IS_LOST = 15,
	CKT_NVML_RESET_REQUIRED = 16,
	CKT_NVML_MEMORY = 20,
	CKT_NVML_ARGUMENT_VERSION_MISMATCH = 25,
	CKT_NVML_UNKNOWN = 999,
};

enum {
	CKT_NVML_SELECTORS_MAX = 3,
	CKT_NVML_OUTS_MAX = 4,
	CKT_NVML_DATA_BYTES = 1024, /* the most that one call returns */
	/* of an nvmlFieldValue_t: id, scope, when, latency, type, result, value */
	CKT_NVML_FIELD_BYTES = 40,
};

enum ckt_nvml_kind { CKT_NVML_DATA, CKT_NVML_VERSIONED, CKT_NVML_TEXT, CKT_NVML_FIELD };

/*
 * The C parameters in order: device (not with system), a second device, selectors, then the
 * outputs.
 */
struct ckt_nvml_function {
	const char *name; /* NULL: no function has this number */
	enum ckt_nvml_kind kind;
	bool system, device2;
	uint8_t selectors, outs;
	uint16_t sizes[CKT_NVML_OUTS_MAX];
};

extern const struct ckt_nvml_function ckt_nvml_functions[];
extern const unsigned ckt_nvml_functions_count;

/* 0 if no function has that name. */
unsigned ckt_nvml_number(const char *name);

/* The size in the first word of a versioned structure; 0 if it cannot be such a word. */
static inline unsigned ckt_nvml_version_size(uint32_t version)
{
	unsigned size = version & 0xffffff;
	return version >> 24 && size >= sizeof version && size <= CKT_NVML_DATA_BYTES ? size : 0;
}
