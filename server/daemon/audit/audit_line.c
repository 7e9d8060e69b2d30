/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the audit log as JSON; see audit_line.h. */
#include "server/daemon/audit/audit_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the place of a byte that is not UTF-8. */
static const char replacement[] = "\xef\xbf\xbd";

/* The length of the UTF-8 sequence at p; 0 if there is none.  jansson knows the rules. */
static size_t sequence_length(const char *p, size_t left)
{
	for (size_t length = 1; length <= 4 && length <= left; length++) {
		json_t *text = json_stringn(p, length);
		if (text) {
			json_decref(text);
			return length;
		}
	}
	return 0;
}

/* jansson takes valid UTF-8 only, and a peer must not be able to keep its line out of the log. */
static json_t *text_of_bytes(const char *bytes)
{
	json_t *text = json_string(bytes);
	if (text)
		return text;
	size_t left = strlen(bytes), used = 0;
	char *clean = malloc(left * (sizeof replacement - 1) + 1);
	if (!clean)
		return NULL;
	while (left) {
		size_t length = sequence_length(bytes, left);
		const char *from = length ? bytes : replacement;
		size_t put = length ? length : sizeof replacement - 1;
		memcpy(clean + used, from, put);
		used += put;
		bytes += length ? length : 1;
		left -= length ? length : 1;
	}
	text = json_stringn(clean, used);
	free(clean);
	return text;
}

static int put_text(json_t *object, const char *key, const char *text)
{
	return text && *text ? json_object_set_new(object, key, text_of_bytes(text)) : 0;
}

static int put_number(json_t *object, const char *key, json_int_t number)
{
	return number ? json_object_set_new(object, key, json_integer(number)) : 0;
}

/* RFC 3339, UTC, milliseconds. */
static int put_time(json_t *object, const struct timespec *when)
{
	char seconds[32], text[48];
	struct tm tm;
	if (!gmtime_r(&when->tv_sec, &tm) ||
		!strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm))
		return -1;
	snprintf(text, sizeof text, "%s.%03dZ", seconds, (int)(when->tv_nsec / 1000000));
	return put_text(object, "time", text);
}

json_t *ckt_audit_line_object(const struct ckt_audit_record *record, const struct timespec *when)
{
	json_t *object = json_object();
	uint64_t count = record->count == 1 ? 0 : record->count;
	if (object && put_time(object, when) == 0 &&
		put_text(object, "event", record->event) == 0 &&
		put_text(object, "peer", record->peer) == 0 &&
		put_number(object, "pid", record->pid) == 0 &&
		put_text(object, "owner", record->owner) == 0 &&
		put_text(object, "role", record->role) == 0 &&
		put_text(object, "call", record->call) == 0 &&
		put_text(object, "session", record->session) == 0 &&
		put_text(object, "object", record->object) == 0 &&
		put_text(object, "program", record->program) == 0 &&
		put_number(object, "worker", record->worker) == 0 &&
		put_text(object, "result", record->result) == 0 &&
		put_text(object, "reason", record->reason) == 0 &&
		put_number(object, "count", (json_int_t)count) == 0)
		return object;
	json_decref(object);
	return NULL;
}

char *ckt_audit_line_text(const json_t *object)
{
	return json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
}
