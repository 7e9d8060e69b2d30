/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/doctor/doctor.c: what doctor makes of files, broken ones included: every truncation of a
 * program must be survived.
 */
#include <CUnit/Basic.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor/doctor.h"

static char path[64];

static void write_file(const void *data, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CU_ASSERT_EQUAL(write(fd, data, size), (ssize_t)size);
	fchmod(fd, mode);
	close(fd);
}

/* The result of the last check of that name; NULL where there is none. */
static const char *look(const char *command, const char *name)
{
	static char result[32];
	struct ckt_doctor doctor = {.json = true, .checks = json_array()};
	size_t index;
	json_t *check;
	ckt_ctl_doctor_program(&doctor, command);
	result[0] = 0;
	json_array_foreach(doctor.checks, index,
		check) if (strcmp(json_string_value(json_object_get(check, "name")), name) == 0)
		snprintf(result, sizeof result, "%s",
			json_string_value(json_object_get(check, "result")));
	json_decref(doctor.checks);
	return *result ? result : NULL;
}

static void *read_self(size_t *ret_size)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY);
	fstat(fd, &st);
	uint8_t *data = malloc((size_t)st.st_size);
	CU_ASSERT_EQUAL_FATAL(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return data;
}

static void test_programs(void)
{
	size_t size;
	uint8_t *self = read_self(&size);
	write_file(self, size, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "ok");
	CU_ASSERT_STRING_EQUAL(look(path, "runtime"), "ok");
	write_file(self, size, 04700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "fail");
	self[18] = 183; /* AArch64 */
	write_file(self, size, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "fail");
	free(self);
	write_file("text\n", 5, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "fail");
	CU_ASSERT_STRING_EQUAL(look("/nonexistent", "program"), "fail");
	CU_ASSERT_STRING_EQUAL(look("sh", "program"), "ok");
	write_file("#!/bin/sh\n", 10, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "script"), "ok");
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "ok");
	write_file("#!/usr/bin/env sh", 17, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "ok");
	char loop[128];
	int length = snprintf(loop, sizeof loop, "#!%s\n", path);
	write_file(loop, (size_t)length, 0700);
	CU_ASSERT_STRING_EQUAL(look(path, "program"), "fail");
}

static void test_truncated(void)
{
	size_t size;
	uint8_t *self = read_self(&size);
	for (size_t cut = 1; cut < 2048; cut += 7) {
		write_file(self, cut, 0700);
		CU_ASSERT_PTR_NOT_NULL(look(path, "program"));
	}
	for (size_t cut = 2048; cut < size; cut += size / 50) {
		write_file(self, cut, 0700);
		CU_ASSERT_PTR_NOT_NULL(look(path, "program"));
	}
	/* Offsets and counts that lead astray. */
	for (size_t at = 16; at < 64 + 56 * 12; at++) {
		uint8_t before = self[at];
		self[at] = 0xff;
		if (at % 5 == 0) {
			write_file(self, size, 0700);
			CU_ASSERT_PTR_NOT_NULL(look(path, "program"));
		}
		self[at] = before;
	}
	free(self);
}

int main(void)
{
	snprintf(path, sizeof path, "/tmp/ckt-doctor-%d", (int)getpid());
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("doctor", NULL, NULL);
	CU_add_test(suite, "programs", test_programs);
	CU_add_test(suite, "truncated", test_truncated);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	unlink(path);
	return failures != 0;
}
