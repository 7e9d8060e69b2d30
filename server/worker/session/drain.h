/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the GPU has work of the session, and waiting until it has none.
 *
 * Threading: the executor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_worker;

/*
 * Waits until no stream of any context has work: 0, -EAGAIN if a host function of the program runs,
 * or -EBUSY and a sentence that names the stream.
 */
int ckt_streams_drain(
	struct ckt_worker *worker, int64_t deadline_ms, char *ret_message, size_t message_size);
/* Whether a stream of any context has work, and the sentence. */
/* Whether a stream of a context of that device (an index) has unfinished work. */
bool ckt_streams_busy_on(struct ckt_worker *worker, unsigned device);
bool ckt_streams_busy(struct ckt_worker *worker, char *ret_message, size_t message_size);
