/* Points of failure; see fault.h. */
#include "checkpoint/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ckt_fault_fails(enum ckt_worker_fault point)
{
	const char *text = getenv("CRICKET_FAULT");
	if (!text || !*text)
		return false;
	bool fail = !strncmp(text, "fail:", 5);
	if (atoi(fail ? text + 5 : text) != (int)point)
		return false;
	if (!fail)
		kill(getpid(), SIGKILL);
	return true;
}
