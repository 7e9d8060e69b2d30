/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For NAME_roundtrip.inc (rpc/gen/emit_roundtrip.py): values, what was expected, and what the
 * double of the library wrote down.  The file that includes both has test_object_KIND, test_enum,
 * expect_object and the loop over roundtrips.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/libs/loop.h"

struct roundtrip {
	const char *name;
	void (*run)(void);
};

/*
 * What a test is run with: both pointer modes; small values, the longest arrays with a status that
 * is not 0, and NULL for device memory.
 */
static unsigned test_mode, test_pass;
enum { PASS_SMALL, PASS_LONGEST, PASS_NULL, PASSES };
enum { FAILED_STATUS = 13, VALUES = 96, RECORD = 4 << 20 };

static struct {
	const char *name;
	size_t expected_size, size;
	uint8_t *expected, *record;
	unsigned calls;
	size_t array_used;
} test;

static _Alignas(16) uint8_t test_scalars[64][VALUES];
static _Alignas(16) uint8_t test_arrays[16][1024 * 16];

static void __attribute__((unused)) test_begin(const char *name)
{
	if (!test.expected) {
		test.expected = malloc(RECORD);
		test.record = malloc(RECORD);
	}
	test.name = name;
	test.expected_size = test.size = 0;
	test.calls = 0;
	test.array_used = 0;
	for (size_t i = 0; i < sizeof test_scalars; i++)
		(&test_scalars[0][0])[i] = (uint8_t)(i * 7 + 1);
}

static void *__attribute__((unused)) test_device(unsigned index)
{
	return test_pass == PASS_NULL
		? NULL
		: (void *)(uintptr_t)(0x7e0000000000 + (uint64_t)index * 0x100010001000);
}

static int64_t __attribute__((unused)) test_number(const char *name, unsigned index)
{
	/* Forward or inverse. */
	if (!strcmp(name, "direction"))
		return test_pass == PASS_LONGEST ? 1 : -1;
	/* Leading dimensions hold what the other numbers say. */
	return !strncmp(name, "ld", 2) ? 1000 + (int64_t)index : 1 + (int64_t)index;
}

static int64_t __attribute__((unused)) test_count(unsigned least, unsigned limit)
{
	return test_pass == PASS_LONGEST ? (int64_t)limit
		: test_pass == PASS_NULL ? (int64_t)least
		: 3 > limit              ? (int64_t)limit
					 : 3;
}

static void *__attribute__((unused)) test_scalar(unsigned index)
{
	return test_scalars[index];
}

static void *__attribute__((unused)) test_place(unsigned index)
{
	return test_scalars[32 + index];
}

static void *__attribute__((unused)) test_array(unsigned index, size_t bytes)
{
	uint8_t *array = test_arrays[test.array_used++];
	MUST(bytes <= sizeof test_arrays[0], true);
	for (size_t i = 0; i < bytes; i++)
		array[i] = (uint8_t)(i * 13 + index);
	return array;
}

static void __attribute__((unused))
append(uint8_t *to, size_t *size, const void *data, size_t bytes)
{
	MUST(*size + bytes <= RECORD, true);
	if (bytes)
		memcpy(to + *size, data, bytes);
	*size += bytes;
}

#define expect_put(data, bytes) append(test.expected, &test.expected_size, data, bytes)
#define double_put(data, bytes) append(test.record, &test.size, data, bytes)

static void __attribute__((unused)) expect_scalar(const void *value, size_t bytes)
{
	static const uint8_t zero[VALUES];
	if (test_mode)
		expect_put(&value, sizeof value);
	else
		expect_put(value ? value : zero, bytes);
}

static void __attribute__((unused)) expect_place(const void *value)
{
	if (test_mode)
		expect_put(&value, sizeof value);
}

static void double_begin(const char *name)
{
	TEXT(name, test.name);
	test.calls++;
	test.size = 0;
}

static void __attribute__((unused)) double_address(const void *address)
{
	double_put(&address, sizeof address);
}

