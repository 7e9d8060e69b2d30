/* SPDX-License-Identifier: Apache-2.0 */
/* Points of failure: only the one that is named, and it kills unless it is to fail. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/fault.h"
#include "tests/unit/suite.h"

static void test_points(void)
{
	static const struct {
		const char *text; /* NULL: no variable */
		enum ckt_worker_fault point;
		bool fails;
	} cases[] = {
		{NULL, CKT_FAULT_FROZEN, false},
		{"", CKT_FAULT_FROZEN, false},
		{"fail:", CKT_FAULT_FROZEN, false},
		{"fail:1", CKT_FAULT_FROZEN, true},
		{"fail:1", CKT_FAULT_RESTORE_CHECKED, false},
		{"fail:10", CKT_FAULT_FROZEN, false},
		{"fail:10", CKT_FAULT_RESTORE_CHECKED, true},
		{"fail:x", CKT_FAULT_FROZEN, false},
		{"2", CKT_FAULT_FROZEN, false},
		{"nonsense", CKT_FAULT_FROZEN, false},
		{"fail:30", CKT_FAULT_RELEASE, true},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].text)
			setenv("CRICKET_FAULT", cases[i].text, 1);
		else
			unsetenv("CRICKET_FAULT");
		IS(ckt_fault_fails(cases[i].point), cases[i].fails);
	}
	unsetenv("CRICKET_FAULT");
}

static void test_kill(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		setenv("CRICKET_FAULT", "3", 1);
		ckt_fault_fails(CKT_FAULT_WRITE);
		_exit(0);
	}
	int status = 0;
	IS(waitpid(pid, &status, 0), pid);
	YES(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Scripts name them. */
static void test_numbers(void)
{
	IS(CKT_FAULT_FROZEN, 1);
	IS(CKT_FAULT_MANIFEST, 5);
	IS(CKT_FAULT_RESTORE_LOADED, 13);
	IS(CKT_FAULT_RESTORE_MOVED, 14);
	IS(CKT_FAULT_PRELOADED, 16);
	IS(CKT_FAULT_PAUSE_COPIED, 20);
	IS(CKT_FAULT_RESUME_COPIED, 23);
}

UNIT_SUITE(fault, {"points", test_points}, {"kill", test_kill}, {"numbers", test_numbers})
