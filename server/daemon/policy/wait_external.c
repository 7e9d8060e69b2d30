/* SPDX-License-Identifier: Apache-2.0 */
/* --wait-policy external: its text; who chooses then is server/daemon/session/scheduler.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/policy/wait_policy.h"

enum { DEFAULT_MS = 1000, LEAST_MS = 1, MOST_MS = 60000 };

static const char word[] = "external";

/* Digits with at most one point: no sign, no exponent, no words such as inf. */
static int parse_timeout(const char *text, unsigned *ret_ms)
{
	char *end;
	if (!*text || strlen(text) > 16 || text[strspn(text, "0123456789.")])
		return -EINVAL;
	double ms = strtod(text, &end) * 1000;
	if (*end || ms < LEAST_MS || ms > MOST_MS)
		return -EINVAL;
	*ret_ms = (unsigned)(ms + 0.5);
	return 0;
}

int ckt_wait_external_parse(const char *text, struct ckt_wait_external *ret_external)
{
	struct ckt_wait_external external = {&ckt_wait_fifo, DEFAULT_MS};
	char name[32] = "";
	if (strncmp(text, word, strlen(word)) != 0)
		return -EINVAL;
	text += strlen(word);
	if (*text == ':') {
		size_t length = strcspn(++text, ",");
		if (length >= sizeof name)
			return -EINVAL;
		memcpy(name, text, length);
		external.fallback = ckt_wait_policy_find(name);
		text += length;
	}
	if (!external.fallback)
		return -EINVAL;
	if (*text && (*text != ',' || parse_timeout(text + 1, &external.timeout_ms)))
		return -EINVAL;
	*ret_external = external;
	return 0;
}
