/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated functions call these. number is the function's number in rpc/api/nvml.api.
 * Functions return nvmlReturn_t; any thread may call them.
 */
#pragma once

#include <stdbool.h>

int ckt_nvml_data(unsigned number, const void *device, const void *other, const unsigned *selectors,
	void *const *outs);
int ckt_nvml_versioned(unsigned number, const void *device, const void *other,
	const unsigned *selectors, void *block);
int ckt_nvml_text(unsigned number, const void *device, const void *other, const unsigned *selectors,
	char *text, unsigned size);
int ckt_nvml_fields(unsigned number, const void *device, int count, void *values);
int ckt_nvml_copy_text(const char *from, char *text, unsigned size);
int ckt_nvml_refuse(const char *name, bool *once);
