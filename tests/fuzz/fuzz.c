/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets share; see fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_insist(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "fuzz: %s\n", what);
		abort();
	}
}

uint8_t fuzz_u8(struct fuzz_input *input)
{
	return input->p < input->end ? *input->p++ : 0;
}

uint32_t fuzz_u32(struct fuzz_input *input)
{
	uint32_t value = 0;
	for (int i = 0; i < 4; i++)
		value = value << 8 | fuzz_u8(input);
	return value;
}

const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t size, size_t *ret_size)
{
	const uint8_t *bytes = input->p;
	size_t left = (size_t)(input->end - input->p);
	*ret_size = size < left ? size : left;
	input->p += *ret_size;
	return bytes;
}

/* ---- Memory that runs out */

static unsigned until_failure;
static size_t largest;

void fuzz_fail_allocation(unsigned number)
{
	until_failure = number;
}

void fuzz_bound_allocations(size_t bytes)
{
	largest = bytes;
}

static bool fails(size_t size)
{
	if (largest && size > largest)
		return true;
	return until_failure && --until_failure == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return (size && count > SIZE_MAX / size) || fails(count * size)
		? NULL
		: __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails(size) ? NULL : __real_realloc(old, size);
}

/* ---- Seeds */

void fuzz_write_seed(const char *directory, const char *name, const void *data, size_t size)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	if (!file || (size && fwrite(data, size, 1, file) != 1) || fclose(file)) {
		perror(path);
		exit(1);
	}
}
