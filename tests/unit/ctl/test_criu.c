/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/client/criu.c: what decides whether CRIU may do its work, and what of its log is said. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/client/criu.h"
#include "ctl/client/process.h"

static void test_version(void)
{
	char message[512] = "", text[CKT_CRIU_TEXT];
	static const struct {
		unsigned version;
		int expected;
		const char *said;
	} cases[] = {
		{40100, 0, ""},
		{40101, 0, ""},
		{40200, 0, ""},
		{50000, 0, ""},
		{40099, -EPROTONOSUPPORT,
			"/x/criu is CRIU 4.0.99, but --with-client needs 4.1 or later"},
		{40000, -EPROTONOSUPPORT, "is CRIU 4.0, but"},
		{31701, -EPROTONOSUPPORT, "is CRIU 3.17.1, but"},
		{0, -EPROTONOSUPPORT, "/x/criu does not report its version"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		*message = 0;
		CU_ASSERT_EQUAL(ckt_ctl_criu_version_check(
					cases[i].version, "/x/criu", message, sizeof message),
			cases[i].expected);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, cases[i].said));
		CU_ASSERT_EQUAL(*message == 0, cases[i].expected == 0);
	}
	CU_ASSERT_STRING_EQUAL(ckt_ctl_criu_version_text(CKT_CRIU_VERSION_MIN, text), "4.1");
	CU_ASSERT_STRING_EQUAL(ckt_ctl_criu_version_text(40101, text), "4.1.1");
}

static void test_rights(void)
{
	const uint64_t restore = 1ull << 40;
	const struct {
		struct ckt_criu_rights rights;
		int expected;
		bool unprivileged;
		const char *said;
	} cases[] = {
		{{.root = true, .effective = ~0ull}, 0, false, ""},
		{{.root = true, .effective = restore}, 0, true, ""},
		{{.root = true, .effective = 1}, -EPERM, true, "--cap-add CHECKPOINT_RESTORE"},
		{{.effective = 0}, -EPERM, true,
			"sudo setcap cap_checkpoint_restore,cap_sys_ptrace+eip /x/criu"},
		/* What is effective for us alone does not reach a program that we start. */
		{{.effective = restore}, -EPERM, true, "CAP_CHECKPOINT_RESTORE"},
		{{.effective = restore, .ambient = restore}, 0, true, ""},
		{{.file_capabilities = true}, 0, true, ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char message[512] = "";
		bool unprivileged = true;
		CU_ASSERT_EQUAL(ckt_ctl_criu_rights_check(&cases[i].rights, "/x/criu",
					&unprivileged, message, sizeof message),
			cases[i].expected);
		CU_ASSERT_EQUAL(unprivileged, cases[i].unprivileged);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, cases[i].said));
	}
}

static void test_log(void)
{
	char path[] = "/tmp/ckt-log-XXXXXX", text[64];
	FILE *file = fdopen(mkstemp(path), "w");
	fputs("(00.000001) Version: 4.1.1\n"
	      "(00.000002) Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n"
	      "(00.000003) Warn  (criu/x.c:1): not this\n"
	      "(00.000004) Error (criu/sk-inet.c:191): inet: Connected TCP socket, consider using --tcp-established option.\n"
	      "(00.000005) Error (criu/cr-dump.c:2098): Dumping FAILED.\n",
		file);
	fclose(file);
	ckt_ctl_criu_log_error(path, text, sizeof text);
	CU_ASSERT_EQUAL(strncmp(text, "inet: Connected TCP socket, consider using", 42), 0);
	CU_ASSERT_EQUAL(strlen(text), sizeof text - 1);
	unlink(path);
	ckt_ctl_criu_log_error(path, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_process(void)
{
	char message[512] = "", text[160];
	struct ckt_process process;
	static pid_t ids[CKT_PROCESS_TREE_MAX];
	int wait[2];
	setenv("HOME", "/somewhere", 1);
	CU_ASSERT_EQUAL_FATAL(pipe(wait), 0);
	pid_t child = fork();
	if (child == 0) {
		char byte;
		close(wait[1]);
		_exit(read(wait[0], &byte, 1) != 0);
	}
	CU_ASSERT_TRUE(ckt_ctl_process_is_below(child, getpid()));
	CU_ASSERT_FALSE(ckt_ctl_process_is_below(getpid(), child));
	CU_ASSERT_EQUAL(ckt_ctl_process_tree(getpid(), ids), 2);
	CU_ASSERT_TRUE(
		(ids[0] == child && ids[1] == getpid()) || (ids[0] == getpid() && ids[1] == child));
	CU_ASSERT_EQUAL(
		ckt_ctl_process_look(child, "test_ctl_criu", &process, message, sizeof message), 0);
	CU_ASSERT_EQUAL(process.uid, geteuid());
	CU_ASSERT_EQUAL(
		ckt_ctl_process_look(child, "another", &process, message, sizeof message), -ESRCH);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "is not another"));
	CU_ASSERT_FALSE(ckt_ctl_process_is_over(child));
	close(wait[1]);
	for (int i = 0; i < 60000 && !ckt_ctl_process_is_over(child); i++)
		usleep(1000);
	CU_ASSERT_TRUE(ckt_ctl_process_is_over(child));
	CU_ASSERT_TRUE(ckt_ctl_process_describe(child, text, sizeof text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "test_ctl_criu, which has ended, but process"));
	CU_ASSERT_EQUAL(ckt_ctl_process_look(1 << 22, "another", &process, message, sizeof message),
		-ESRCH);
	CU_ASSERT_FALSE(ckt_ctl_process_describe(1 << 22, text, sizeof text));
	close(wait[0]);
}

/* One that never answers: what it has started ends with it. */
static void test_stalled(void)
{
	char path[] = "/tmp/ckt-criu-XXXXXX", message[512] = "", *log;
	struct ckt_criu criu = {.version = CKT_CRIU_VERSION_MIN, .stall_ms = 1000};
	pid_t pid = 0;
	int fd = mkstemp(path), here = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dprintf(fd, "#!/bin/sh\nsleep 1000 &\nexec sleep 1000\n");
	fchmod(fd, 0700);
	close(fd);
	snprintf(criu.path, sizeof criu.path, "%s", path);
	CU_ASSERT_EQUAL(
		ckt_ctl_criu_restore(&criu, here, NULL, 0, NULL, &pid, message, sizeof message),
		-ETIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(message,
		"CRIU could not restore the process: made no progress for 1 s and was ended"));
	CU_ASSERT_EQUAL(pid, 0);
	CU_ASSERT_EQUAL(waitpid(-1, NULL, 0), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
	log = strstr(message, "CRIU's log is ");
	CU_ASSERT_PTR_NULL(log);
	close(here);
	unlink(path);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("criu", NULL, NULL);
	CU_add_test(suite, "version", test_version);
	CU_add_test(suite, "rights", test_rights);
	CU_add_test(suite, "log", test_log);
	CU_add_test(suite, "process", test_process);
	CU_add_test(suite, "stalled", test_stalled);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
