/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutates a value that rpcgen's routines decode: the routine itself says what the bytes mean.
 *
 * The routine runs over a stream of ours.  The stream hands on the units of the input, changes
 * some of them, makes up what the input lacks, and writes down what it handed on.  So every result
 * is a value of the grammar, unless a changed number broke a bound of the routine.
 *
 * Threading: one thread.
 */
#pragma once

#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/fuzz.h"

/*
 * Writes a mutation of `data` to `out`; returns its size.  value_bytes: of the C type.  An empty
 * `data` gives a new value.
 */
size_t fuzz_mutate_xdr(xdrproc_t xdr, size_t value_bytes, const uint8_t *data, size_t size,
	uint8_t *out, size_t out_size, unsigned seed);
