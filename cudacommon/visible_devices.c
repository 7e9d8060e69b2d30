/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CUDA_VISIBLE_DEVICES; see visible_devices.h. */
#include "cudacommon/visible_devices.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { UUID_TEXT = 41 }; /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

static void uuid_text(const uint8_t *uuid, char ret[UUID_TEXT])
{
	char *p = ret + sprintf(ret, "GPU-");
	for (unsigned i = 0; i < CKT_VISIBLE_UUID; i++)
		p += sprintf(p, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

/* The only GPU whose UUID begins with the text; -1 for none or several. */
static int by_uuid(
	const char *text, size_t length, const uint8_t (*uuids)[CKT_VISIBLE_UUID], unsigned count)
{
	int found = -1;
	for (unsigned i = 0; i < count; i++) {
		char whole[UUID_TEXT];
		uuid_text(uuids[i], whole);
		/* Ignore text after a whole UUID. */
		if (strncasecmp(text, whole,
			    length < sizeof whole - 1 ? length : sizeof whole - 1) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* Ignore text after the digits. */
static int by_number(const char *text, unsigned count)
{
	char *end;
	long number = strtol(text, &end, 10);
	return end == text || number < 0 || number >= (long)count ? -1 : (int)number;
}

int ckt_visible_select(
	const char *text, const uint8_t (*uuids)[CKT_VISIBLE_UUID], unsigned count, unsigned *ret)
{
	bool seen[CKT_DEVICES_MAX] = {false};
	int n = 0, by_name = -1;
	if (count > CKT_DEVICES_MAX)
		count = CKT_DEVICES_MAX;
	while (*text) {
		while (isspace((unsigned char)*text))
			text++;
		size_t length = strcspn(text, ",");
		while (length && isspace((unsigned char)text[length - 1]))
			length--;
		int named = length && strncmp(text, "GPU-", 4) == 0;
		if (!length || (by_name >= 0 && named != by_name))
			break;
		by_name = named;
		int gpu = named ? by_uuid(text, length, uuids, count) : by_number(text, count);
		if (gpu < 0)
			break;
		if (seen[gpu])
			return -EINVAL;
		seen[gpu] = true;
		ret[n++] = (unsigned)gpu;
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return n;
}
