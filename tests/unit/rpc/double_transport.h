/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport without a kernel: what it says next is written down by the test.  Each step answers
 * one read, write or look for pending bytes.
 */
#pragma once

#include "rpc/transport/transport.h"

struct double_transport {
	struct ckt_transport transport; /* first: the operations cast */
	const uint8_t *input;           /* what the peer sent */
	size_t input_size;
	uint8_t output[256]; /* what was written */
	size_t output_size;
	/* One a call of read or write: at most so many bytes, or -errno; after the last, anything. */
	const int *steps;
	size_t step_count, calls;
	int passes_fd; /* comes with the first byte that is read; -1 */
	int passed_fd; /* went with a byte; -1 */
	bool pending, finished, closed, shut_down;
	int ready_fd; /* an end of a pipe that always polls ready */
	int other_fd;
};

void double_init(struct double_transport *d, const int *steps, size_t step_count);
void double_fini(struct double_transport *d);
