/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording double of the genuine cuFFT beneath the worker's handlers, and a client's table that
 * reaches these handlers at once:
 *
 *	client/libs/cufft -> double_table -> handlers of server/worker/libs/cufft*.c -> double: what it was called with, as text
 */
#pragma once

#include "client/libs/libs.h"
#include "server/worker/libs/cufft/cufft.h"
#include "tests/unit/worker/inside.h"

/* Puts the double in place, and the table where the client's library looks for it. */
void double_begin(void);
/*
 * What the double was called with since the last time: "name(argument, ...)" and a line end each.
 */
const char *double_calls(void);
/* What its functions return, until it is set again; what a size is. */
extern cufftResult double_status;
extern size_t double_bytes;
/* CUresult of the next calls of the client's table, by step; 0: none fails. */
extern CUresult double_wait_fails, double_before_work, double_begin_fails, double_capture;
/* What the next call of the table finds: the thread's context. */
extern uint64_t double_context;
/* Which server the second GPU is at; the first is at 0. */
extern unsigned double_node;
/* What allocations of the client's say. */
extern CUresult double_alloc_fails;
/* How many messages of each class went. */
extern unsigned double_waited, double_batched;
/* The stream that captures has ended its capture when the call comes to it. */
extern bool double_capture_ended;
/* What a batched call left behind, and forgets. */
CUresult double_deferred(void);
/* Runs a handler on bytes as they are; its CUresult, or INSIDE_GARBAGE. */
int double_run(uint32_t proc, const uint8_t *args, size_t size, bool batched,
	struct ckt_cursor *ret_results);
