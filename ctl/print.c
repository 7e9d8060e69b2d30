/* SPDX-License-Identifier: Apache-2.0 */
/* How things are printed; see print.h. */
#include "ctl/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "rpc/worker.h"

const char *ckt_ctl_state_name(unsigned state)
{
	static const char *const names[] = {
		[CKT_STATE_STARTING] = "starting",
		[CKT_STATE_RUNNING] = "running",
		[CKT_STATE_DETACHED] = "detached",
		[CKT_STATE_RESTORED] = "restored",
		[CKT_STATE_FROZEN] = "frozen",
		[CKT_STATE_ENDING] = "ending",
		[CKT_STATE_PAUSED] = "paused",
		[CKT_STATE_SWAPPED] = "swapped",
	};
	return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

const char *ckt_ctl_size_text(uint64_t bytes, char *buffer, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned unit = 0;
	double value = (double)bytes;
	for (; value >= 1024 && unit < sizeof units / sizeof *units - 1; unit++)
		value /= 1024;
	snprintf(buffer, size, unit && value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buffer;
}

const char *ckt_ctl_time_text(int64_t seconds, char *buffer, size_t size)
{
	time_t when = (time_t)seconds;
	struct tm tm;
	if (!gmtime_r(&when, &tm) || !strftime(buffer, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(buffer, size, "unknown");
	return buffer;
}

const char *ckt_ctl_clean(const char *text, char *buffer, size_t size)
{
	size_t i = 0;
	for (; text[i] && i + 1 < size; i++)
		buffer[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
	buffer[i] = 0;
	return buffer;
}

json_t *ckt_ctl_json_text(const char *text)
{
	json_t *value = json_string(text);
	if (value)
		return value;
	char *copy = strdup(text);
	for (char *p = copy; p && *p; p++)
		if ((unsigned char)*p >= 128)
			*p = '?';
	value = json_string(copy ? copy : "");
	free(copy);
	return value;
}

int ckt_ctl_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CKT_EXIT_DONE;
	fprintf(stderr, "cricketctl: cannot write the output: %s\n", strerror(errno));
	return CKT_EXIT_REFUSED;
}

int ckt_ctl_json_print(json_t *value)
{
	int failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(value);
	putchar('\n');
	if (failed)
		fprintf(stderr, "cricketctl: cannot print the result as JSON\n");
	return failed ? CKT_EXIT_REFUSED : ckt_ctl_flush();
}