static void __attribute__((unused)) double_scalar(const void *value, size_t bytes)
{
	if (test_mode)
		double_put(&value, sizeof value);
	else
		double_put(value, bytes);
}

static void __attribute__((unused)) double_place(const void *value)
{
	if (test_mode)
		double_put(&value, sizeof value);
}

/* What comes back; on the device nothing of it is there in truth. */
static void __attribute__((unused)) double_give(void *value, size_t bytes, unsigned index)
{
	if (!test_mode)
		memset(value, 0xa0 + (int)index, bytes);
}

static void __attribute__((unused)) double_out(void *value, size_t bytes, unsigned index)
{
	memset(value, 0xb0 + (int)index, bytes);
}

static int double_end(void)
{
	return test_pass == PASS_LONGEST ? FAILED_STATUS : 0;
}

static bool __attribute__((unused)) test_waits_for_values(void)
{
	return !test_mode;
}

/*
 * The status of a call that waits is the library's; of one that does not it is told later, or at
 * once with CRICKET_SYNC=1.
 */
static void test_result(int status, bool waits)
{
	int expected = double_end();
	bool at_once = waits || loop_sync;
	if (test.calls != 1 || test.size != test.expected_size ||
		memcmp(test.record, test.expected, test.size))
		fprintf(stderr,
			"%s, mode %u, pass %u: %u calls, %zu bytes where %zu are expected\n",
			test.name, test_mode, test_pass, test.calls, test.size, test.expected_size);
	IS(status, at_once ? expected : 0);
	IS(loop_deferred(), !at_once && expected ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
	IS(test.calls, 1);
	IS(test.size, test.expected_size);
	YES(!memcmp(test.record, test.expected,
		test.size < test.expected_size ? test.size : test.expected_size));
	IS(loop_waited, at_once);
	IS(loop_batched, !at_once);
}

#define test_called(call, waits)             \
	do {                                 \
		loop_mark();                 \
		int status_ = (int)(call);   \
		test_result(status_, waits); \
	} while (0)

/* Waited for until the library has taken it once. */
#define test_learned(call)                            \
	do {                                          \
		ckt_lib_taken_clear();                \
		test_called(call, true);              \
		test.calls = 0;                       \
		test_called(call, double_end() != 0); \
	} while (0)

static void __attribute__((unused)) test_bytes(const uint8_t *value, size_t bytes, uint8_t expected)
{
	for (size_t i = 0; i < bytes; i++)
		if (value[i] != expected) {
			fprintf(stderr, "%s: byte %zu of a result\n", test.name, i);
			IS(value[i], expected);
			return;
		}
}

static void __attribute__((unused)) test_given(const void *value, size_t bytes, unsigned index)
{
	if (!test_mode && test_pass != PASS_LONGEST)
		test_bytes(value, bytes, (uint8_t)(0xa0 + index));
}

static void __attribute__((unused)) test_out(const void *value, size_t bytes, unsigned index)
{
	if (test_pass != PASS_LONGEST)
		test_bytes(value, bytes, (uint8_t)(0xb0 + index));
}

/* Not sent, and said so at once. */
static void test_here(int status, int expected)
{
	if (status != expected)
		fprintf(stderr, "%s: status %d where %d is expected\n", test.name, status,
			expected);
	IS(status, expected);
	IS(loop_waited + loop_batched, 0);
	IS(test.calls, 1);
}

#define test_refused(call)                              \
	do {                                            \
		loop_mark();                            \
		test_here((int)(call), REFUSED_STATUS); \
	} while (0)
#define test_no_object(call)                              \
	do {                                              \
		loop_mark();                              \
		test_here((int)(call), NO_OBJECT_STATUS); \
	} while (0)

/* Every function in every way, in test_mode. */
static void roundtrip_mode(const struct roundtrip *list, size_t count)
{
	for (test_pass = 0; test_pass < PASSES; test_pass++)
		for (int sync = 0; sync < 2; sync++)
			for (size_t i = 0; i < count; i++) {
				loop_sync = sync;
				list[i].run();
			}
	loop_sync = false;
}
