/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the targets share: libFuzzer's interface, inputs read byte by byte, and memory that runs out
 * when the input says so.
 *
 * Threading: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Ends the target with a finding. */
void fuzz_insist(bool good, const char *what);

/* A generator that is the same on every machine; *seed is changed. */
uint32_t fuzz_random(unsigned *seed);
/* A number near `old` or near a bound. */
uint32_t fuzz_number(uint32_t old, unsigned *seed);

/* What is left of an input; behind its end everything is 0. */
struct fuzz_input {
	const uint8_t *p, *end;
};
uint8_t fuzz_u8(struct fuzz_input *input);
uint32_t fuzz_u32(struct fuzz_input *input);
/* The next bytes of the input: as many as are left, at most `size`. */
const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t size, size_t *ret_size);

/*
 * The allocation of that number from now on fails, in the code that is compiled into the target
 * (-Wl,--wrap): 1 is the next one, 0 none.
 */
void fuzz_fail_allocation(unsigned number);
/* Larger ones fail always, as where a process may have no more address space.  0: no bound. */
void fuzz_bound_allocations(size_t bytes);

/* A file of a directory of seeds; ends the process where that fails. */
void fuzz_write_seed(const char *directory, const char *name, const void *data, size_t size);
