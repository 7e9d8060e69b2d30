/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's way to the worker without a connection: each message of the shim goes straight to the
 * worker's handler, in this process (tests/unit/worker/inside.h), and from there to the recording
 * double of the library (double.h).
 */
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/worker/libs/cublasLt/cublasLt.h"
#include "tests/unit/cublaslt/double.h"
#include "tests/unit/worker/inside.h"

/* Messages of a procedure that were sent since bridge_reset, and of all. */
unsigned bridge_sent(unsigned proc);
unsigned bridge_total(void);
/* Of these, those that were waited for. */
unsigned bridge_waited(void);
void bridge_reset(void);
/* What the worker kept as the deferred error of a batched call; 0: nothing. */
extern int bridge_deferred;
/* Batched calls are waited for, as with CRICKET_SYNC=1. */
extern bool bridge_sync;
/* The next calls end so before they are sent; 0: not. */
extern CUresult bridge_fails;
/* Addresses that the last call named, as before_work heard of them. */
extern uint64_t bridge_addresses[32];
extern unsigned bridge_address_count;
/* What before_work adds to an address in its stead, for those from 0x7f0000000000 on. */
extern uint64_t bridge_moves;

/* Streams capture: the arguments of the last call that was captured, and its procedure. */
extern bool bridge_captures;
extern uint8_t *bridge_captured;
extern size_t bridge_captured_bytes;
extern unsigned bridge_captured_proc;

/* The handle that all tests use. */
cublasLtHandle_t bridge_handle(void);
/* Runs a procedure of cuBLASLt with these bytes; INSIDE_GARBAGE, a CUresult. */
int bridge_raw(unsigned proc, const uint8_t *bytes, size_t size, bool batched);
