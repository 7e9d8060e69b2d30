/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --auto-checkpoint; see automatic_option.h. */
#include "server/daemon/durable/automatic_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS_MAX = 86400 };

int ckt_automatic_parse(const char *text, unsigned *ret_seconds, bool *ret_asked)
{
	char *end;
	errno = 0;
	unsigned long value = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0, each = 1;
	if (!value || errno || value > SECONDS_MAX)
		return -EINVAL;
	if (*end == 's' || *end == 'm' || *end == 'h') {
		each = *end == 's' ? 1 : *end == 'm' ? 60 : 3600;
		end++;
	}
	bool asked = strcmp(end, ",asked") == 0;
	if ((*end && !asked) || value * each > SECONDS_MAX)
		return -EINVAL;
	*ret_seconds = (unsigned)(value * each);
	*ret_asked = asked;
	return 0;
}
