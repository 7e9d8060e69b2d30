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
		[CKT_STATE_ASLEEP] = "asleep",
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

/* Bytes of the character that begins here, where a terminal shows it; 0: it obeys it, or it is no UTF-8. */
static size_t shown(const unsigned char *text)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t size = *text < 0x80 ? 1 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
	unsigned code = size == 1 ? *text : *text & (0x7fu >> size);
	if ((*text >= 0x80 && *text < 0xc0) || *text >= 0xf8)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
	return control || code < least[size] || code > 0x10ffff ? 0 : size;
}

const char *ckt_ctl_clean(const char *text, char *buffer, size_t size)
{
	size_t at = 0, n;
	for (; *text && at + 1 < size; text += n ? n : 1) {
		n = shown((const unsigned char *)text);
		if (at + n >= size)
			break;
		if (n)
			memcpy(buffer + at, text, n);
		else
			buffer[at] = '?';
		at += n ? n : 1;
	}
	buffer[at] = 0;
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
