/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so.1 of the client inside the test, against a private cricket-server on the soft GPU,
 * with a relay in between that writes down every command: so a test can say which messages a call
 * costs, and that what is wrong never travels.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "tests/unit/suite.h"

/* Everything before is sent and done; counting begins. */
void relay_mark(void);
/*
 * Everything since relay_mark is sent and done: commands that were waited for, and those that were
 * batched, without our own wait.
 */
void relay_settle(void);
extern unsigned relay_waited, relay_batched;
/* Of one procedure by its name in cuda.api. */
unsigned relay_count(const char *name);
/*
 * The arguments of the latest one, NULL where there is none; at most 4096 bytes of them are kept.
 */
const uint8_t *relay_args(const char *name, size_t *ret_size);

/* Connections that were lanes, and what the program sent over them. */
extern _Atomic uint64_t relay_lanes, relay_lane_bytes;
/* After so many more bytes every lane breaks, until this is called with UINT64_MAX. */
void relay_break_lanes_after(uint64_t bytes);
/* The connection breaks, and the next one passes descriptors on or, as a tunnel, does not. */
void relay_break(bool passes_then);

/* The expression's result, and that it costs so many waited and batched commands. */
#define COST(expression, result, waited, batched)                                             \
	do {                                                                                  \
		relay_mark();                                                                 \
		IS(expression, result);                                                       \
		relay_settle();                                                               \
		unit_is(relay_waited, waited, "waited commands of " #expression, __FILE__,    \
			__LINE__, false);                                                     \
		unit_is(relay_batched, batched, "batched commands of " #expression, __FILE__, \
			__LINE__, false);                                                     \
	} while (0)
/* Answered here. */
#define LOCAL(expression, result) COST(expression, result, 0, 0)

/* Whether the call asked the worker that question.  COST would wait for the GPU itself. */
#define ASKS(expression, name, times)         \
	do {                                  \
		relay_mark();                 \
		IS(expression, CUDA_SUCCESS); \
		IS(relay_count(name), times); \
	} while (0)

enum { BAD = CUDA_ERROR_INVALID_VALUE };

/* Of device 0, current on the test's thread. */
extern CUcontext primary;
/* add(u64 out, u32 n): *out += n, by each thread; and a u32 `counter`. */
extern const char relay_ptx[];
CUmodule relay_module(void);
CUfunction relay_add(void);
/* Device memory of that size set to a value in each word, and a word of it. */
CUdeviceptr memory_of(size_t size, uint32_t value);
uint32_t word_at(CUdeviceptr address);
