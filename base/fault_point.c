/* SPDX-License-Identifier: Apache-2.0 */
/* Points at which tests kill a process; see fault_point.h. */
#include "base/fault_point.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ckt_fault_reached(int point)
{
	const char *text = getenv("CRICKET_FAULT");
	if (!text || !*text)
		return false;
	bool fail = !strncmp(text, "fail:", 5);
	if (atoi(fail ? text + 5 : text) != point)
		return false;
	if (!fail)
		kill(getpid(), SIGKILL);
	return true;
}

void ckt_fault(enum ckt_fault_point point)
{
	ckt_fault_reached((int)point);
}
