/* SPDX-License-Identifier: Apache-2.0 */
/* base/fault_point.h: a process dies at the point that CRICKET_FAULT names, and at no other. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "tests/unit/suite.h"

enum { PASSED = 7 };

/* The signal that ended a child which came to the point; 0 where it went on. */
static int signal_at(const char *text, enum ckt_fault_point point)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		if (text)
			setenv("CRICKET_FAULT", text, 1);
		else
			unsetenv("CRICKET_FAULT");
		ckt_fault(point);
		_exit(PASSED);
	}
	MUST(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return WTERMSIG(status);
	IS(WEXITSTATUS(status), PASSED);
	return 0;
}

static void test_points(void)
{
	static const struct {
		const char *text;
		enum ckt_fault_point point;
		int signal;
	} rows[] = {
		{NULL, CKT_FAULT_SERVER_SAVED, 0},
		{"", CKT_FAULT_SERVER_SAVED, 0},
		{"none", CKT_FAULT_SERVER_SAVED, 0},
		{"0", CKT_FAULT_SERVER_SAVED, 0},
		{"10", CKT_FAULT_SERVER_SAVED, 0},
		{"1010", CKT_FAULT_SERVER_SAVED, 0},
		{"-101", CKT_FAULT_SERVER_SAVED, 0},
		{"101", CKT_FAULT_SERVER_SAVED, SIGKILL},
		{"101", CKT_FAULT_SERVER_RELEASE, 0},
		{"101", CKT_FAULT_CTL_CHECKPOINT_MADE, 0},
		{"214", CKT_FAULT_CTL_CLIENT_RESTORE, SIGKILL},
		{"214", CKT_FAULT_CTL_CLIENT_SAVED, 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		IS(signal_at(rows[i].text, rows[i].point), rows[i].signal);
}

/* Scripts name the points by number: a new one comes behind the others of its program. */
static void test_numbers(void)
{
	IS(CKT_FAULT_SERVER_SAVED, 101);
	IS(CKT_FAULT_SERVER_PAUSED, 107);
	IS(CKT_FAULT_CTL_CHECKPOINT_MADE, 201);
	IS(CKT_FAULT_CTL_MIGRATE_ROUND, 207);
	IS(CKT_FAULT_CTL_CLIENT_RESTORE, 214);
}

UNIT_SUITE(fault, {"points", test_points}, {"numbers are stable", test_numbers})
