/* SPDX-License-Identifier: Apache-2.0 */
/* client/preload/process_exit.c: what runs before _exit. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/preload/process_exit.h"
#include "tests/unit/suite.h"

static int told[2];

static void tell(void)
{
	if (write(told[1], "x", 1) != 1)
		abort();
}

/* The child's status; adds to *ret_calls how often it called the function. */
static int ends(void (*at_exit)(void), void (*function)(int), unsigned *ret_calls)
{
	int status;
	char c;
	IS(pipe(told), 0);
	pid_t child = fork();
	if (child == 0) {
		cricket_at_exit = at_exit;
		function(7);
	}
	close(told[1]);
	for (*ret_calls = 0; read(told[0], &c, 1) == 1; ++*ret_calls)
		;
	close(told[0]);
	IS(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_exit(void)
{
	unsigned calls;
	IS(ends(tell, _exit, &calls), 7);
	IS(calls, 1);
	IS(ends(tell, _Exit, &calls), 7);
	IS(calls, 1);
	IS(ends(NULL, _exit, &calls), 7);
	IS(calls, 0);
}

UNIT_SUITE(process_exit, {"_exit", test_exit})
