/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/client/criu_message.c: the bytes of requests, and what is read of responses, well-formed or not. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl/client/criu_message.h"

/* Bytes of a literal without its end. */
#define BYTES(literal) (const uint8_t *)(literal), sizeof(literal) - 1

/* Written by hand from CRIU's numbers of fields: a key is number * 8 + kind. */
static void test_encode(void)
{
	uint8_t data[256];
	CktCtlCriu__Request request = CKT_CTL_CRIU__REQUEST__INIT;
	static const uint8_t version[] = {0x08, 10};
	request.has_type = true;
	request.type = 10;
	CU_ASSERT_EQUAL(ckt_ctl_criu_request_encode(&request, data, sizeof data), sizeof version);
	CU_ASSERT_EQUAL(memcmp(data, version, sizeof version), 0);

	CktCtlCriu__Options opts = CKT_CTL_CRIU__OPTIONS__INIT;
	CktCtlCriu__InheritFd one = CKT_CTL_CRIU__INHERIT_FD__INIT, *list[] = {&one};
	static const uint8_t restore[] = {
		0x08, 2,               /* restore */
		0x12, 35,              /* options */
		0x08, 5,               /* images_dir_fd */
		0x10, 0xac, 0x02,      /* pid 300 */
		0x18, 0,               /* leave_running: no */
		0x38, 1, 0x40, 1,      /* shell_job, file_locks */
		0x48, 4,               /* log_level */
		0x52, 1, 'l',          /* log_file */
		0x60, 1,               /* notify_scripts */
		0x88, 0x01, 6,         /* work_dir_fd */
		0xda, 0x01, 5,         /* inherit_fd */
		0x0a, 1, 'k', 0x10, 7, /* its key and descriptor */
		0x90, 0x02, 0,         /* manage_cgroups_mode: ignore */
		0x98, 0x04, 1,         /* unprivileged */
		0x18, 1,               /* notify_success */
	};
	request.type = 2;
	request.opts = &opts;
	request.has_notify_success = request.notify_success = true;
	opts.has_images_dir_fd = opts.has_pid = opts.has_leave_running = opts.has_log_level = true;
	opts.images_dir_fd = 5;
	opts.pid = 300;
	opts.has_shell_job = opts.shell_job = opts.has_file_locks = opts.file_locks = true;
	opts.log_level = 4;
	opts.log_file = "l";
	opts.has_notify_scripts = opts.notify_scripts = true;
	opts.has_work_dir_fd = opts.has_manage_cgroups_mode = true;
	opts.work_dir_fd = 6;
	one.key = "k";
	one.has_fd = true;
	one.fd = 7;
	opts.n_inherit_fd = 1;
	opts.inherit_fd = list;
	opts.has_unprivileged = opts.unprivileged = true;
	CU_ASSERT_EQUAL(ckt_ctl_criu_request_encode(&request, data, sizeof data), sizeof restore);
	CU_ASSERT_EQUAL(memcmp(data, restore, sizeof restore), 0);

	/* What does not fit is not written. */
	memset(data, 0xee, sizeof data);
	CU_ASSERT_EQUAL(ckt_ctl_criu_request_encode(&request, data, sizeof restore - 1), 0);
	CU_ASSERT_EQUAL(data[0], 0xee);
}

/* Every field that we read, between some that we do not know, of each kind. */
static const uint8_t whole[] = {
	0x08, 6,                   /* notify */
	0x10, 1,                   /* success */
	0x1a, 2, 0x08, 1,          /* unknown: dump */
	0x22, 3, 0x08, 0xac, 0x02, /* restored: pid 300 */
	0x2a, 13, 0x0a, 9, 'p', 'o', 's', 't', '-', 'd', 'u', 'm', 'p', 0x10,
	9,                 /* notice, its pid */
	0x38, 13,          /* error */
	0x4a, 2, 'n', 'o', /* its message */
	0x52, 13, 0x08, 4, 0x10, 1, 0x1a, 3, 'g', 'i', 't', 0x20, 2, 0x10, 3, 0xf9, 0x07, 1, 2, 3,
	4, 5, 6, 7, 8,          /* unknown, 8 bytes */
	0xfd, 0x07, 1, 2, 3, 4, /* unknown, 4 bytes */
};

