/* SPDX-License-Identifier: Apache-2.0 */
/* Output of kernels, kept until a synchronisation, as on a real GPU. */
#pragma once

#include <stddef.h>

struct ckt_soft_context;

void ckt_soft_output_write(
	struct ckt_soft_context *context, int fd, const char *text, size_t size_bytes);
void ckt_soft_output_flush(struct ckt_soft_context *context);