static void test_decode(void)
{
	struct ckt_criu_response r;
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(whole, sizeof whole, &r), 0);
	CU_ASSERT_EQUAL(r.type, 6);
	CU_ASSERT_TRUE(r.success);
	CU_ASSERT_EQUAL(r.pid, 300);
	CU_ASSERT_STRING_EQUAL(r.script, "post-dump");
	CU_ASSERT_EQUAL(r.error, 13);
	CU_ASSERT_STRING_EQUAL(r.message, "no");
	CU_ASSERT_EQUAL(r.version, 40302); /* the last of a field counts */

	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(BYTES(""), &r), 0);
	CU_ASSERT_EQUAL(r.type, 0);
	CU_ASSERT_FALSE(r.success);
	CU_ASSERT_EQUAL(r.pid + r.error + (int)r.version, 0);
	CU_ASSERT_EQUAL(*r.script + *r.message, 0);

	/* Parts of a version that are no two digits. */
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(BYTES("\x52\x05\x08\x04\x10\xac\x02"), &r), 0);
	CU_ASSERT_EQUAL(r.version, 49900);
	CU_ASSERT_EQUAL(
		ckt_ctl_criu_response_decode(
			BYTES("\x52\x0d\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01"), &r),
		0);
	CU_ASSERT_EQUAL(r.version, 1);
}

/* A message that ends within a field is refused, and nothing of it is used. */
static void test_truncated(void)
{
	static const size_t ends[] = {0, 2, 4, 8, 13, 28, 30, 34, 49, 59, 65};
	struct ckt_criu_response r;
	size_t accepted = 0;
	for (size_t size = 0; size <= sizeof whole; size++) {
		bool complete = false;
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
			complete |= size == ends[i];
		/* A copy of that size: a sanitizer sees a read behind it. */
		uint8_t copy[sizeof whole];
		memcpy(copy + sizeof copy - size, whole, size);
		int result = ckt_ctl_criu_response_decode(copy + sizeof copy - size, size, &r);
		CU_ASSERT_EQUAL(result, complete ? 0 : -EPROTO);
		accepted += !result;
		if (result)
			CU_ASSERT_EQUAL(r.type, 0);
	}
	CU_ASSERT_EQUAL(accepted, sizeof ends / sizeof *ends);
	CU_ASSERT_EQUAL(sizeof whole, 65);
}

static void test_malformed(void)
{
	struct ckt_criu_response r;
	/* Groups, a number of eleven bytes, a length beyond the end, one beyond all memory, number 0. */
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(BYTES("\x0b\x0c"), &r), -EPROTO);
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(
				BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &r),
		-EPROTO);
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(BYTES("\x4a\x05no"), &r), -EPROTO);
	CU_ASSERT_EQUAL(
		ckt_ctl_criu_response_decode(BYTES("\x4a\xff\xff\xff\xff\x0fno"), &r), -EPROTO);
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(BYTES("\x52\x02\x08"), &r), -EPROTO);
}

/* Longer texts than there is room for are cut. */
static void test_long_text(void)
{
	struct ckt_criu_response r;
	uint8_t data[3 + 400];
	memset(data, 'x', sizeof data);
	memcpy(data, "\x4a\x90\x03", 3);
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(data, sizeof data, &r), 0);
	CU_ASSERT_EQUAL(strlen(r.message), sizeof r.message - 1);
	memcpy(data, "\x2a\x90\x03\x0a\x8d\x03", 6);
	CU_ASSERT_EQUAL(ckt_ctl_criu_response_decode(data, sizeof data, &r), 0);
	CU_ASSERT_EQUAL(strlen(r.script), sizeof r.script - 1);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("criu_message", NULL, NULL);
	CU_add_test(suite, "encode", test_encode);
	CU_add_test(suite, "decode", test_decode);
	CU_add_test(suite, "truncated", test_truncated);
	CU_add_test(suite, "malformed", test_malformed);
	CU_add_test(suite, "long text", test_long_text);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
